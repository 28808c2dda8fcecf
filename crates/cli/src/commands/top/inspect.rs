//! The selected event in words: a few lines below the rows, or all that is known of it.

use tracesmith_format::Timestamp;
use tracesmith_trace::overview::{Picked, Surroundings};
use tracesmith_trace::{Event, EventKind, SourceStack, units};

use super::draw::Scene;

/// A few lines: the event, its API call, and the ranges around it.
pub(super) fn short(scene: &Scene<'_>) -> Vec<String> {
    let (Some(picked), Some(inspected)) = (&scene.state.picked, scene.inspected) else {
        return Vec::new();
    };
    let mut lines = vec![String::new(), head(scene, picked)];
    if !picked.detail.is_empty() {
        lines.push(format!("  {}", picked.detail));
    }
    lines.extend(call(scene, inspected));
    lines.extend(path(scene, inspected));
    let stack = scene.trace.stack(inspected.stack);
    if let Some(frame) = stack.frames.first() {
        lines.push(format!("  from {}", scene.trace.frame_name(frame)));
    }
    lines
}

/// Everything: its call, its path, its stack and every column.
pub(super) fn full(scene: &Scene<'_>) -> Vec<String> {
    let (Some(picked), Some(inspected)) = (&scene.state.picked, scene.inspected) else {
        return Vec::new();
    };
    let mut lines = vec![head(scene, picked)];
    if !picked.detail.is_empty() {
        lines.push(format!("  {}", picked.detail));
    }
    lines.extend(call(scene, inspected));
    for event in &inspected.inside {
        lines.push(format!(
            "  in {} {}, {}",
            event.kind.name(),
            scene.trace.event_name(event),
            units::nanos(event.duration())
        ));
    }
    let stack = SourceStack::of(scene.trace, inspected.stack);
    if !stack.frames.is_empty() {
        lines.push(String::new());
        lines.push("stack, innermost frame first".to_owned());
    }
    lines.extend(stack.lines().map(|line| format!("  {line}")));
    lines.push(String::new());
    lines.push("columns, as stored".to_owned());
    let widest = picked
        .fields
        .iter()
        .map(|(name, _)| name.len())
        .max()
        .unwrap_or(0);
    for (name, value) in &picked.fields {
        lines.push(format!("  {name:<widest$}  {value}"));
    }
    lines
}

fn head(scene: &Scene<'_>, picked: &Picked) -> String {
    let event = &picked.event;
    if event.kind == EventKind::Counter {
        let name = scene.trace.event_name(event);
        return format!("counter {name} at {}", offset(scene, event.start));
    }
    let length = match event.end {
        Timestamp::NONE => "no end".to_owned(),
        end if end < event.start => "ends before it starts".to_owned(),
        _ => units::nanos(event.duration()),
    };
    let (kind, name) = (event.kind.name(), scene.trace.event_name(event));
    let what = if kind == name {
        name.to_owned()
    } else {
        format!("{kind} {name}")
    };
    format!("{what}, {length} at {}", offset(scene, event.start))
}

fn call(scene: &Scene<'_>, inspected: &Surroundings) -> Option<String> {
    let call: &Event = inspected.call.as_ref()?;
    Some(format!(
        "  API call {} on thread {}, {} at {}",
        scene.trace.event_name(call),
        call.thread.0,
        units::nanos(call.duration()),
        offset(scene, call.start)
    ))
}

fn path(scene: &Scene<'_>, inspected: &Surroundings) -> Option<String> {
    let names: Vec<&str> = inspected
        .inside
        .iter()
        .map(|event| scene.trace.event_name(event))
        .collect();
    (!names.is_empty()).then(|| format!("  in {}", names.join(" > ")))
}

/// Seconds from the trace's start, to the nanosecond.
pub(super) fn offset(scene: &Scene<'_>, time: Timestamp) -> String {
    let nanos = time.0.saturating_sub(scene.zero());
    format!("{}.{:09} s", nanos / 1_000_000_000, nanos % 1_000_000_000)
}
