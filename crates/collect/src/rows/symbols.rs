//! Symbolizes the frames of a trace, after all records were read.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use tracesmith_format::{FrameId, ImageId, tables::Symbol};
use tracesmith_symbols::{Cache, File, Function, ModuleReport, PerfMap, Resolver, Sources};

use crate::{identity::Identity, mounts::Mounts, trace_file::TraceFile};

/// Frames without symbols.
#[derive(Debug, Default)]
pub(super) struct Nameless {
    files: BTreeMap<ImageId, File>,
    /// Frames by file. Files are opened one after another.
    frames: BTreeMap<File, BTreeMap<FrameId, u64>>,
    /// JIT-compiled code, with the perf map of its process.
    jit: BTreeMap<FrameId, (PathBuf, u64)>,
    /// Containers whose files are read.
    mounts: Vec<Arc<Mounts>>,
}

impl Nameless {
    /// Keeps the files of a process reachable.
    pub(super) fn process(&mut self, identity: &Identity) {
        self.mounts.extend(identity.mounts.clone());
    }

    pub(super) fn image(&mut self, image: ImageId, file: File) {
        self.files.insert(image, file);
    }

    /// Adds a frame at an address in an image.
    pub(super) fn frame(&mut self, frame: FrameId, image: ImageId, address: u64) {
        if let Some(file) = self.files.get(&image) {
            self.frames
                .entry(file.clone())
                .or_default()
                .insert(frame, address);
        }
    }

    /// Adds a frame outside of all images.
    pub(super) fn jit(&mut self, frame: FrameId, identity: &Identity, address: u64) {
        let map = || PerfMap::path_of(&identity.root(), identity.own_pid);
        self.jit.entry(frame).or_insert_with(|| (map(), address));
    }

    /// Writes all symbols that can be found.
    pub(super) fn name_all(self, file: &mut TraceFile) -> Vec<ModuleReport> {
        let mut resolver = Resolver::new(Sources::default()).with_cache(Cache::of_user());
        for (of, frames) in self.frames {
            for (frame, address) in frames {
                let functions = resolver.functions(&of, address);
                write(frame, &functions, file);
            }
        }
        for (frame, (map, address)) in self.jit {
            if let Some(function) = resolver.made_at_run_time(&map, address) {
                write(frame, &[function], file);
            }
        }
        // The mounts must live until here, because the files were read through them.
        drop(self.mounts);
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
