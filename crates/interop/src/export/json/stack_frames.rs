//! The `stackFrames` of a file: the tree of stacks, each node with its caller.

use tracesmith_format::StackId;
use tracesmith_format::tables::FrameKind;
use tracesmith_trace::{FrameView, StackNode, Trace};

use crate::error::Error;
use crate::export::Out;
use crate::export::json_text::{push_format, push_string};

/// Writes all stacks of the trace; events name them by their number. A place with inlined functions has a node for each: the
/// innermost has the stack's own number.
pub(super) fn write(trace: &Trace, out: &mut Out<'_>) -> Result<(), Error> {
    let mut nodes = trace.stack_nodes().peekable();
    if nodes.peek().is_none() {
        return Ok(());
    }
    out.put(b",\n\"stackFrames\":{")?;
    let mut separator = "\n";
    for StackNode {
        id,
        parent,
        functions,
    } in nodes
    {
        for (depth, frame) in functions.iter().enumerate().rev() {
            let text = out.buffer();
            push_format(
                text,
                format_args!("{separator}\"{}\":{{\"name\":", node(id, depth)),
            );
            push_string(text, &trace.frame_name(frame));
            text.extend_from_slice(b",\"category\":");
            push_string(text, category(trace, frame));
            let is_outermost = depth + 1 == functions.len();
            match parent {
                Some(parent) if is_outermost => {
                    push_format(text, format_args!(",\"parent\":\"{}\"", parent.0))
                }
                None if is_outermost => {}
                _ => push_format(text, format_args!(",\"parent\":\"{}\"", node(id, depth + 1))),
            }
            text.push(b'}');
            separator = ",\n";
            out.settle()?;
        }
    }
    out.put(b"\n}")
}

/// The key of a node; inlined callers of a place stand behind a point.
fn node(id: StackId, depth: usize) -> String {
    match depth {
        0 => id.0.to_string(),
        depth => format!("{}.{depth}", id.0),
    }
}

/// The file that a frame is in, or else what kind of code it is.
fn category<'t>(trace: &'t Trace, frame: &FrameView) -> &'t str {
    let file = frame
        .symbol
        .as_ref()
        .map_or(frame.frame.file, |symbol| symbol.file);
    match trace.string(file) {
        "" => frame
            .frame
            .kind
            .name()
            .or(FrameKind::NATIVE.name())
            .unwrap_or("native"),
        file => file,
    }
}
