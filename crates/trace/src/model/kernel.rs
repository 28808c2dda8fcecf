//! Kernels as events.

use tracesmith_format::tables::{KernelShape, Kernels};

use crate::model::event::{Event, EventKind, EventName, event_columns};
use crate::model::strings::Strings;
use crate::units;

fn event(kernels: &Kernels, row: usize) -> Event {
    let shape = kernels.shape.get(row);
    Event {
        name: EventName::Id(if shape.demangled.is_some() {
            shape.demangled
        } else {
            shape.name
        }),
        correlation: kernels.correlation[row],
        stack: kernels.stack[row],
        ..Event::new(EventKind::Kernel, kernels.start[row], kernels.end[row]).at(kernels.place.get(row))
    }
}

fn detail(kernels: &Kernels, row: usize, _: &Strings) -> String {
    let KernelShape {
        grid_x,
        grid_y,
        grid_z,
        block_x,
        block_y,
        block_z,
        registers,
        ..
    } = *kernels.shape.get(row);
    let shape = kernels.shape.get(row);
    let mut detail = format!("grid {grid_x}×{grid_y}×{grid_z} block {block_x}×{block_y}×{block_z}");
    if shape.cluster_x > 1 || shape.cluster_y > 1 || shape.cluster_z > 1 {
        detail += &format!(
            " cluster {}×{}×{}",
            shape.cluster_x, shape.cluster_y, shape.cluster_z
        );
    }
    detail += &format!(" {registers} regs");
    let shared = shape.static_shared.0.saturating_add(shape.dynamic_shared.0);
    if shared > 0 {
        detail += &format!(" {} shared", units::bytes(shared));
    }
    if shape.graph.is_some() {
        detail += &format!(" graph {} node {}", shape.graph.0, kernels.graph_node[row].0);
    }
    detail
}

event_columns!(Kernels, event, detail);
