//! Enters and exits as calls: what is matched with what, and what becomes of the rest.
//!
//! A call is written when it is left, so that a thread costs memory for its open calls alone. An exit belongs to the
//! innermost open call of its function; calls inside of that one were left in a way that the log does not show, and are
//! written without an end, as are those that are open when the log ends.

use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use tracesmith_format::tables::{CallExit, Caller, HealthCause, HostCall, HostCallKind, HostShape};
use tracesmith_format::{ClockId, HostId, ImageId, ProcessId, StringId, ThreadId, Timestamp};

use super::names::FunctionNames;
use super::records::{Record, RecordKind};
use crate::error::Error;
use crate::import::Builder;

/// Open calls that are kept, of all threads together. More than any real program has on its stacks: what goes beyond
/// is written at once, without an end.
const MAX_OPEN_CALLS: usize = 4 << 20;

/// Puts calls together and writes them.
pub(super) struct Calls<'n> {
    names: &'n FunctionNames,
    clock: ClockId,
    host: HostId,
    image: ImageId,
    frequency: u64,
    threads: BTreeMap<(u32, u32), Thread>,
    open_calls: usize,
    function_strings: FxHashMap<i32, StringId>,
}

#[derive(Default)]
struct Thread {
    calls: Vec<OpenCall>,
    /// How often each function is among the open calls.
    open: FxHashMap<i32, u32>,
}

struct OpenCall {
    function: i32,
    start: Timestamp,
    cpu: u16,
    argument: u64,
    argument_count: u32,
}

impl<'n> Calls<'n> {
    pub(super) fn new(
        names: &'n FunctionNames,
        clock: ClockId,
        host: HostId,
        image: ImageId,
        frequency: u64,
    ) -> Self {
        Calls {
            names,
            clock,
            host,
            image,
            frequency,
            threads: BTreeMap::new(),
            open_calls: 0,
            function_strings: FxHashMap::default(),
        }
    }

    /// Takes the next record of its thread.
    pub(super) fn take(&mut self, record: &Record, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
        let time = self.time(record.counter, builder);
        match record.kind {
            RecordKind::Enter | RecordKind::EnterWithArgument => self.enter(record, time, builder),
            RecordKind::Exit => self.exit(record, time, CallExit::RETURN, builder),
            RecordKind::TailExit => self.exit(record, time, CallExit::TAIL, builder),
            RecordKind::CustomEvent | RecordKind::TypedEvent => self.event(record, time, builder),
        }
    }

    /// Writes what is still open.
    pub(super) fn finish(mut self, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
        for (key, mut thread) in std::mem::take(&mut self.threads) {
            while let Some(call) = thread.calls.pop() {
                let depth = thread.calls.len();
                self.write(key, &call, depth, Timestamp::NONE, CallExit::OPEN, builder)?;
            }
        }
        Ok(())
    }

    fn enter(
        &mut self,
        record: &Record,
        start: Timestamp,
        builder: &mut Builder<'_, '_>,
    ) -> Result<(), Error> {
        let key = (record.process, record.thread);
        let call = OpenCall {
            function: record.function,
            start,
            cpu: record.cpu,
            argument: record.arguments.first().copied().unwrap_or(0),
            argument_count: record.arguments.len() as u32,
        };
        if self.open_calls >= MAX_OPEN_CALLS {
            builder.doubt(HealthCause::OTHER, "calls deeper than any real program's", 1);
            return self.write(key, &call, 0, Timestamp::NONE, CallExit::OPEN, builder);
        }
        let thread = self.threads.entry(key).or_default();
        *thread.open.entry(record.function).or_default() += 1;
        thread.calls.push(call);
        self.open_calls += 1;
        Ok(())
    }

    fn exit(
        &mut self,
        record: &Record,
        end: Timestamp,
        exit: CallExit,
        builder: &mut Builder<'_, '_>,
    ) -> Result<(), Error> {
        let key = (record.process, record.thread);
        let thread = self.threads.get(&key);
        let open = thread.and_then(|thread| thread.open.get(&record.function));
        if open.copied().unwrap_or(0) == 0 {
            builder.skip("exits of calls whose beginning was not recorded", 1);
            return Ok(());
        }
        while let Some((call, depth)) = self.pop(key) {
            if call.function == record.function {
                return self.write(key, &call, depth, end, exit, builder);
            }
            self.write(key, &call, depth, Timestamp::NONE, CallExit::OPEN, builder)?;
        }
        Ok(())
    }

