//! The code that made an event.

use serde::Serialize;
use tracesmith_format::StackId;
use tracesmith_trace::{Event as Row, SourceFrame, SourceStack, Trace};

use super::Event;
use crate::reply::Failure;
use crate::routes::Subject;

/// A stack, innermost frame first.
#[derive(Debug, Default, Serialize)]
pub(super) struct StackOf {
    frames: Vec<SourceFrame>,
    /// How it ends: `root`, or why frames are missing.
    end: Option<&'static str>,
}

/// The operator of the forward pass that work of the backward pass belongs to.
#[derive(Debug, Serialize)]
pub(super) struct Forward {
    name: String,
    stack: StackOf,
}

impl From<SourceStack> for StackOf {
    fn from(stack: SourceStack) -> Self {
        StackOf {
            end: stack.end.name().filter(|_| !stack.frames.is_empty()),
            frames: stack.frames,
        }
    }
}

impl StackOf {
    /// The stack with this id; empty for none.
    pub(super) fn of(trace: &Trace, stack: StackId) -> Self {
        match stack.is_some() {
            true => SourceStack::of(trace, stack).into(),
            false => Self::default(),
        }
    }
}

/// Adds the stacks of an event. Most traces have none, and then nothing is read.
pub(super) fn describe(subject: &Subject, row: &Row, event: &mut Event) -> Result<(), Failure> {
    let trace = &subject.ready.trace;
    if trace.stack_nodes().next().is_none() {
        return Ok(());
    }
    let stacks = subject.ready.facts.stacks(trace)?;
    let found = stacks.find(trace, row);
    let (own, launch) = match (found.own.frames.is_empty(), found.launch) {
        // Work has the code of its launch, unless it was recorded with code of its own.
        (true, Some(launch)) => (launch, None),
        (_, launch) => (found.own, launch),
    };
    event.stack = own.into();
    event.launch_stack = launch.map(StackOf::from);
    event.forward = found.forward.map(|(name, stack)| Forward {
        name,
        stack: stack.into(),
    });
    Ok(())
}
