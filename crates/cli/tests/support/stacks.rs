//! Stacks of a trace as tests ask for them.

#![allow(dead_code, reason = "not every test file needs all of it")]

use tracesmith_format::StackId;
use tracesmith_format::tables::{FrameKind, StackEnd};
use tracesmith_trace::{FrameView, Trace};

/// A function of a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    pub kind: FrameKind,
    /// The last part of the image's path; empty for Python.
    pub image: String,
    pub name: String,
    /// The last part of the file's path.
    pub file: String,
    pub line: u32,
}

/// The functions of a stack, the innermost first.
pub fn functions(trace: &Trace, stack: StackId) -> Vec<Function> {
    let frames = trace.stack(stack).frames;
    frames.iter().map(|frame| function(trace, frame)).collect()
}

/// Their names alone, without arguments, results and parameters of templates' types.
pub fn names(trace: &Trace, stack: StackId) -> Vec<String> {
    let functions = functions(trace, stack);
    functions.iter().map(|function| bare(&function.name)).collect()
}

fn function(trace: &Trace, view: &FrameView) -> Function {
    let (name, file, line) = match &view.symbol {
        Some(symbol) => (symbol.function, symbol.file, symbol.line),
        None => (view.frame.function, view.frame.file, view.frame.line),
    };
    let last_part = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let image = trace.image(view.frame.image);
    Function {
        kind: view.frame.kind,
        image: image
            .map(|image| last_part(trace.string(image.path)))
            .unwrap_or_default(),
        name: trace.string(name).to_owned(),
        file: last_part(trace.string(file)),
        line,
    }
}

/// `void around<3>(int)` is `around<3>`, a lambda is `lambda`.
pub fn bare(name: &str) -> String {
    if name.contains("{lambda") {
        // What a lambda is given to has its type as a parameter.
        let is_itself = name.contains("::operator()") && !name.contains("call_with<");
        return if is_itself { "lambda" } else { "call_with" }.to_owned();
    }
    let name = name.split('(').next().unwrap_or(name);
    name.rsplit(' ').next().unwrap_or(name).to_owned()
}

/// How the stack ends, at its outermost frame.
pub fn end(trace: &Trace, stack: StackId) -> StackEnd {
    trace.stack(stack).end
}
