//! Stacks below rows.

use serde_json::{Value as Json, json};
use tracesmith_trace::{Event, EventStacks, SourceStack, Trace};

/// Whether rows are followed by their stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stacks {
    Hidden,
    Shown,
}

/// The lines below the row of an event.
pub(super) fn lines(stacks: &EventStacks, trace: &Trace, event: &Event) -> Vec<String> {
    let found = stacks.find(trace, event);
    let indented = |stack: &SourceStack| -> Vec<String> {
        let lines = stack.lines();
        lines.map(|line| format!("      {line}")).collect()
    };
    let mut lines = indented(&found.own);
    if let Some(launch) = &found.launch {
        lines.push("    launched by".to_owned());
        lines.extend(indented(launch));
    }
    if let Some((operator, stack)) = &found.forward {
        lines.push(format!("    backward of {operator}"));
        lines.extend(indented(stack));
    }
    lines
}

/// The same for JSON output, by field name.
pub(super) fn json(stacks: &EventStacks, trace: &Trace, event: &Event) -> Vec<(&'static str, Json)> {
    let found = stacks.find(trace, event);
    let mut values = vec![("stack", json!(found.own.frames))];
    if let Some(launch) = &found.launch {
        values.push(("launch_stack", json!(launch.frames)));
    }
    if let Some((operator, stack)) = &found.forward {
        values.push(("forward", json!(operator)));
        values.push(("forward_stack", json!(stack.frames)));
    }
    values
}
