//! The place in the program's own code that a stack comes from.

use tracesmith_format::StackId;
use tracesmith_format::tables::FrameKind;

use crate::model::stacks::FrameView;
use crate::model::trace::Trace;

/// Where the program asked for something: its innermost Python line outside of installed packages, else the innermost line
/// that has a file, else the innermost function. `no stack` when none was taken.
pub fn source_line(trace: &Trace, stack: StackId) -> String {
    if !stack.is_some() {
        return "no stack".to_owned();
    }
    let view = trace.stack(stack);
    let is_own = |frame: &&FrameView| {
        frame.frame.kind == FrameKind::PYTHON && {
            let (file, _) = place(trace, frame);
            !file.contains("site-packages") && !file.contains("dist-packages") && !file.starts_with('<')
        }
    };
    let python = view.frames.iter().find(is_own);
    let with_file = || view.frames.iter().find(|frame| !place(trace, frame).0.is_empty());
    match python.or_else(with_file).or(view.frames.first()) {
        Some(frame) => {
            let (file, line) = place(trace, frame);
            let name = trace.frame_name(frame);
            match (file.rsplit('/').next().unwrap_or(""), line) {
                ("", _) => name,
                (file, 0) => format!("{file} ({name})"),
                (file, line) => format!("{file}:{line} ({name})"),
            }
        }
        None => "no stack".to_owned(),
    }
}

fn place<'t>(trace: &'t Trace, frame: &FrameView) -> (&'t str, u32) {
    match &frame.symbol {
        Some(symbol) => (trace.string(symbol.file), symbol.line),
        None => (trace.string(frame.frame.file), frame.frame.line),
    }
}
