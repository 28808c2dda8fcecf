//! Markers, counters and flows as events.

use tracesmith_format::tables::{Counters, FlowPhase, Flows, Markers, PayloadKind};

use crate::model::event::{Event, EventKind, EventName, event_columns};
use crate::model::strings::Strings;
use crate::units::name_or_unknown;

fn marker_event(markers: &Markers, row: usize) -> Event {
    Event {
        name: EventName::Id(markers.shape.get(row).name),
        stack: markers.stack[row],
        ..Event::new(EventKind::Marker, markers.start[row], markers.end[row]).by(markers.caller.get(row))
    }
}

fn marker_detail(markers: &Markers, row: usize, strings: &Strings) -> String {
    let shape = markers.shape.get(row);
    let mut parts = vec![name_or_unknown(shape.kind.name()).to_owned()];
    if shape.domain.is_some() {
        parts.push(format!("domain {}", strings.get(shape.domain)));
    }
    if shape.category_name.is_some() {
        parts.push(format!("category {}", strings.get(shape.category_name)));
    }
    parts.extend(payload(shape.payload_kind, markers.payload[row]));
    if markers.detail[row].is_some() {
        parts.push(strings.get(markers.detail[row]).to_owned());
    }
    parts.join(", ")
}

fn payload(kind: PayloadKind, bits: u64) -> Option<String> {
    match kind {
        PayloadKind::U64 | PayloadKind::U32 => Some(format!("payload {bits}")),
        PayloadKind::I64 => Some(format!("payload {}", bits as i64)),
        PayloadKind::I32 => Some(format!("payload {}", bits as i32)),
        PayloadKind::F64 => Some(format!("payload {}", f64::from_bits(bits))),
        PayloadKind::F32 => Some(format!("payload {}", f32::from_bits(bits as u32))),
        _ => None,
    }
}

event_columns!(Markers, marker_event, marker_detail);

fn counter_event(counters: &Counters, row: usize) -> Event {
    let track = counters.track.get(row);
    Event {
        name: EventName::Id(track.name),
        process: track.process,
        thread: track.thread,
        device: track.device,
        ..Event::new(EventKind::Counter, counters.time[row], counters.time[row])
    }
}

fn counter_detail(counters: &Counters, row: usize, strings: &Strings) -> String {
    let track = counters.track.get(row);
    format!("{} {}", counters.value[row], strings.get(track.unit))
        .trim_end()
        .to_owned()
}

event_columns!(Counters, counter_event, counter_detail);

fn flow_event(flows: &Flows, row: usize) -> Event {
    let shape = flows.shape.get(row);
    let name = if shape.name.is_some() {
        EventName::Id(shape.name)
    } else {
        EventName::Word(name_or_unknown(shape.kind.name()))
    };
    Event {
        name,
        process: shape.process,
        thread: shape.thread,
        device: shape.device,
        stream: shape.device.is_some().then_some(shape.stream),
        correlation: flows.correlation[row],
        ..Event::new(EventKind::Flow, flows.time[row], flows.time[row])
    }
}

fn flow_detail(flows: &Flows, row: usize, _: &Strings) -> String {
    let shape = flows.shape.get(row);
    let phase = match shape.phase {
        FlowPhase::START => "starts",
        FlowPhase::END => "ends",
        _ => "passes",
    };
    format!(
        "{} {} {phase}",
        name_or_unknown(shape.kind.name()),
        flows.flow[row]
    )
}

event_columns!(Flows, flow_event, flow_detail);