    /// The innermost open call of a thread, and how many are above it.
    fn pop(&mut self, key: (u32, u32)) -> Option<(OpenCall, usize)> {
        let thread = self.threads.get_mut(&key)?;
        let call = thread.calls.pop()?;
        if let Some(count) = thread.open.get_mut(&call.function) {
            *count -= 1;
        }
        self.open_calls -= 1;
        Some((call, thread.calls.len()))
    }

    fn write(
        &mut self,
        key: (u32, u32),
        call: &OpenCall,
        depth: usize,
        end: Timestamp,
        exit: CallExit,
        builder: &mut Builder<'_, '_>,
    ) -> Result<(), Error> {
        let backwards = end.is_some() && end < call.start;
        if backwards {
            builder.doubt(HealthCause::OTHER, "calls that end before they begin", 1);
        }
        if call.argument_count > 1 {
            builder.skip("further arguments of a call", u64::from(call.argument_count) - 1);
        }
        let name = self.function_name(call.function, builder)?;
        let row = HostCall {
            start: call.start,
            end: if backwards { Timestamp::NONE } else { end },
            depth: depth as u32,
            cpu: u32::from(call.cpu),
            argument: call.argument,
            caller: self.caller(key, builder),
            shape: HostShape {
                name,
                kind: HostCallKind::FUNCTION,
                image: self.image,
                exit,
                ..HostShape::default()
            },
            ..HostCall::default()
        };
        builder.push(self.clock, &row)
    }

    fn event(
        &mut self,
        record: &Record,
        time: Timestamp,
        builder: &mut Builder<'_, '_>,
    ) -> Result<(), Error> {
        let (name, category) = match record.kind {
            RecordKind::TypedEvent => (
                format!("typed event {}", record.event_type),
                builder.string("typed event")?,
            ),
            _ => ("custom event".to_owned(), builder.string("custom event")?),
        };
        let key = (record.process, record.thread);
        let depth = self.threads.get(&key).map_or(0, |thread| thread.calls.len());
        let row = HostCall {
            start: time,
            end: time,
            depth: depth as u32,
            cpu: u32::from(record.cpu),
            detail: builder.string(&text_of(&record.data))?,
            caller: self.caller(key, builder),
            shape: HostShape {
                name: builder.string(&name)?,
                kind: HostCallKind::CUSTOM,
                category,
                ..HostShape::default()
            },
            ..HostCall::default()
        };
        builder.push(self.clock, &row)
    }

    fn caller(&self, (pid, tid): (u32, u32), builder: &mut Builder<'_, '_>) -> Caller {
        let process: ProcessId = builder.process(self.host, pid);
        let thread = ThreadId(u64::from(tid));
        builder.thread_mut(process, thread);
        Caller { process, thread }
    }

    fn function_name(&mut self, function: i32, builder: &mut Builder<'_, '_>) -> Result<StringId, Error> {
        if let Some(name) = self.function_strings.get(&function) {
            return Ok(*name);
        }
        let name = match self.names.get(function) {
            Some(name) => builder.string(name)?,
            None => builder.string(&format!("function {function}"))?,
        };
        self.function_strings.insert(function, name);
        Ok(name)
    }

    fn time(&self, counter: u64, builder: &mut Builder<'_, '_>) -> Timestamp {
        nanoseconds(counter, self.frequency).unwrap_or_else(|| {
            builder.doubt(
                HealthCause::ZERO_TIME,
                "times beyond what nanoseconds can count",
                1,
            );
            Timestamp::NONE
        })
    }
}

/// A counter's time, rounded down to a nanosecond. A log that states no frequency has nanoseconds already.
pub(super) fn nanoseconds(counter: u64, frequency: u64) -> Option<Timestamp> {
    if frequency == 0 {
        return Some(Timestamp(counter));
    }
    let nanoseconds = u128::from(counter) * 1_000_000_000 / u128::from(frequency);
    u64::try_from(nanoseconds).ok().map(Timestamp) // the caller counts what does not fit
}

/// An event's bytes as text where they are text, else as numbers.
fn text_of(data: &[u8]) -> String {
    match std::str::from_utf8(data) {
        Ok(text) if !text.contains('\0') => text.to_owned(),
        _ => data
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<Vec<_>>()
            .join(" "),
    }
}
