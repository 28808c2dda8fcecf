//! Events of the trace-event form, as text: the frame that all of them share.
//!
//! Every event begins with a comma; the sweep takes the first one away. Arguments are written as members with a comma behind
//! each, of which the last is taken back.

use tracesmith_format::{StackId, Timestamp};

use crate::export::json_text::{push_format, push_number, push_signed_micros};
use crate::export::sweep::Item;
use crate::export::tracks::{Form, Tracks};

/// How an event stands in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// It lasts.
    Stretch,
    /// It happens, or its end is not known.
    Instant,
    /// It was still running when the recording ended.
    Open,
}

impl Phase {
    /// What an item is by its times.
    pub(super) fn of(item: &Item) -> Self {
        if item.end.is_some() {
            Phase::Stretch
        } else {
            Phase::Instant
        }
    }
}

/// What all events of a file need.
#[derive(Clone, Copy)]
pub(super) struct EventText<'t> {
    pub(super) tracks: &'t Tracks,
    /// Times are written as microseconds after this one.
    pub(super) base: u64,
}

/// An event of a row.
pub(super) struct RowEvent<'e> {
    pub(super) phase: Phase,
    pub(super) item: &'e Item,
    /// A number that no other row has.
    pub(super) number: u64,
    /// `,"cat":"…","name":"…"`
    pub(super) head: &'e [u8],
    pub(super) stack: StackId,
}

impl EventText<'_> {
    /// Writes an event; `args` adds its arguments.
    #[inline]
    pub(super) fn event(&self, out: &mut Vec<u8>, event: &RowEvent<'_>, args: impl FnOnce(&mut Vec<u8>)) {
        let output = self.tracks.output(event.item.track);
        let is_async = output.form == Form::Async && event.phase != Phase::Instant;
        let phase: &[u8] = match event.phase {
            _ if is_async => b",\n{\"ph\":\"b\"",
            Phase::Stretch => b",\n{\"ph\":\"X\"",
            Phase::Instant => b",\n{\"ph\":\"i\",\"s\":\"t\"",
            Phase::Open => b",\n{\"ph\":\"B\"",
        };
        out.extend_from_slice(phase);
        out.extend_from_slice(event.head);
        out.extend_from_slice(&output.text);
        if is_async {
            push_async_id(out, event.number);
        }
        self.time(out, event.item.start);
        if event.phase == Phase::Stretch && !is_async {
            out.extend_from_slice(b",\"dur\":");
            push_signed_micros(out, event.item.end.0.wrapping_sub(event.item.start.0) as i64);
        }
        if event.stack.is_some() {
            out.extend_from_slice(b",\"sf\":");
            push_number(out, event.stack.0);
        }
        out.extend_from_slice(b",\"args\":{");
        args(out);
        if out.last() == Some(&b',') {
            out.pop();
        }
        out.extend_from_slice(b"}}");
        if is_async && event.phase == Phase::Stretch {
            out.extend_from_slice(b",\n{\"ph\":\"e\"");
            out.extend_from_slice(event.head);
            out.extend_from_slice(&output.text);
            push_async_id(out, event.number);
            self.time(out, event.item.end);
            out.push(b'}');
        }
    }

    /// Writes one end of an arrow. `phase` is `s`, `t` or `f`, `head` as for an event, `id` with its quotes if it has any.
    pub(super) fn arrow(
        &self,
        out: &mut Vec<u8>,
        phase: Arrow,
        head: &[u8],
        id: std::fmt::Arguments<'_>,
        item: &Item,
    ) {
        let phase: &[u8] = match phase {
            Arrow::Start => b",\n{\"ph\":\"s\"",
            Arrow::Step => b",\n{\"ph\":\"t\"",
            Arrow::End => b",\n{\"ph\":\"f\",\"bp\":\"e\"",
        };
        out.extend_from_slice(phase);
        out.extend_from_slice(head);
        out.extend_from_slice(b",\"id\":");
        push_format(out, id);
        out.extend_from_slice(&self.tracks.output(item.track).text);
        self.time(out, item.start);
        out.push(b'}');
    }

    /// Adds `,"ts":…`.
    pub(super) fn time(&self, out: &mut Vec<u8>, time: Timestamp) {
        out.extend_from_slice(b",\"ts\":");
        self.micros(out, time);
    }

    /// Adds a time.
    pub(super) fn micros(&self, out: &mut Vec<u8>, time: Timestamp) {
        push_signed_micros(out, time.0.wrapping_sub(self.base) as i64);
    }
}

/// Which end of an arrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrow {
    /// Where it starts.
    Start,
    /// Where it passes.
    Step,
    /// Where it ends.
    End,
}

fn push_async_id(out: &mut Vec<u8>, number: u64) {
    push_format(out, format_args!(",\"id2\":{{\"local\":\"0x{:x}\"}}", number + 1));
}
