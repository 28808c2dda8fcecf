//! Events and captures, as calls of the program change them.

use std::collections::HashMap;

use super::SyncOperation;

/// Events that are known at once. With more all are forgotten, and a wait for one
/// of them says that it is not known when that was recorded.
const MOST_EVENTS: usize = 1 << 16;

/// A stream, by the numbers of its context and of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct StreamRef {
    pub(super) context: u32,
    pub(super) stream: u32,
}

/// A call that has come back.
pub(super) struct Called {
    /// The stream, or only its context.
    pub(super) at: StreamRef,
    /// The event's handle; 0 is none.
    pub(super) event: usize,
    pub(super) result: i32,
    pub(super) correlation: u32,
}

/// What there is to tell of a call; zeros where it is about no event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct EventRef {
    pub(super) context: u32,
    pub(super) event: u32,
    /// The call that recorded it last.
    pub(super) record: u32,
}

#[derive(Default)]
pub(super) struct Known {
    last_event: u32,
    events: HashMap<usize, Event>,
    /// Streams whose work is captured, with the one that it began with.
    capturing: HashMap<StreamRef, StreamRef>,
}

struct Event {
    number: u32,
    /// The call that recorded it last, and in which context.
    record: u32,
    context: u32,
    /// What it was recorded into, if that was a capture.
    captured: Option<StreamRef>,
}

impl Known {
    pub(super) fn forget(&mut self) {
        self.events.clear();
        self.capturing.clear();
    }

    /// Keeps up with a call. What there is to tell of it: nothing where it is
    /// captured, and of one that failed only that the host waited.
    pub(super) fn follow(&mut self, operation: SyncOperation, called: &Called) -> Option<EventRef> {
        let at = called.at;
        let capture = self.capturing.get(&at).copied();
        match operation {
            SyncOperation::ContextSync | SyncOperation::NamedContextSync | SyncOperation::StreamSync => {
                return Some(EventRef {
                    context: at.context,
                    ..EventRef::default()
                });
            }
            SyncOperation::Destroy => {
                self.events.remove(&called.event);
                return None;
            }
            SyncOperation::CaptureBegin => {
                if called.result == 0 {
                    self.capturing.insert(at, at);
                }
                return None;
            }
            // One that fails is over as well.
            SyncOperation::CaptureEnd => {
                self.capturing.retain(|_, begun| *begun != at);
                return None;
            }
            SyncOperation::Record | SyncOperation::StreamWait | SyncOperation::EventSync => {}
        }
        if self.events.len() >= MOST_EVENTS && !self.events.contains_key(&called.event) {
            self.events.clear();
        }
        let last_event = &mut self.last_event;
        let event = self.events.entry(called.event).or_insert_with(|| {
            *last_event = last_event.wrapping_add(1);
            Event {
                number: *last_event,
                record: 0,
                context: at.context,
                captured: None,
            }
        });
        if called.result != 0 && operation != SyncOperation::EventSync {
            return None;
        }
        match operation {
            SyncOperation::Record => {
                event.captured = capture;
                event.context = at.context;
                event.record = if capture.is_none() { called.correlation } else { 0 };
            }
            SyncOperation::StreamWait => {
                if let (Some(begun), None) = (event.captured, capture) {
                    // It joins the capture by waiting for what was captured.
                    self.capturing.insert(at, begun);
                    return None;
                }
            }
            _ => {}
        }
        capture.is_none().then_some(EventRef {
            // The host waits for an event wherever it was recorded.
            context: if operation == SyncOperation::EventSync {
                event.context
            } else {
                at.context
            },
            event: event.number,
            record: event.record,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::translate::NONE;

    const CONTEXT: u32 = 1;

    fn called(stream: u32, event: usize, correlation: u32) -> Called {
        Called {
            at: StreamRef {
                context: CONTEXT,
                stream,
            },
            event,
            result: 0,
            correlation,
        }
    }

    fn told(event: u32, record: u32) -> Option<EventRef> {
        Some(EventRef {
            context: CONTEXT,
            event,
            record,
        })
    }

    #[test]
    fn a_wait_is_for_the_last_record() {
        let mut known = Known::default();
        assert_eq!(
            known.follow(SyncOperation::StreamWait, &called(7, 0x10, 1)),
            told(1, 0),
            "recorded before anyone watched"
        );
        assert_eq!(
            known.follow(SyncOperation::Record, &called(7, 0x10, 2)),
            told(1, 2)
        );
        assert_eq!(
            known.follow(SyncOperation::Record, &called(7, 0x20, 3)),
            told(2, 3)
        );
        assert_eq!(
            known.follow(SyncOperation::Record, &called(7, 0x10, 4)),
            told(1, 4)
        );
        assert_eq!(
            known.follow(SyncOperation::StreamWait, &called(8, 0x10, 5)),
            told(1, 4)
        );
        let failed = Called {
            result: 400,
            ..called(7, 0x10, 6)
        };
        assert_eq!(known.follow(SyncOperation::Record, &failed), None);
        let elsewhere = Called {
            at: StreamRef {
                context: 2,
                stream: NONE,
            },
            ..called(0, 0x10, 7)
        };
        assert_eq!(known.follow(SyncOperation::EventSync, &elsewhere), told(1, 4));
        assert_eq!(known.follow(SyncOperation::Destroy, &called(8, 0x10, 8)), None);
        assert_eq!(
            known.follow(SyncOperation::StreamWait, &called(8, 0x10, 9)),
            told(3, 0),
            "another event with that handle"
        );
    }

    #[test]
    fn events_that_are_never_destroyed_take_little() {
        let mut known = Known::default();
        for event in 1..=3 * MOST_EVENTS {
            let record = known.follow(SyncOperation::Record, &called(7, event, event as u32));
            assert_eq!(record, told(event as u32, event as u32));
        }
        assert!(known.events.len() <= MOST_EVENTS);
        let last = 3 * MOST_EVENTS;
        assert_eq!(
            known.follow(SyncOperation::StreamWait, &called(8, last, 1)),
            told(last as u32, last as u32)
        );
        let gone = known
            .follow(SyncOperation::StreamWait, &called(8, 1, 2))
            .map(|told| told.record);
        assert_eq!(gone, Some(0));
    }

    #[test]
    fn what_is_captured_is_not_told() {
        let mut known = Known::default();
        assert_eq!(known.follow(SyncOperation::CaptureBegin, &called(7, 0, 1)), None);
        assert_eq!(known.follow(SyncOperation::Record, &called(7, 0x10, 2)), None);
        assert_eq!(
            known.follow(SyncOperation::Record, &called(9, 0x20, 3)),
            told(2, 3),
            "of a stream besides"
        );
        assert_eq!(
            known.follow(SyncOperation::StreamWait, &called(8, 0x10, 4)),
            None,
            "it joins"
        );
        assert_eq!(known.follow(SyncOperation::Record, &called(8, 0x30, 5)), None);
        assert_eq!(known.follow(SyncOperation::StreamWait, &called(7, 0x30, 6)), None);
        assert_eq!(known.follow(SyncOperation::CaptureEnd, &called(7, 0, 7)), None);
        assert_eq!(
            known.follow(SyncOperation::Record, &called(8, 0x30, 8)),
            told(3, 8)
        );
        assert_eq!(
            known.follow(SyncOperation::StreamWait, &called(7, 0x30, 9)),
            told(3, 8)
        );
    }
}
