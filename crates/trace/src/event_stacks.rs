//! The stacks of an event: names, files and lines, ready to be shown.

use std::collections::HashMap;
use std::fmt;

use serde::Serialize;
use tracesmith_format::tables::{FrameKind, StackEnd};
use tracesmith_format::{Columns, CorrelationId, ProcessId, StackId};

use crate::analysis::ForwardReport;
use crate::error::Error;
use crate::model::event::{Event, EventName};
use crate::model::stacks::FrameView;
use crate::model::trace::Trace;

/// One function of a stack, with its names resolved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SourceFrame {
    /// The kind of code: native, Python, …; `None` if this version does not know it.
    pub kind: Option<&'static str>,
    /// The function. If it is unknown: the file name of the image and the address.
    pub function: String,
    /// The source file, or empty.
    pub file: String,
    /// The line in that file, or 0.
    pub line: u32,
    /// The executable or library of a native frame, or empty.
    pub image: String,
    /// The address within the image.
    pub address: u64,
}

/// A stack with its names resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceStack {
    /// The functions, innermost first.
    pub frames: Vec<SourceFrame>,
    /// Why the stack ends after the last frame.
    pub end: StackEnd,
}

/// The stacks that explain an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventStack {
    /// The stack of the event itself. For work in a CUDA graph, the stack that created the node.
    pub own: SourceStack,
    /// The stack of the launch, if it differs from `own`.
    pub launch: Option<SourceStack>,
    /// For backward work: the forward operator and its stack.
    pub forward: Option<(String, SourceStack)>,
}

/// Finds the stacks of events. Reads all API calls once, when it is created.
#[derive(Debug)]
pub struct EventStacks {
    /// The stacks of API calls.
    launches: HashMap<(ProcessId, CorrelationId), StackId>,
    forward: ForwardReport,
}

impl SourceFrame {
    fn of(trace: &Trace, frame: &FrameView) -> Self {
        let (file, line) = match &frame.symbol {
            Some(symbol) => (symbol.file, symbol.line),
            None => (frame.frame.file, frame.frame.line),
        };
        let is_native = frame.frame.kind == FrameKind::NATIVE;
        let image = trace.image(frame.frame.image).filter(|_| is_native);
        SourceFrame {
            kind: frame.frame.kind.name(),
            function: trace.frame_name(frame),
            file: trace.string(file).to_owned(),
            line,
            image: image
                .map(|image| trace.string(image.path).to_owned())
                .unwrap_or_default(),
            address: frame.frame.address.0,
        }
    }
}

/// `function  file:line`, or `function  in image` if the source file is unknown.
impl fmt::Display for SourceFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.function)?;
        match (self.file.as_str(), self.line) {
            ("", _) if self.image.is_empty() => Ok(()),
            ("", _) => write!(f, "  in {}", self.image),
            (file, 0) => write!(f, "  {file}"),
            (file, line) => write!(f, "  {file}:{line}"),
        }
    }
}

impl SourceStack {
    /// The stack with this id. It is empty if the id is unknown.
    pub fn of(trace: &Trace, stack: StackId) -> Self {
        let view = trace.stack(stack);
        SourceStack {
            frames: view
                .frames
                .iter()
                .map(|frame| SourceFrame::of(trace, frame))
                .collect(),
            end: view.end,
        }
    }

    /// One line per function, and one more if frames are missing at the end.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        let missing = match self.end {
            StackEnd::LIMIT => Some("… more frames were not captured".to_owned()),
            StackEnd::BROKEN => Some("… the stack could not be unwound further".to_owned()),
            _ => None,
        };
        self.frames.iter().map(ToString::to_string).chain(missing)
    }
}

impl EventStacks {
    /// Reads the stacks of all API calls of a trace.
    pub fn of(trace: &Trace) -> Result<Self, Error> {
        let forward = ForwardReport::of(trace)?;
        let mut launches = HashMap::new();
        for (_, calls) in trace.api_calls.stream() {
            for row in (0..calls.len()).filter(|row| calls.stack[*row].is_some()) {
                let process = calls.caller.get(row).process;
                launches.insert((process, calls.correlation[row]), calls.stack[row]);
            }
        }
        Ok(EventStacks { launches, forward })
    }

    /// The stacks of an event of the same trace.
    pub fn find(&self, trace: &Trace, event: &Event) -> EventStack {
        let call = (event.process, event.correlation);
        let launch = self.launches.get(&call).filter(|launch| **launch != event.stack);
        let forward = self.forward.of_call(event.process, event.correlation);
        EventStack {
            own: SourceStack::of(trace, event.stack),
            launch: launch.map(|launch| SourceStack::of(trace, *launch)),
            forward: forward.map(|forward| {
                let operator = match forward.operator {
                    EventName::Id(id) => trace.string(id),
                    EventName::Word(word) => word,
                };
                (operator.to_owned(), SourceStack::of(trace, forward.stack))
            }),
        }
    }
}
