//! Stacks as Perfetto interns them: names, mapped files, frames and lists of frames.

use rustc_hash::FxHashSet;
use tracesmith_format::{ImageId, StackId, StringId};
use tracesmith_trace::{FrameView, Trace};

use crate::perfetto::schema::{frame, interned, mapping};
use crate::perfetto::wire::{put_bytes, put_message, put_number};

/// Inlined functions of one frame that are told apart.
const INLINE_DEPTHS: u64 = 64;
/// Frames of a stack that are written as a text.
const TEXT_FRAMES: usize = 48;

/// Stacks of one packet sequence that are interned already.
#[derive(Default)]
pub(super) struct InternedStacks {
    stacks: FxHashSet<StackId>,
    frames: FxHashSet<u64>,
    functions: FxHashSet<StringId>,
    sources: FxHashSet<StringId>,
    images: FxHashSet<ImageId>,
}

impl InternedStacks {
    /// Notes a stack; says whether it is new.
    pub(super) fn insert(&mut self, stack: StackId) -> bool {
        self.stacks.insert(stack)
    }

    /// Adds a stack and what it refers to, as far as that is not interned.
    pub(super) fn put(&mut self, trace: &Trace, stack: StackId, out: &mut Vec<u8>) {
        let mut ids = Vec::new();
        let frames = trace.stack(stack).frames;
        for (at, view) in frames.iter().enumerate() {
            // Inlined functions of one frame stand side by side, the innermost first.
            let depth = frames[..at]
                .iter()
                .rev()
                .take_while(|other| other.id == view.id)
                .count() as u64;
            let id = u64::from(view.id.0) * INLINE_DEPTHS + depth.min(INLINE_DEPTHS - 1);
            if self.frames.insert(id) {
                self.put_frame(trace, id, view, out);
            }
            ids.push(id);
        }
        put_message(out, interned::CALLSTACKS, |out| {
            put_number(out, interned::IID, u64::from(stack.0));
            // Perfetto lists the outermost frame first.
            for id in ids.iter().rev() {
                put_number(out, frame::CALLSTACK_FRAMES, *id);
            }
        });
    }

    fn put_frame(&mut self, trace: &Trace, id: u64, view: &FrameView, out: &mut Vec<u8>) {
        let (function, source, line) = match &view.symbol {
            Some(symbol) => (symbol.function, symbol.file, symbol.line),
            None => (view.frame.function, view.frame.file, view.frame.line),
        };
        if function.is_some() && self.functions.insert(function) {
            let text = trace.string(function).as_bytes();
            put_interned_text(out, interned::FUNCTION_NAMES, u64::from(function.0), text);
        }
        if source.is_some() && self.sources.insert(source) {
            let text = trace.string(source).as_bytes();
            put_interned_text(out, interned::SOURCE_PATHS, u64::from(source.0), text);
        }
        let image = view.frame.image;
        if self.images.insert(image) {
            put_image(trace, image, out);
        }
        put_message(out, interned::FRAMES, |out| {
            put_number(out, interned::IID, id);
            put_number(out, frame::MAPPING, image_id(image));
            put_number(out, frame::RELATIVE_ADDRESS, view.frame.address.0);
            if function.is_some() {
                put_number(out, frame::FUNCTION, u64::from(function.0));
            }
            if source.is_some() {
                put_number(out, frame::SOURCE_PATH, u64::from(source.0));
            }
            if line > 0 {
                put_number(out, frame::LINE, u64::from(line));
            }
        });
    }
}

/// A frame must lie in a mapped file: those of none lie in one without a name.
fn put_image(trace: &Trace, id: ImageId, out: &mut Vec<u8>) {
    let iid = image_id(id);
    let found = trace.images.columns().find_map(|(_, images)| {
        images
            .id
            .iter()
            .position(|known| *known == id)
            .map(|row| (images.path[row], images.build_id[row]))
    });
    let (path, build_id) = found.unwrap_or_default();
    put_interned_text(out, interned::MAPPING_PATHS, iid, trace.string(path).as_bytes());
    put_interned_text(out, interned::BUILD_IDS, iid, trace.string(build_id).as_bytes());
    put_message(out, interned::MAPPINGS, |out| {
        put_number(out, interned::IID, iid);
        put_number(out, mapping::BUILD_ID, iid);
        put_number(out, mapping::PATHS, iid);
    });
}

/// 0 is no number for anything interned.
fn image_id(id: ImageId) -> u64 {
    u64::from(id.0) + 1
}

/// Adds an interned text.
pub(super) fn put_interned_text(out: &mut Vec<u8>, field: u32, iid: u64, text: &[u8]) {
    put_message(out, field, |out| {
        put_number(out, interned::IID, iid);
        put_bytes(out, interned::TEXT, text);
    });
}

/// A stack in one line, the innermost function first.
pub(super) fn stack_text(trace: &Trace, stack: StackId) -> String {
    let frames = trace.stack(stack).frames;
    let names: Vec<String> = frames
        .iter()
        .take(TEXT_FRAMES)
        .map(|frame| trace.frame_name(frame))
        .collect();
    let mut text = names.join(" < ");
    if frames.len() > TEXT_FRAMES {
        text += " < …";
    }
    text
}
