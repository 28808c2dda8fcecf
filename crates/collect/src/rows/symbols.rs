//! Names for the frames of a trace, when all of it is there.

use std::{collections::BTreeMap, path::PathBuf};

use tracesmith_format::{FrameId, ImageId, tables::Symbol};
use tracesmith_symbols::{Function, ModuleReport, Resolver, Sources};

use crate::trace_file::TraceFile;

/// Frames that have no names yet.
#[derive(Debug, Default)]
pub(super) struct Nameless {
    files: BTreeMap<ImageId, (PathBuf, String)>,
    /// By file, which are opened one after another.
    frames: BTreeMap<(PathBuf, String), BTreeMap<FrameId, u64>>,
    /// Code made at run time, with the process that made it.
    jit: BTreeMap<FrameId, (u32, u64)>,
}

impl Nameless {
    pub(super) fn image(&mut self, image: ImageId, path: &str, build_id: &str) {
        self.files
            .insert(image, (PathBuf::from(path), build_id.to_owned()));
    }

    /// A frame at an address of an image.
    pub(super) fn frame(&mut self, frame: FrameId, image: ImageId, address: u64) {
        if let Some(file) = self.files.get(&image) {
            self.frames
                .entry(file.clone())
                .or_default()
                .insert(frame, address);
        }
    }

    /// A frame that is in no image.
    pub(super) fn jit(&mut self, frame: FrameId, pid: u32, address: u64) {
        self.jit.entry(frame).or_insert((pid, address));
    }

    /// Writes the names that can be found.
    pub(super) fn name_all(self, file: &mut TraceFile) -> Vec<ModuleReport> {
        let mut resolver = Resolver::new(Sources::default());
        for ((path, build_id), frames) in self.frames {
            for (frame, address) in frames {
                let functions = resolver.functions(&path, &build_id, address);
                write(frame, &functions, file);
            }
        }
        for (frame, (pid, address)) in self.jit {
            if let Some(function) = resolver.made_at_run_time(pid, address) {
                write(frame, &[function], file);
            }
        }
        resolver.report()
    }
}

/// The innermost function comes first, and has the greatest depth.
fn write(frame: FrameId, functions: &[Function], file: &mut TraceFile) {
    for (depth, function) in functions.iter().rev().enumerate() {
        let symbol = Symbol {
            frame,
            inline_depth: u16::try_from(depth).unwrap_or(u16::MAX),
            function: file.string(&function.name),
            file: file.string(&function.file),
            line: function.line,
            column: function.column,
        };
        file.define(&symbol);
    }
}
