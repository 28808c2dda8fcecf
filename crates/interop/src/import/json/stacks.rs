//! Stacks of a file: Python calls that name their callers, stacks as one text, and Chrome's table of frames.

use rustc_hash::FxHashMap;
use tracesmith_format::tables::{Frame, FrameKind, Symbol};
use tracesmith_format::{Address, FrameId, StackId, StringId};

use crate::error::Error;
use crate::import::Builder;
use crate::import::json::number::{unquoted, unsigned};
use crate::import::json::scan::{for_each_item, for_each_member};
use crate::import::json::text::text_of;

/// No real stack is deeper; a table of frames that goes in a circle ends here.
const MAX_FRAMES: usize = 1_024;

/// The stacks of a file.
#[derive(Debug, Default)]
pub(super) struct Stacks {
    python_frames: FxHashMap<StringId, FrameId>,
    /// By the number of a Python call: its stack, itself included, and its depth.
    python_calls: FxHashMap<u64, (StackId, u32)>,
    texts: FxHashMap<Box<[u8]>, StackId>,
    table: FxHashMap<Box<[u8]>, TableFrame>,
    /// Frames of the table that events named before it came.
    awaited: FxHashMap<Box<[u8]>, FrameId>,
}

#[derive(Clone, Debug)]
struct TableFrame {
    parent: Box<[u8]>,
    function: StringId,
}

impl Stacks {
    /// The stack that a Python call was made from, and how many calls are above it; `None` when its caller is not known.
    /// `name` is the call itself.
    pub(super) fn python_call(
        &mut self,
        builder: &mut Builder<'_, '_>,
        (name, text): (StringId, &str),
        id: Option<u64>,
        parent: Option<u64>,
    ) -> Result<Option<(StackId, u32)>, Error> {
        let above = parent.and_then(|parent| self.python_calls.get(&parent));
        let caller = above.map(|(stack, depth)| (*stack, depth.saturating_add(1)));
        let (stack, depth) = caller.unwrap_or_default();
        if let Some(id) = id {
            let frame = match self.python_frames.get(&name) {
                Some(frame) => *frame,
                None => {
                    let frame = python_frame(builder, text)?;
                    self.python_frames.insert(name, frame);
                    frame
                }
            };
            let own = builder.stack_child(stack, frame)?;
            self.python_calls.insert(id, (own, depth));
        }
        Ok(caller)
    }

    /// A stack as PyTorch writes it, the innermost frame first: `a.py(1): f;b.py(2): g`.
    pub(super) fn of_text(&mut self, builder: &mut Builder<'_, '_>, value: &[u8]) -> Result<StackId, Error> {
        let raw = unquoted(value);
        if raw.is_empty() {
            return Ok(StackId::NONE);
        }
        if let Some(stack) = self.texts.get(raw) {
            return Ok(*stack);
        }
        let text = text_of(value);
        let mut stack = StackId::NONE;
        for frame in text.rsplit(';').filter(|frame| !frame.is_empty()) {
            let frame = python_frame(builder, frame)?;
            stack = builder.stack_child(stack, frame)?;
        }
        self.texts.insert(raw.into(), stack);
        Ok(stack)
    }

    /// A stack as a list of functions, the outermost first.
    pub(super) fn of_list(&mut self, builder: &mut Builder<'_, '_>, list: &[u8]) -> Result<StackId, Error> {
        let mut stack = StackId::NONE;
        let mut result = Ok(());
        for_each_item(list, |item| {
            if result.is_ok() {
                result = (|| {
                    let function = builder.string(&text_of(item))?;
                    let frame = builder.frame(Frame {
                        function,
                        ..Frame::default()
                    })?;
                    stack = builder.stack_child(stack, frame)?;
                    Ok(())
                })();
            }
        });
        result.map(|()| stack)
    }

    /// Takes over an entry of the file's table of frames.
    pub(super) fn define(
        &mut self,
        builder: &mut Builder<'_, '_>,
        id: &[u8],
        entry: &[u8],
    ) -> Result<(), Error> {
        let (mut name, mut parent) = (&b""[..], &b""[..]);
        // An entry that is no object has no name, and is kept as such.
        let _ = for_each_member(entry, 0, |key, value| match unquoted(key.of(entry)) {
            b"name" => name = value.of(entry),
            b"parent" => parent = value.of(entry),
            _ => {}
        });
        let function = builder.string(&text_of(name))?;
        let parent = unquoted(parent).into();
        self.table.insert(id.into(), TableFrame { parent, function });
        Ok(())
    }

    /// The stack that ends in this frame of the table.
    pub(super) fn of_table(
        &mut self,
        builder: &mut Builder<'_, '_>,
        file: StringId,
        frame: &[u8],
    ) -> Result<StackId, Error> {
        let id = unquoted(frame);
        if id.is_empty() {
            return Ok(StackId::NONE);
        }
        if self.table.contains_key(id) {
            let mut stack = StackId::NONE;
            for function in self.functions(id) {
                let frame = builder.frame(Frame {
                    function,
                    ..Frame::default()
                })?;
                stack = builder.stack_child(stack, frame)?;
            }
            return Ok(stack);
        }
        // The table may come behind the events: one frame stands for the whole stack until then.
        let frame = match self.awaited.get(id) {
            Some(frame) => *frame,
            None => {
                let number = unsigned(id).unwrap_or(u64::MAX - self.awaited.len() as u64);
                let frame = builder.frame(Frame {
                    address: Address(number),
                    file,
                    ..Frame::default()
                })?;
                self.awaited.insert(id.into(), frame);
                frame
            }
        };
        builder.stack_child(StackId::NONE, frame)
    }

    /// The functions of a stack of the table, the outermost first.
    fn functions(&self, id: &[u8]) -> Vec<StringId> {
        let mut functions = Vec::new();
        let mut at = self.table.get(id);
        while let Some(frame) = at.filter(|_| functions.len() < MAX_FRAMES) {
            functions.push(frame.function);
            at = self.table.get(&frame.parent);
        }
        functions.reverse();
        functions
    }

    /// Says what the frames were that came before their table. Gives how many it does not have.
    pub(super) fn finish(&mut self, builder: &mut Builder<'_, '_>) -> Result<u64, Error> {
        let mut awaited: Vec<_> = self.awaited.iter().map(|(id, frame)| (*frame, id)).collect();
        awaited.sort_unstable();
        let mut missing = 0;
        for (frame, id) in awaited {
            let functions = self.functions(id);
            missing += u64::from(functions.is_empty());
            for (depth, function) in functions.into_iter().enumerate() {
                builder.define(&Symbol {
                    frame,
                    inline_depth: u16::try_from(depth).unwrap_or(u16::MAX),
                    function,
                    ..Symbol::default()
                })?;
            }
        }
        Ok(missing)
    }
}

/// `torch/nn/modules/module.py(1518): _call_impl` as a place in code; anything else is a function.
fn python_frame(builder: &mut Builder<'_, '_>, text: &str) -> Result<FrameId, Error> {
    let place = text.split_once("): ").and_then(|(place, function)| {
        let (file, line) = place.rsplit_once('(')?;
        Some((file, line.parse().ok()?, function))
    });
    let (file, line, function) = place.unwrap_or(("", 0, text));
    let frame = Frame {
        kind: FrameKind::PYTHON,
        function: builder.string(function)?,
        file: builder.string(file)?,
        line,
        ..Frame::default()
    };
    builder.frame(frame)
}
