//! The place in the program's own code that a stack comes from.

use tracesmith_format::StackId;
use tracesmith_format::tables::FrameKind;

use super::host_places::NO_PLACE;
use crate::model::stacks::FrameView;
use crate::model::trace::Trace;

/// Parts of paths of Python files that are not the program's: installed packages, and code that torch.compile generates.
const NOT_OWN: [&str; 3] = ["site-packages", "dist-packages", "/torchinductor"];

/// The source line of a stack that its reader can change. The first of these that exists:
///
/// 1. the innermost Python line outside of installed packages and generated code
/// 2. the innermost line with a known file
/// 3. the innermost named function that is not CUDA's own
/// 4. the innermost frame outside of CUDA's libraries
///
/// `no stack` if the event has no stack.
pub fn source_line(trace: &Trace, stack: StackId) -> String {
    if !stack.is_some() {
        return NO_PLACE.to_owned();
    }
    let view = trace.stack(stack);
    let python = view.frames.iter().find(|frame| is_own(trace, frame));
    let with_file = || view.frames.iter().find(|frame| !place(trace, frame).0.is_empty());
    let own = &view.frames[stubs(trace, &view.frames)..];
    let outside = || own.iter().filter(|frame| !is_of_cuda(trace, frame));
    let named = || outside().find(|frame| !function(trace, frame).is_empty());
    let found = python
        .or_else(with_file)
        .or_else(named)
        .or_else(|| outside().next());
    match found.or(view.frames.first()) {
        Some(frame) => text(trace, frame),
        None => NO_PLACE.to_owned(),
    }
}

/// The innermost Python line of a stack that is the program's own.
pub(super) fn own_line(trace: &Trace, stack: StackId) -> Option<String> {
    let view = trace.stack(stack);
    let own = view.frames.iter().find(|frame| is_own(trace, frame));
    own.map(|frame| text(trace, frame))
}

fn is_own(trace: &Trace, frame: &FrameView) -> bool {
    let (file, _) = place(trace, frame);
    frame.frame.kind == FrameKind::PYTHON
        && !NOT_OWN.iter().any(|part| file.contains(part))
        && !file.starts_with('<')
}

fn text(trace: &Trace, frame: &FrameView) -> String {
    let (file, line) = place(trace, frame);
    let name = trace.frame_name(frame);
    match (file.rsplit('/').next().unwrap_or(""), line) {
        ("", _) => name,
        (file, 0) => format!("{file} ({name})"),
        (file, line) => format!("{file}:{line} ({name})"),
    }
}

/// How many of the innermost frames belong to a launch itself: the compiler makes two functions on the host for every
/// kernel, one with the kernel's name that calls the other.
fn stubs(trace: &Trace, frames: &[FrameView]) -> usize {
    const STUB: &str = "__device_stub__";
    let is_stub = |frame: &FrameView| function(trace, frame).starts_with(STUB);
    let Some(stub) = frames.iter().position(is_stub) else {
        return 0;
    };
    let mangled = &function(trace, &frames[stub])[STUB.len()..];
    let has_its_name = |frame: &FrameView| {
        let name = function(trace, frame).split(['(', '<']).next().unwrap_or("");
        let name = name.rsplit([':', ' ']).next().unwrap_or("");
        !name.is_empty() && mangled.contains(name)
    };
    stub + 1 + usize::from(frames.get(stub + 1).is_some_and(has_its_name))
}

/// Whether a frame is of CUDA's libraries, also where they are linked into the program.
fn is_of_cuda(trace: &Trace, frame: &FrameView) -> bool {
    let image = trace.image(frame.frame.image);
    let file = image.map_or("", |image| {
        let path = trace.string(image.path);
        path.rsplit('/').next().unwrap_or(path)
    });
    let is_library = ["libcuda.", "libcudart", "libcupti", "libnvidia-"]
        .iter()
        .any(|beginning| file.starts_with(beginning));
    let is_linked_in = ["cuda", "__cuda", "cudart::", "libcudart_static_"]
        .iter()
        .any(|beginning| function(trace, frame).starts_with(beginning));
    is_library || is_linked_in
}

fn function<'t>(trace: &'t Trace, frame: &FrameView) -> &'t str {
    let function = match &frame.symbol {
        Some(symbol) => symbol.function,
        None => frame.frame.function,
    };
    trace.string(function)
}

fn place<'t>(trace: &'t Trace, frame: &FrameView) -> (&'t str, u32) {
    match &frame.symbol {
        Some(symbol) => (trace.string(symbol.file), symbol.line),
        None => (trace.string(frame.frame.file), frame.frame.line),
    }
}
