//! Stacks. Their frames are addresses in images, or Python functions.

use std::path::Path;

use rustc_hash::FxHashMap;
use tracesmith_format::{
    Address, Bytes, FrameId, ImageId, StackId, StringId, Timestamp,
    tables::{self, Frame, FrameKind, Stack, StackEnd},
};
use tracesmith_symbols::File;
use tracesmith_wire::{environment::is_injected_library, record as wire};

use super::{Definitions, ProcessRows, TraceRows, definitions::readable};

/// The code of a process: images and Python functions.
#[derive(Debug, Default)]
pub(super) struct Code {
    images: Vec<MappedImage>,
    python: FxHashMap<u32, PythonCode>,
    stacks: FxHashMap<u32, StackId>,
}

#[derive(Clone, Copy, Debug)]
struct MappedImage {
    id: ImageId,
    start: u64,
    end: u64,
    bias: u64,
    role: Role,
}

/// Whether the frames of an image belong to the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Program,
    /// TraceSmith's library, or the CUPTI library that calls it. Their frames are between the API call and the
    /// capture of the stack.
    Recorder,
}

#[derive(Clone, Copy, Debug)]
struct PythonCode {
    function: StringId,
    file: StringId,
}

impl ProcessRows {
    pub(super) fn image(&mut self, record: &wire::Image, text: &[u8], trace: &mut TraceRows) {
        let (build_id, path) = text.split_at(text.len().min(record.build_id_bytes as usize));
        let path = readable(path);
        let id = trace.next_image();
        let build_id: String = build_id.iter().map(|byte| format!("{byte:02x}")).collect();
        let row = tables::Image {
            id,
            process: self.id,
            address: Address(record.address),
            size: Bytes(record.size),
            file_offset: Bytes(record.file_offset),
            path: trace.file.string(&path),
            build_id: trace.file.string(&build_id),
            loaded: Timestamp(record.time),
            ..tables::Image::default()
        };
        trace.file.define(&row);
        let file = File {
            root: self.identity.root(),
            path: path.to_string().into(),
            build_id,
        };
        trace.nameless.image(id, file);
        let end = record.address.saturating_add(record.size);
        // The image that was mapped there before is gone.
        self.code
            .images
            .retain(|image| image.end <= record.address || image.start >= end);
        let at = self
            .code
            .images
            .partition_point(|image| image.start < record.address);
        self.code.images.insert(
            at,
            MappedImage {
                id,
                start: record.address,
                end,
                bias: record.bias,
                role: role(&path),
            },
        );
    }

    pub(super) fn python_code(&mut self, record: &wire::PythonCode, text: &[u8], trace: &mut TraceRows) {
        let (name, file) = text.split_at(text.len().min(record.name_bytes as usize));
        let code = PythonCode {
            function: trace.file.string(&readable(name)),
            file: trace.file.string(&readable(file)),
        };
        self.code.python.insert(record.code, code);
    }

    pub(super) fn stack(&mut self, record: &wire::Stack, words: &[u8], trace: &mut TraceRows) {
        let words: Vec<u64> = words
            .chunks_exact(8)
            .filter_map(|word| Some(u64::from_le_bytes(word.try_into().ok()?)))
            .collect();
        // The frames of the profiler are not part of the stack.
        let first = words
            .iter()
            .position(|word| {
                self.code
                    .find(*word)
                    .is_none_or(|image| image.role == Role::Program)
            })
            .unwrap_or(words.len());
        let mut parent = StackId::NONE;
        let mut end = StackEnd(u8::try_from(record.end).unwrap_or(0));
        for word in words[first..].iter().rev() {
            let frame = self.frame(*word, trace);
            parent = trace.file.stack(Stack { parent, frame, end });
            end = StackEnd::ROOT;
        }
        self.code.stacks.insert(record.stack, parent);
    }

    /// The stack with this ID in the target. `None` if its definition can still arrive.
    #[inline]
    pub(super) fn stack_id(&mut self, stack: u32, definitions: Definitions) -> Option<StackId> {
        if stack == 0 {
            return Some(StackId::NONE);
        }
        match self.code.stacks.get(&stack) {
            Some(id) => Some(*id),
            None => self.unresolved(definitions),
        }
    }

    fn frame(&self, word: u64, trace: &mut TraceRows) -> FrameId {
        if word & wire::PYTHON_FRAME != 0 {
            let number = (word & !wire::PYTHON_FRAME) >> 24;
            let code = u32::try_from(number)
                .ok()
                .and_then(|number| self.code.python.get(&number));
            return trace.file.frame(Frame {
                kind: FrameKind::PYTHON,
                function: code.map(|code| code.function).unwrap_or_default(),
                file: code.map(|code| code.file).unwrap_or_default(),
                line: (word & 0xff_ffff) as u32,
                ..Frame::default()
            });
        }
        // A return address points after the call, possibly into another function.
        let call = word.wrapping_sub(1);
        let Some(image) = self.code.find(call) else {
            let frame = trace.file.frame(Frame {
                kind: FrameKind::JIT,
                address: Address(call),
                ..Frame::default()
            });
            trace.nameless.jit(frame, &self.identity, call);
            return frame;
        };
        let address = call.wrapping_sub(image.bias);
        let frame = trace.file.frame(Frame {
            kind: FrameKind::NATIVE,
            image: image.id,
            address: Address(address),
            ..Frame::default()
        });
        trace.nameless.frame(frame, image.id, address);
        frame
    }
}

impl Code {
    fn find(&self, address: u64) -> Option<&MappedImage> {
        let behind = self.images.partition_point(|image| image.start <= address);
        let image = self.images.get(behind.checked_sub(1)?)?;
        (address < image.end).then_some(image)
    }
}

fn role(path: &str) -> Role {
    let name = path.rsplit('/').next().unwrap_or(path);
    if name.starts_with("libcupti.so") || is_injected_library(Path::new(path)) {
        Role::Recorder
    } else {
        Role::Program
    }
}
