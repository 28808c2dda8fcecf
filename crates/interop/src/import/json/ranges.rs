//! Ranges whose two ends are events of their own: within a thread, and free of threads.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use tracesmith_format::tables::{
    CallExit, Caller, HealthCause, HostCall, HostCallKind, HostShape, Marker, MarkerKind, MarkerShape,
};
use tracesmith_format::{ProcessId, StringId, ThreadId, Timestamp};

use crate::error::Error;
use crate::import::json::event::Event;
use crate::import::json::reading::Reading;
use crate::import::json::tracks::Asking;

/// Ranges that have not ended yet: memory follows these, not the file.
#[derive(Debug, Default)]
pub(super) struct OpenRanges {
    nested: BTreeMap<(ProcessId, ThreadId), Vec<HostCall>>,
    free: FxHashMap<RangeKey, Vec<Marker>>,
}

/// Category, number, and the name where the form of the event pairs by it.
type RangeKey = (StringId, u64, StringId);

impl Reading<'_, '_, '_> {
    /// The beginning or end of a range within a thread.
    pub(super) fn nested_range(&mut self, phase: u8, event: &Event<'_>) -> Result<(), Error> {
        let time = self.moment(event);
        let caller = self.caller(event, Asking::Other)?;
        let key = (caller.process, caller.thread);
        if phase == b'B' {
            let row = HostCall {
                start: time,
                stack: self.stack(event)?,
                detail: self.all_arguments(event)?,
                caller,
                shape: HostShape {
                    name: self.name(event)?,
                    kind: HostCallKind::CUSTOM,
                    category: self.category(event)?,
                    exit: CallExit::OPEN,
                    ..HostShape::default()
                },
                ..HostCall::default()
            };
            self.ranges.nested.entry(key).or_default().push(row);
            return Ok(());
        }
        let open = self.ranges.nested.get_mut(&key);
        let Some(mut row) = open.and_then(Vec::pop) else {
            self.counts.skip("ends of ranges that did not begin", 1);
            return Ok(());
        };
        if event.arguments().next().is_some() {
            if row.detail == StringId::NONE {
                row.detail = self.all_arguments(event)?;
            } else {
                self.counts.skip(
                    "arguments of the end of a range that has some at its beginning",
                    1,
                );
            }
        }
        if time < row.start {
            self.counts.doubt(
                HealthCause::ZERO_TIME,
                "ranges that end before they begin, kept without an end",
            );
        } else {
            row.end = time;
        }
        row.shape.exit = CallExit::RETURN;
        self.push(&row)
    }

    /// The beginning, end or middle of a range that is free of threads.
    pub(super) fn free_range(&mut self, phase: u8, event: &Event<'_>) -> Result<(), Error> {
        let time = self.moment(event);
        let caller = self.caller(event, Asking::Other)?;
        let number = self.range_number(event)?;
        let name = self.name(event)?;
        let category = self.category(event)?;
        let paired_by_name = matches!(phase, b'S' | b'T' | b'p' | b'F');
        let key = (
            category,
            number,
            if paired_by_name { name } else { StringId::NONE },
        );
        match phase {
            b'e' | b'F' => {
                let open = self.ranges.free.get_mut(&key);
                let Some(mut row) = open.and_then(Vec::pop) else {
                    self.counts.skip("ends of ranges that did not begin", 1);
                    return Ok(());
                };
                if self.ranges.free.get(&key).is_some_and(Vec::is_empty) {
                    self.ranges.free.remove(&key);
                }
                row.shape.kind = MarkerKind::FREE_RANGE;
                if time < row.start {
                    self.counts.doubt(
                        HealthCause::ZERO_TIME,
                        "ranges that end before they begin, kept without an end",
                    );
                } else {
                    row.end = time;
                }
                self.push(&row)
            }
            _ => {
                let is_range = matches!(phase, b'b' | b'S');
                let row = Marker {
                    start: time,
                    end: if is_range { Timestamp::NONE } else { time },
                    range: number,
                    detail: self.all_arguments(event)?,
                    caller: Caller { ..caller },
                    shape: MarkerShape {
                        name,
                        category_name: category,
                        kind: if is_range {
                            MarkerKind::OPEN_FREE_RANGE
                        } else {
                            MarkerKind::INSTANT
                        },
                        ..MarkerShape::default()
                    },
                    ..Marker::default()
                };
                if !is_range {
                    return self.push(&row);
                }
                self.ranges.free.entry(key).or_default().push(row);
                Ok(())
            }
        }
    }

    /// Keeps what never ended.
    pub(super) fn close_ranges(&mut self) -> Result<(), Error> {
        for row in std::mem::take(&mut self.ranges.nested).into_values().flatten() {
            self.push(&row)?;
        }
        let mut free: Vec<_> = std::mem::take(&mut self.ranges.free).into_iter().collect();
        free.sort_unstable_by_key(|(key, _)| *key);
        for row in free.into_iter().flat_map(|(_, rows)| rows) {
            self.push(&row)?;
        }
        Ok(())
    }
}
