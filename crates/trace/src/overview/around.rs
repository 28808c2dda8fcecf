//! What an event stands among: the call that asked for it, and the ranges and operators that the call was made in.

use tracesmith_format::tables::{ApiCall, Caller, HostCall, Marker};
use tracesmith_format::{Block, ProcessId, Projection, StackId, Table, ThreadId, Timestamp};

use crate::model::event::{Event, EventKind, EventName};
use crate::model::trace::Trace;
use crate::reconstruct::outermost;

/// Ranges of one moment that are told at most.
const MOST_RANGES: usize = 64;

/// What an event stands among.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Surroundings {
    /// The call that asked for it; `None` for host work, and where there is none.
    pub call: Option<Event>,
    /// Ranges and operators that were open on the thread when it was asked for, the outermost first.
    pub inside: Vec<Event>,
    /// The code that made it: its own stack, else that of the call.
    pub stack: StackId,
}

impl Surroundings {
    /// Looks for what an event stands among. Reads blocks close to it first, and all only when the call is missing.
    pub fn of(trace: &Trace, event: &Event) -> Self {
        let is_host = matches!(
            event.kind,
            EventKind::ApiCall | EventKind::Marker | EventKind::HostCall
        );
        let call = if is_host { None } else { call_of(trace, event) };
        let moment = if is_host { Some(event) } else { call.as_ref() };
        let mut inside = Vec::new();
        if let Some(moment) = moment {
            let thread = (moment.process, moment.thread);
            inside = open_at(trace, thread, moment.start);
            // An event does not lie in itself.
            inside.retain(|range| {
                (range.kind, range.start, range.end, range.name)
                    != (event.kind, event.start, event.end, event.name)
            });
        }
        let stack = if event.stack.is_some() {
            event.stack
        } else {
            call.map_or(StackId::NONE, |call| call.stack)
        };
        Surroundings { call, inside, stack }
    }
}

fn call_of(trace: &Trace, event: &Event) -> Option<Event> {
    if !event.correlation.is_some() {
        return None;
    }
    let wanted = Projection::of::<ApiCall>(&["start", "end", "correlation", "stack", "caller", "shape.name"]);
    let wanted = wanted.expect("the table has these columns");
    let mut blocks: Vec<(u64, &Block)> = trace
        .api_calls
        .blocks()
        .map(|block| (distance(trace, block, event.start), block))
        .collect();
    blocks.sort_by_key(|(distance, _)| *distance);
    let mut decoder = trace.file.reader.decoder();
    let mut found: Option<Event> = None;
    for (_, block) in blocks {
        // An outer call is stored after the calls within it, so it can be in another block that covers this moment.
        if let Some(found) = &found
            && distance(trace, block, found.start) > 0
        {
            continue;
        }
        let calls = match decoder.read::<ApiCall>(block, &wanted) {
            Ok(calls) => calls,
            Err(error) => {
                trace.file.note(block, error);
                continue;
            }
        };
        let rows = (0..calls.correlation.len()).filter(|row| {
            calls.correlation[*row] == event.correlation && calls.caller.get(*row).process == event.process
        });
        let of_block = rows.map(|row| {
            let call = Event {
                name: EventName::Id(calls.shape.get(row).name),
                correlation: event.correlation,
                stack: calls.stack[row],
                ..Event::new(EventKind::ApiCall, calls.start[row], calls.end[row]).by(calls.caller.get(row))
            };
            trace.on_timeline(call, block)
        });
        found = found
            .into_iter()
            .chain(of_block)
            .min_by_key(|call| outermost(call.start.0, call.end.0));
    }
    found
}

/// How far a moment is from a block.
fn distance(trace: &Trace, block: &Block, moment: Timestamp) -> u64 {
    let (first, last) = trace.block_span(block);
    first
        .0
        .saturating_sub(moment.0)
        .max(moment.0.saturating_sub(last.0))
}

/// Ranges and host work that a thread was in the midst of.
fn open_at(trace: &Trace, thread: (ProcessId, ThreadId), moment: Timestamp) -> Vec<Event> {
    let mut open = Vec::new();
    let mut decoder = trace.file.reader.decoder();
    let columns = ["start", "end", "caller", "shape.name"];
    macro_rules! look {
        ($table:ident, $row:ty, $kind:ident) => {
            let wanted = Projection::of::<$row>(&columns).expect("the table has these columns");
            for block in trace
                .$table
                .blocks()
                .filter(|block| distance(trace, block, moment) == 0)
            {
                debug_assert_eq!(block.header.kind, <$row as Table>::KIND);
                let rows = match decoder.read::<$row>(block, &wanted) {
                    Ok(rows) => rows,
                    Err(error) => {
                        trace.file.note(block, error);
                        continue;
                    }
                };
                for row in 0..rows.start.len() {
                    let caller: &Caller = rows.caller.get(row);
                    if (caller.process, caller.thread) != thread {
                        continue;
                    }
                    let event = Event {
                        name: EventName::Id(rows.shape.get(row).name),
                        ..Event::new(EventKind::$kind, rows.start[row], rows.end[row]).by(caller)
                    };
                    let event = trace.on_timeline(event, block);
                    if event.start.is_some() && event.start <= moment && moment < event.end {
                        open.push(event);
                    }
                }
            }
        };
    }
    look!(markers, Marker, Marker);
    look!(host_calls, HostCall, HostCall);
    open.sort_by_key(|event| (event.start, std::cmp::Reverse(event.end)));
    open.truncate(MOST_RANGES);
    open
}
