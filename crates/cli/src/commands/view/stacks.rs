//! Stacks below rows.

use std::collections::HashMap;

use serde_json::{Value as Json, json};
use tracesmith_format::tables::{FrameKind, StackEnd};
use tracesmith_format::{Columns, CorrelationId, ProcessId, StackId};
use tracesmith_trace::analysis::{Forward, ForwardReport};
use tracesmith_trace::{Event, EventName, FrameView, Trace};

/// Whether rows have their stacks below them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stacks {
    Hidden,
    Shown,
}

/// The stacks of a trace's events.
pub(super) struct StackTexts<'t> {
    trace: &'t Trace,
    /// Of calls, for work whose own stack is that of another moment.
    launches: HashMap<(ProcessId, CorrelationId), StackId>,
    /// Of forward operators, for work that makes their gradients.
    forward: ForwardReport,
}

impl<'t> StackTexts<'t> {
    /// Reads the stacks of all calls.
    pub(super) fn new(trace: &'t Trace) -> anyhow::Result<Self> {
        let forward = ForwardReport::of(trace)?;
        let mut launches = HashMap::new();
        for (_, calls) in trace.api_calls.stream() {
            for row in (0..calls.len()).filter(|row| calls.stack[*row].is_some()) {
                let process = calls.caller.get(row).process;
                launches.insert((process, calls.correlation[row]), calls.stack[row]);
            }
        }
        Ok(StackTexts {
            trace,
            launches,
            forward,
        })
    }

    /// What stands below a row. Work of a graph has two stacks: that which made its node, and that of the launch. Backward
    /// work also has that of the forward operator.
    pub(super) fn lines(&self, event: &Event) -> Vec<String> {
        let mut lines = self.stack_lines(event.stack);
        if let Some(launch) = self.launch_of(event) {
            lines.push("    launched by".to_owned());
            lines.extend(self.stack_lines(launch));
        }
        if let Some(forward) = self.forward.of_call(event.process, event.correlation) {
            lines.push(format!("    backward of {}", self.operator(&forward)));
            lines.extend(self.stack_lines(forward.stack));
        }
        lines
    }

    /// The same as values, by their names.
    pub(super) fn json(&self, event: &Event) -> Vec<(&'static str, Json)> {
        let mut values = vec![("stack", self.stack_json(event.stack))];
        if let Some(launch) = self.launch_of(event) {
            values.push(("launch_stack", self.stack_json(launch)));
        }
        if let Some(forward) = self.forward.of_call(event.process, event.correlation) {
            values.push(("forward", json!(self.operator(&forward))));
            values.push(("forward_stack", self.stack_json(forward.stack)));
        }
        values
    }

    fn operator(&self, forward: &Forward) -> &'t str {
        match forward.operator {
            EventName::Id(id) => self.trace.string(id),
            EventName::Word(word) => word,
        }
    }

    /// The stack of an event's call, when it is another one.
    fn launch_of(&self, event: &Event) -> Option<StackId> {
        let launch = *self.launches.get(&(event.process, event.correlation))?;
        (launch != event.stack).then_some(launch)
    }

    fn stack_lines(&self, stack: StackId) -> Vec<String> {
        let view = self.trace.stack(stack);
        let mut lines: Vec<String> = view.frames.iter().map(|frame| self.line(frame)).collect();
        match view.end {
            StackEnd::LIMIT => lines.push("      … more frames were not captured".to_owned()),
            StackEnd::BROKEN => lines.push("      … the stack could not be unwound further".to_owned()),
            _ => {}
        }
        lines
    }

    fn line(&self, frame: &FrameView) -> String {
        let place = Place::of(self.trace, frame);
        let mut line = format!("      {}", place.name);
        match (place.file, place.line) {
            ("", _) => {}
            (file, 0) => line += &format!("  {file}"),
            (file, number) => line += &format!("  {file}:{number}"),
        }
        if place.file.is_empty() && !place.image.is_empty() {
            line += &format!("  in {}", place.image);
        }
        line
    }

    fn stack_json(&self, stack: StackId) -> Json {
        let frames = self.trace.stack(stack).frames;
        let list = frames.iter().map(|frame| {
            let place = Place::of(self.trace, frame);
            json!({
                "kind": frame.frame.kind.name(),
                "function": place.name,
                "file": place.file,
                "line": place.line,
                "image": place.image,
                "address": frame.frame.address.0,
            })
        });
        Json::Array(list.collect())
    }
}

struct Place<'t> {
    name: String,
    file: &'t str,
    line: u32,
    image: &'t str,
}

impl<'t> Place<'t> {
    fn of(trace: &'t Trace, frame: &FrameView) -> Self {
        let (file, line) = match &frame.symbol {
            Some(symbol) => (symbol.file, symbol.line),
            None => (frame.frame.file, frame.frame.line),
        };
        let image = trace.image(frame.frame.image);
        let is_native = frame.frame.kind == FrameKind::NATIVE;
        Place {
            name: trace.frame_name(frame),
            file: trace.string(file),
            line,
            image: image
                .filter(|_| is_native)
                .map(|image| trace.string(image.path))
                .unwrap_or_default(),
        }
    }
}
