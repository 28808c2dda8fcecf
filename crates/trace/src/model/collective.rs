//! Graph launches and collectives as events.

use tracesmith_format::tables::{Collectives, GraphLaunches};

use crate::model::event::{Event, EventKind, EventName, event_columns};
use crate::model::strings::Strings;
use crate::units;

fn graph_event(launches: &GraphLaunches, row: usize) -> Event {
    Event {
        name: EventName::Word("graph launch"),
        correlation: launches.correlation[row],
        stack: launches.stack[row],
        ..Event::new(EventKind::GraphLaunch, launches.start[row], launches.end[row])
            .at(launches.place.get(row))
    }
}

fn graph_detail(launches: &GraphLaunches, row: usize, _: &Strings) -> String {
    let shape = launches.shape.get(row);
    match shape.nodes {
        0 => format!("graph {}", shape.graph.0),
        nodes => format!("graph {}, {nodes} nodes", shape.graph.0),
    }
}

event_columns!(GraphLaunches, graph_event, graph_detail);

fn collective_event(collectives: &Collectives, row: usize) -> Event {
    Event {
        name: EventName::Id(collectives.shape.get(row).name),
        correlation: collectives.correlation[row],
        bytes: collectives.bytes[row],
        stack: collectives.stack[row],
        ..Event::new(
            EventKind::Collective,
            collectives.start[row],
            collectives.end[row],
        )
        .at(collectives.place.get(row))
    }
}

fn collective_detail(collectives: &Collectives, row: usize, strings: &Strings) -> String {
    let shape = collectives.shape.get(row);
    let mut parts = vec![units::bytes(collectives.bytes[row].0)];
    if let Some(rank) = shape.rank.get() {
        parts.push(format!("rank {rank} of {}", shape.ranks));
    }
    for label in [shape.datatype, shape.reduction, shape.algorithm, shape.protocol] {
        if label.is_some() {
            parts.push(strings.get(label).to_owned());
        }
    }
    parts.push(format!("sequence {}", collectives.sequence[row]));
    parts.join(", ")
}

event_columns!(Collectives, collective_event, collective_detail);
