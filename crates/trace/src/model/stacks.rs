//! Stacks: frames, the tree that links them, and what symbolisation found.

use std::collections::BTreeMap;

use tracesmith_format::tables::{Frame, Frames, Image, StackEnd, Stacks, Symbol, Symbols};
use tracesmith_format::{Columns, FrameId, ImageId, StackId};

/// Frames of a stack that are followed before giving up: a damaged file could link a stack to itself.
const MAX_DEPTH: usize = 100_000;

/// Frames, stacks and symbols of a trace, loaded together when a stack is first asked for.
#[derive(Debug, Default)]
pub(crate) struct StackTables {
    pub(crate) frames: Pieces<Frames>,
    pub(crate) stacks: Pieces<Stacks>,
    pub(crate) symbols: BTreeMap<FrameId, Vec<Symbol>>,
    pub(crate) images: BTreeMap<ImageId, Image>,
}

/// Dictionary pieces in the order of their ids.
#[derive(Debug)]
pub(crate) struct Pieces<C>(pub(crate) Vec<(u64, C)>);

impl<C> Default for Pieces<C> {
    fn default() -> Self {
        Pieces(Vec::new())
    }
}

impl<C: Columns> Pieces<C> {
    /// The piece with this id, and the row in it.
    pub(crate) fn find(&self, id: u32) -> Option<(&C, usize)> {
        let index = u64::from(id).checked_sub(1)?;
        let (base, piece) = self.0[..self.0.partition_point(|(base, _)| *base <= index)].last()?;
        let row = usize::try_from(index - base).ok()?;
        (row < piece.len()).then_some((piece, row))
    }
}

/// A stack of a trace.
#[derive(Clone, Debug)]
pub struct StackView {
    /// Its frames, the innermost first. A frame with inlined functions gives one entry for each.
    pub frames: Vec<FrameView>,
    /// How it ends, behind the last of them.
    pub end: StackEnd,
}

/// A node in the tree of stacks: a frame and its caller.
#[derive(Clone, Debug)]
pub struct StackNode {
    /// The stack whose innermost frame this is.
    pub id: StackId,
    /// The stack of the caller.
    pub parent: Option<StackId>,
    /// The functions of the frame, the innermost first: several if functions were inlined.
    pub functions: Vec<FrameView>,
}

/// One function of a stack.
#[derive(Clone, Debug, PartialEq)]
pub struct FrameView {
    /// The frame.
    pub id: FrameId,
    /// What was recorded of it.
    pub frame: Frame,
    /// What symbolisation found, if it did.
    pub symbol: Option<Symbol>,
}

impl StackTables {
    pub(crate) fn add_symbols(&mut self, symbols: &Symbols) {
        for row in 0..symbols.len() {
            let symbol = symbols.row(row);
            self.symbols.entry(symbol.frame).or_default().push(symbol);
        }
    }

    /// The stack's frames; shorter when a dictionary piece was lost.
    pub(crate) fn view(&self, stack: StackId) -> StackView {
        let mut frames = Vec::new();
        let mut end = StackEnd::ROOT;
        let mut next = stack;
        while frames.len() < MAX_DEPTH
            && let Some((stacks, row)) = self.stacks.find(next.0)
        {
            frames.extend(self.frames_of(stacks.frame[row]));
            end = stacks.end[row];
            // A stack always stands behind its parent in the file: anything else is damage.
            let parent = stacks.parent[row];
            if parent >= next {
                break;
            }
            next = parent;
        }
        StackView { frames, end }
    }

    /// The functions of one frame, the innermost first: several when some were inlined there.
    pub(crate) fn frames_of(&self, id: FrameId) -> Vec<FrameView> {
        let frame = self
            .frames
            .find(id.0)
            .map(|(frames, row)| frames.row(row))
            .unwrap_or_default();
        let Some(symbols) = self.symbols.get(&id) else {
            return vec![FrameView {
                id,
                frame,
                symbol: None,
            }];
        };
        let mut symbols = symbols.clone();
        symbols.sort_by_key(|symbol| std::cmp::Reverse(symbol.inline_depth));
        symbols
            .into_iter()
            .map(|symbol| FrameView {
                id,
                frame: frame.clone(),
                symbol: Some(symbol),
            })
            .collect()
    }
}
