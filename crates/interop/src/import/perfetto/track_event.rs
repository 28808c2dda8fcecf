//! A track event, taken apart: the fields of today's events, and what old traces say instead.

use tracesmith_format::StackId;
use tracesmith_format::tables::FlowPhase;

use super::annotation::Arguments;
use super::sequence::{Sequence, Text};
use crate::perfetto::schema::{event, legacy};
use crate::perfetto::wire::{Fields, Value};

/// A track event, taken apart.
#[derive(Default)]
pub(super) struct TrackEvent {
    pub(super) kind: u64,
    pub(super) track: Option<u64>,
    pub(super) name: Text,
    pub(super) categories: Vec<Text>,
    pub(super) arguments: Arguments,
    pub(super) count: Option<f64>,
    pub(super) extra_counts: Vec<f64>,
    pub(super) flows: Vec<(u64, FlowPhase)>,
    pub(super) stack: StackId,
    pub(super) inline_stack: Vec<u8>,
    pub(super) legacy: Option<Legacy>,
    pub(super) delta_micros: Option<u64>,
    pub(super) absolute_micros: Option<u64>,
}

/// What old traces say of an event instead.
#[derive(Default)]
pub(super) struct Legacy {
    pub(super) phase: u8,
    pub(super) duration_micros: Option<u64>,
    pub(super) id: u64,
    pub(super) bind_id: u64,
    pub(super) direction: u64,
}

impl TrackEvent {
    pub(super) fn new(bytes: &[u8], sequence: &Sequence) -> Self {
        let mut found = TrackEvent::default();
        let text =
            |texts: &rustc_hash::FxHashMap<u64, Text>, iid| texts.get(&iid).cloned().unwrap_or_default();
        for (field, value) in Fields::new(bytes).flatten() {
            let number = value.number();
            match field {
                event::TYPE => found.kind = number,
                event::TRACK_UUID => found.track = Some(number),
                event::NAME_IID => found.name = text(&sequence.event_names, number),
                event::NAME => found.name = String::from_utf8_lossy(value.bytes()).into(),
                event::CATEGORY_IIDS => {
                    let iids = value.numbers();
                    found
                        .categories
                        .extend(iids.into_iter().map(|iid| text(&sequence.categories, iid)));
                }
                event::CATEGORIES => found
                    .categories
                    .push(String::from_utf8_lossy(value.bytes()).into()),
                event::DEBUG_ANNOTATIONS => found.arguments.add(value.bytes(), sequence),
                event::COUNTER_VALUE => found.count = Some(number as i64 as f64),
                event::DOUBLE_COUNTER_VALUE => found.count = Some(value.double()),
                event::EXTRA_COUNTER_VALUES => {
                    found
                        .extra_counts
                        .extend(value.numbers().into_iter().map(|number| number as i64 as f64));
                }
                event::FLOW_IDS | event::FLOW_IDS_OLD => {
                    found
                        .flows
                        .extend(flow_ids(value).into_iter().map(|id| (id, FlowPhase::STEP)));
                }
                event::TERMINATING_FLOW_IDS | event::TERMINATING_FLOW_IDS_OLD => {
                    found
                        .flows
                        .extend(flow_ids(value).into_iter().map(|id| (id, FlowPhase::END)));
                }
                event::CALLSTACK_IID => {
                    found.stack = sequence.stacks.get(&number).copied().unwrap_or_default()
                }
                event::CALLSTACK => found.inline_stack = value.bytes().to_vec(),
                event::LEGACY_EVENT => found.legacy = Some(Legacy::new(value.bytes())),
                event::TIMESTAMP_DELTA_US => found.delta_micros = Some(number),
                event::TIMESTAMP_ABSOLUTE_US => found.absolute_micros = Some(number),
                _ => {}
            }
        }
        if let Some(legacy) = &found.legacy
            && legacy.bind_id != 0
        {
            let phase = if legacy.direction == 1 {
                FlowPhase::END
            } else {
                FlowPhase::STEP
            };
            found.flows.push((legacy.bind_id, phase));
        }
        found
    }
}

/// Flow numbers, single or packed as eight bytes each.
fn flow_ids(value: Value<'_>) -> Vec<u64> {
    match value {
        Value::Bytes(bytes) => {
            let chunks = bytes.chunks_exact(8);
            chunks
                .map(|chunk| u64::from_le_bytes(chunk.try_into().expect("eight bytes")))
                .collect()
        }
        single => vec![single.number()],
    }
}

impl Legacy {
    pub(super) fn new(bytes: &[u8]) -> Self {
        let mut found = Legacy::default();
        for (field, value) in Fields::new(bytes).flatten() {
            match field {
                legacy::PHASE => found.phase = value.number() as u8,
                legacy::DURATION_US => found.duration_micros = Some(value.number()),
                legacy::UNSCOPED_ID | legacy::LOCAL_ID | legacy::GLOBAL_ID => found.id = value.number(),
                legacy::BIND_ID => found.bind_id = value.number(),
                legacy::FLOW_DIRECTION => found.direction = value.number(),
                _ => {}
            }
        }
        found
    }
}
