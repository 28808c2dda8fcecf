//! The tables that all threads of a profile share: strings, functions, frames and the tree of stacks.

use rustc_hash::FxHashMap;
use tracesmith_format::StackId;
use tracesmith_trace::{EventName, Trace};

use crate::export::json_text::{push_number, push_string};
use crate::export::weights::{FrameText, frame_texts};

/// Strings, each once.
#[derive(Default)]
pub(super) struct Texts {
    list: Vec<String>,
    known: FxHashMap<String, u32>,
}

impl Texts {
    /// Where a string is.
    pub(super) fn index(&mut self, text: &str) -> u32 {
        if let Some(index) = self.known.get(text) {
            return *index;
        }
        let index = self.list.len() as u32;
        self.list.push(text.to_owned());
        self.known.insert(text.to_owned(), index);
        index
    }
}

/// A function, by its name and file.
type Function = (u32, Option<u32>);

/// Functions, frames and stacks, each once.
#[derive(Default)]
pub(super) struct Stacks {
    functions: Vec<Function>,
    known_functions: FxHashMap<Function, u32>,
    /// Each frame's function and line.
    frames: Vec<(u32, u32)>,
    known_frames: FxHashMap<(u32, u32), u32>,
    /// Each stack's frame and caller; a caller stands before those it calls.
    stacks: Vec<(u32, Option<u32>)>,
    known_stacks: FxHashMap<(u32, Option<u32>), u32>,
    /// Files, as strings.
    files: Vec<u32>,
    known_files: FxHashMap<u32, u32>,
    /// Stacks of the trace that were looked up, with the names below them.
    seen: FxHashMap<(StackId, Vec<EventName>), Option<u32>>,
}

impl Stacks {
    /// Where a stack with these names below it is; `None` for an empty one.
    pub(super) fn index(
        &mut self,
        trace: &Trace,
        texts: &mut Texts,
        stack: StackId,
        names: &[EventName],
    ) -> Option<u32> {
        if let Some(index) = self.seen.get(&(stack, names.to_vec())) {
            return *index;
        }
        let mut parent = None;
        for text in frame_texts(trace, stack, names) {
            let frame = self.frame(trace, texts, &text);
            parent = Some(intern(&mut self.stacks, &mut self.known_stacks, (frame, parent)));
        }
        self.seen.insert((stack, names.to_vec()), parent);
        parent
    }

    fn frame(&mut self, trace: &Trace, texts: &mut Texts, text: &FrameText) -> u32 {
        let file = text.file.is_some().then(|| {
            let file = texts.index(trace.string(text.file));
            intern(&mut self.files, &mut self.known_files, file)
        });
        let function = (texts.index(&text.name), file);
        let function = intern(&mut self.functions, &mut self.known_functions, function);
        intern(&mut self.frames, &mut self.known_frames, (function, text.line))
    }

    /// Adds all tables as the profile's `shared`.
    pub(super) fn push(&self, out: &mut Vec<u8>, texts: &Texts) {
        let frames = &self.frames;
        out.extend_from_slice(b"{\n\"stackTable\":{");
        column(out, "frame", &self.stacks, |out, _, (frame, _)| {
            push_number(out, *frame)
        });
        column(out, "prefixOffset", &self.stacks, |out, at, (_, parent)| {
            push_number(out, parent.map_or(0, |parent| at as u32 - parent));
        });
        length(out, self.stacks.len());
        out.extend_from_slice(b",\n\"frameTable\":{");
        for name in ["address", "lib"] {
            constant(out, name, frames.len(), "-1");
        }
        for name in ["inlineDepth", "category", "subcategory", "innerWindowID"] {
            constant(out, name, frames.len(), "0");
        }
        column(out, "func", frames, |out, _, (function, _)| {
            push_number(out, *function)
        });
        column(out, "line", frames, |out, _, (_, line)| {
            push_option(out, (*line > 0).then_some(*line));
        });
        for name in ["nativeSymbol", "column", "originalLocation"] {
            constant(out, name, frames.len(), "null");
        }
        length(out, frames.len());
        self.push_functions(out);
        out.extend_from_slice(
            b",\n\"resourceTable\":{\"name\":[],\"host\":[],\"type\":[],\"length\":0}\
              ,\n\"nativeSymbols\":{\"libIndex\":[],\"address\":[],\"name\":[],\"functionSize\":[],\"length\":0}\
              ,\n\"sourceLocationTable\":{\"source\":[],\"line\":[],\"column\":[],\"length\":0}\
              ,\n\"stringArray\":[",
        );
        for (at, text) in texts.list.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            push_string(out, text);
        }
        out.extend_from_slice(b"]}");
    }

    fn push_functions(&self, out: &mut Vec<u8>) {
        let functions = &self.functions;
        out.extend_from_slice(b",\n\"funcTable\":{");
        column(out, "name", functions, |out, _, (name, _)| {
            push_number(out, *name)
        });
        for name in ["isJS", "relevantForJS"] {
            constant(out, name, functions.len(), "false");
        }
        constant(out, "resource", functions.len(), "-1");
        column(out, "source", functions, |out, _, (_, file)| {
            push_option(out, *file)
        });
        for name in ["lineNumber", "columnNumber", "originalLocation"] {
            constant(out, name, functions.len(), "null");
        }
        length(out, functions.len());
        out.extend_from_slice(b",\n\"sources\":{");
        column(out, "filename", &self.files, |out, _, file| {
            push_number(out, *file)
        });
        for name in ["id", "sourceMapURL", "content"] {
            constant(out, name, self.files.len(), "null");
        }
        for name in ["startLine", "startColumn"] {
            constant(out, name, self.files.len(), "1");
        }
        length(out, self.files.len());
    }
}

fn intern<T: Copy + Eq + std::hash::Hash>(list: &mut Vec<T>, known: &mut FxHashMap<T, u32>, item: T) -> u32 {
    *known.entry(item).or_insert_with(|| {
        list.push(item);
        list.len() as u32 - 1
    })
}

/// Adds a column of a table, and the comma behind it.
fn column<T>(out: &mut Vec<u8>, name: &str, rows: &[T], push: impl Fn(&mut Vec<u8>, usize, &T)) {
    push_string(out, name);
    out.extend_from_slice(b":[");
    for (at, row) in rows.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        push(out, at, row);
    }
    out.extend_from_slice(b"],");
}

/// Adds a column that has the same in every row.
fn constant(out: &mut Vec<u8>, name: &str, rows: usize, value: &str) {
    column(out, name, &vec![(); rows], |out, _, ()| {
        out.extend_from_slice(value.as_bytes())
    });
}

/// Adds the number of a table's rows, and ends it.
pub(super) fn length(out: &mut Vec<u8>, rows: usize) {
    out.extend_from_slice(b"\"length\":");
    push_number(out, rows);
    out.push(b'}');
}

/// Adds a number, or null.
pub(super) fn push_option(out: &mut Vec<u8>, number: Option<u32>) {
    match number {
        Some(number) => push_number(out, number),
        None => out.extend_from_slice(b"null"),
    }
}
