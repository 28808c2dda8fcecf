//! Names for the frames that come over.

use std::collections::BTreeSet;
use std::io::Write;

use tracesmith_format::FrameId;
use tracesmith_format::tables::{FrameKind, Symbol};

use super::Input;
use crate::error::Error;

/// A frame of machine code that is to be named.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FrameToName {
    /// The program or library; empty for code that was made at run time.
    pub path: String,
    /// Its build id in hexadecimal; empty without one.
    pub build_id: String,
    /// The address as the file numbers it, or that in memory when there is no file.
    pub address: u64,
    /// Whether it has names, which stay when no others are found.
    pub is_named: bool,
}

/// A function that a frame is in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedFunction {
    /// Its name.
    pub name: String,
    /// Its source file; empty when not known.
    pub file: String,
    /// The line; 0 when not known.
    pub line: u32,
    /// The column; 0 when not known.
    pub column: u32,
}

/// Gives the functions of a frame, the innermost inlined one first; asked file by file.
pub type NameFn<'a> = dyn FnMut(&FrameToName) -> Vec<NamedFunction> + 'a;

/// What becomes of names.
pub(super) enum Naming<'n, 'f> {
    /// They come over.
    Kept,
    /// Native frames are named anew.
    Anew(&'n mut NameFn<'f>),
}

impl<W: Write> Input<'_, W> {
    /// What is known of the frames that came over.
    pub(super) fn write_symbols(&mut self, naming: &mut Naming<'_, '_>) -> Result<(), Error> {
        let mut kept: BTreeSet<FrameId> = self.map.frames().into_iter().collect();
        if let Naming::Anew(name) = naming {
            let mut to_name: Vec<(FrameToName, FrameId)> = kept
                .iter()
                .filter_map(|frame| Some((self.to_name(*frame)?, *frame)))
                .collect();
            to_name.sort();
            for (place, frame) in to_name {
                let functions = name(&place);
                if !functions.is_empty() {
                    self.write_names(frame, &functions)?;
                    kept.remove(&frame);
                }
            }
        }
        let tables = self.trace.stack_tables();
        let symbols: Vec<Symbol> = kept
            .iter()
            .filter_map(|frame| tables.symbols.get(frame))
            .flatten()
            .cloned()
            .collect();
        self.define_all(&symbols)
    }

    /// What a frame is named by; none for frames that have their names from elsewhere.
    fn to_name(&self, frame: FrameId) -> Option<FrameToName> {
        let tables = self.trace.stack_tables();
        let (frames, row) = tables.frames.find(frame.0)?;
        let is_machine_code = matches!(frames.kind[row], FrameKind::NATIVE | FrameKind::JIT);
        let has_name = frames.function[row].is_some();
        let image = tables.images.get(&frames.image[row]);
        let text = |id| self.trace.string(id).to_owned();
        (is_machine_code && !has_name).then(|| FrameToName {
            path: image.map(|image| text(image.path)).unwrap_or_default(),
            build_id: image.map(|image| text(image.build_id)).unwrap_or_default(),
            address: frames.address[row].0,
            is_named: tables.symbols.contains_key(&frame),
        })
    }

    fn write_names(&mut self, frame: FrameId, functions: &[NamedFunction]) -> Result<(), Error> {
        for (depth, function) in functions.iter().rev().enumerate() {
            // The frame's id becomes that of the new trace; the texts are new already.
            let mut symbol = self.map.remapped(&Symbol {
                frame,
                inline_depth: u16::try_from(depth).unwrap_or(u16::MAX),
                line: function.line,
                column: function.column,
                ..Symbol::default()
            })?;
            symbol.function = self.map.writer.string(&function.name)?;
            symbol.file = self.map.writer.string(&function.file)?;
            self.map.writer.define(&symbol)?;
        }
        Ok(())
    }
}
