//! One row with its columns by name, and what its values stand for.

use tracesmith_format::tables::{Caller, Frame, FrameKind, HealthCause};
use tracesmith_format::{Address, ImageId, ProcessId, StackId, ThreadId, Timestamp};

use super::document::{Document, ValueId};
use super::reader::Schema;
use crate::error::Error;
use crate::import::Builder;
use tracesmith_format::HostId;

/// Frames of one stack that are kept.
const MAX_FRAMES: usize = 64 << 10;

/// A row of a table.
pub(super) struct Row<'r> {
    pub(super) document: &'r Document,
    pub(super) schema: &'r Schema,
    pub(super) values: &'r [Option<ValueId>],
    pub(super) host: HostId,
}

impl Row<'_> {
    /// The value of a column that has one of these names, or is the only one of its kind.
    pub(super) fn value(&self, names: &[&str], kind: &str) -> Option<ValueId> {
        let index = self.schema.column(names, kind)?;
        let value = (*self.values.get(index)?)?;
        self.document.is_known(value).then_some(value)
    }

    /// A number; `None` also for what is none.
    pub(super) fn number(&self, names: &[&str], kind: &str) -> Option<u64> {
        let text = self.document.text_of(self.value(names, kind)?);
        match text.strip_prefix("0x") {
            Some(hexadecimal) => u64::from_str_radix(hexadecimal, 16).ok(), // no number
            None => text.parse().ok(),                                      // no number
        }
    }

    /// A value as Instruments shows it; empty when there is none.
    pub(super) fn text(&self, names: &[&str], kind: &str) -> &str {
        self.value(names, kind)
            .map_or("", |value| self.document.shown(value))
    }

    /// Start and end. What has no length, or one that reaches beyond all times, has no end.
    pub(super) fn interval(&self, builder: &mut Builder<'_, '_>) -> (Timestamp, Timestamp) {
        let start = self.time(builder);
        let length = self.number(&["duration"], "duration");
        let end = length.and_then(|length| start.0.checked_add(length));
        if end.is_none() {
            builder.doubt(HealthCause::ZERO_TIME, "rows without a duration", 1);
        }
        (start, end.map_or(Timestamp::NONE, Timestamp))
    }

    /// When it began or happened.
    pub(super) fn time(&self, builder: &mut Builder<'_, '_>) -> Timestamp {
        let time = self.number(&["start", "timestamp", "time"], "start-time");
        if time.unwrap_or(0) == 0 {
            builder.doubt(HealthCause::ZERO_TIME, "rows without a time, or at time 0", 1);
        }
        Timestamp(time.unwrap_or(0))
    }

    /// Process and thread.
    pub(super) fn caller(&self, builder: &mut Builder<'_, '_>) -> Result<Caller, Error> {
        let thread = self.value(&["thread", "start-thread"], "thread");
        let process = self
            .value(&["process", "start-process"], "process")
            .or_else(|| self.document.part(thread?, "process"));
        let process = self.process(process, builder)?;
        let thread = match thread {
            Some(thread) => self.thread(process, thread, builder)?,
            None => ThreadId::NONE,
        };
        Ok(Caller { process, thread })
    }

    /// A process, shown as `Name (pid)`.
    fn process(&self, value: Option<ValueId>, builder: &mut Builder<'_, '_>) -> Result<ProcessId, Error> {
        let Some(value) = value.filter(|value| self.document.is_known(*value)) else {
            return Ok(builder.process(self.host, 0));
        };
        let shown = self.document.shown(value);
        let (name, in_name) = match shown.rsplit_once(" (") {
            Some((name, pid)) => (name, pid.trim_end_matches(')').parse().ok()), // not every name ends so
            None => (shown, None),
        };
        let pid = self
            .document
            .part(value, "pid")
            .map(|pid| self.document.text_of(pid));
        let pid = pid.and_then(|pid| pid.parse().ok()).or(in_name); // what is no number is not known
        let process = builder.process(self.host, pid.unwrap_or(0));
        builder.process_mut(process).name = builder.string(name)?;
        Ok(process)
    }

    /// A thread, shown as `Name (0x1234) (Program, pid: 5)`.
    fn thread(
        &self,
        process: ProcessId,
        value: ValueId,
        builder: &mut Builder<'_, '_>,
    ) -> Result<ThreadId, Error> {
        let tid = self
            .document
            .part(value, "tid")
            .map(|tid| self.document.text_of(tid));
        let thread = ThreadId(tid.and_then(|tid| tid.parse().ok()).unwrap_or(0)); // 0 is not known
        let shown = self.document.shown(value);
        let name = shown.split(" (0x").next().unwrap_or(shown);
        builder.thread_mut(process, thread).name = builder.string(name)?;
        Ok(thread)
    }

    /// A stack, in any of the forms that tables have: frames with names, or bare addresses. The kernel's part, where
    /// there is one, is called by the program's.
    pub(super) fn stack(
        &self,
        process: ProcessId,
        builder: &mut Builder<'_, '_>,
    ) -> Result<(StackId, Option<String>), Error> {
        let columns: [(&[&str], FrameKind); 2] = [
            (&["cp-kernel-callstack"], FrameKind::KERNEL),
            (
                &["stack", "backtrace", "start-backtrace", "cp-user-callstack"],
                FrameKind::NATIVE,
            ),
        ];
        let mut frames = Vec::new();
        for (names, kind) in columns {
            if let Some(value) = self.value(names, "") {
                self.frames(value, kind, process, &mut frames, builder)?;
            }
        }
        let name = frames.first().and_then(|frame| frame.1.clone());
        let mut stack = StackId::NONE;
        for (frame, _) in frames.into_iter().rev() {
            let frame = builder.frame(frame)?;
            stack = builder.stack_child(stack, frame)?;
        }
        Ok((stack, name))
    }

    /// Adds the frames of a stack, the innermost first.
    fn frames(
        &self,
        stack: ValueId,
        kind: FrameKind,
        process: ProcessId,
        frames: &mut Vec<(Frame, Option<String>)>,
        builder: &mut Builder<'_, '_>,
    ) -> Result<(), Error> {
        let document = self.document;
        // Tagged backtraces have the stack inside.
        let stack = document.part(stack, "backtrace").unwrap_or(stack);
        let mut add = |frame: Frame, name: Option<String>| {
            if frames.len() < MAX_FRAMES {
                frames.push((frame, name));
            }
        };
        if let Some(address) = document.part(stack, "text-address") {
            add(bare_frame(document.text_of(address), kind), None);
        }
        for part in document
            .parts_of(stack)
            .iter()
            .filter(|part| document.is_known(**part))
        {
            match document.tag_of(*part) {
                "frame" => {
                    let (frame, name) = self.named_frame(*part, kind, process, builder)?;
                    add(frame, name);
                }
                // The first address is the one that the stack was taken at, which may stand alone as well.
                "text-addresses" => {
                    for address in document.text_of(*part).split_ascii_whitespace() {
                        add(bare_frame(address, kind), None);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn named_frame(
        &self,
        value: ValueId,
        kind: FrameKind,
        process: ProcessId,
        builder: &mut Builder<'_, '_>,
    ) -> Result<(Frame, Option<String>), Error> {
        let document = self.document;
        let attribute = |value: ValueId, name: &str| {
            let part = document.part(value, name);
            part.map_or("", |part| document.text_of(part))
        };
        let binary = document
            .part(value, "binary")
            .filter(|binary| document.is_known(*binary));
        let path = binary.map_or("", |binary| match attribute(binary, "@path") {
            "" => attribute(binary, "@name"),
            path => path,
        });
        let image = match path {
            "" => ImageId::NONE,
            path => builder.image(process, path)?,
        };
        let source = document
            .part(value, "source")
            .filter(|source| document.is_known(*source));
        let file = source.and_then(|source| document.part(source, "path"));
        let name = attribute(value, "@name");
        let frame = Frame {
            kind,
            image,
            address: Address(number(attribute(value, "@addr"))),
            function: builder.string(name)?,
            file: builder.string(file.map_or("", |file| document.text_of(file)))?,
            line: source.map_or(0, |source| attribute(source, "@line").parse().unwrap_or(0)),
        };
        Ok((frame, (!name.is_empty()).then(|| name.to_owned())))
    }
}

fn bare_frame(address: &str, kind: FrameKind) -> Frame {
    Frame {
        kind,
        address: Address(number(address)),
        ..Frame::default()
    }
}

/// An address in either base; 0 when it is none.
fn number(text: &str) -> u64 {
    match text.strip_prefix("0x") {
        Some(hexadecimal) => u64::from_str_radix(hexadecimal, 16).unwrap_or(0),
        None => text.parse().unwrap_or(0),
    }
}
