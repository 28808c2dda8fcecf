//! How to leave a function: where its caller's frame is, and where the caller's registers were saved.
//!
//! The compiler's tables say it for every instruction, as a program for a small machine. What comes out is nearly always
//! of one form: the caller's frame is at a fixed distance from the stack or base pointer, the return address lies below
//! it, and the base pointer was saved at another fixed distance, or not at all. That form is worked out once for each
//! return address and kept in a table, which makes a walk a few reads for each frame.

use gimli::{
    CfaRule, EhFrameOffset, EndianSlice, LittleEndian, Register, RegisterRule, UnwindContext, UnwindSection,
    X86_64,
};

use crate::images::{Image, Images};
use crate::rule_cache::UnwindRuleCache;

/// How to leave a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) frame: Frame,
    /// From the caller's frame to the saved base pointer; 0 when it was not saved.
    pub(crate) base_offset: i32,
}

/// Where the caller's frame is: the address that the stack pointer had before the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// So far above the stack pointer.
    FromStack(i32),
    /// So far above the base pointer.
    FromBase(i32),
    /// Read from so far above the base pointer: a function that aligned its stack.
    AtBase(i32),
    /// The kernel put it there: a signal came, and the registers of whoever was interrupted lie on the stack.
    Signal,
    /// There is no caller.
    Outermost,
    /// The tables say nothing that can be used.
    Unknown,
}

impl Rule {
    pub(crate) const UNKNOWN: Self = Self {
        frame: Frame::Unknown,
        base_offset: 0,
    };
}

/// What is left of that which was learned before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RuleState {
    Unchanged,
    Cleared,
}

/// Room for the machine that runs the tables' programs; none of it is allocated while a stack is taken.
struct Storage;

impl gimli::UnwindContextStorage<usize> for Storage {
    type Rules = [(Register, RegisterRule<usize>); 32];
    type Stack = [gimli::UnwindTableRow<usize, Self>; 4];
}

/// Rules by return address.
pub(crate) struct Rules {
    kept: UnwindRuleCache,
    generation: u32,
    context: Box<UnwindContext<usize, Storage>>,
}

impl Rules {
    pub(crate) fn new() -> Self {
        Self {
            kept: UnwindRuleCache::new(),
            generation: 0,
            context: Box::new(UnwindContext::new_in()),
        }
    }

    /// Forgets everything when a library has gone: another may have taken its place.
    pub(crate) fn follow(&mut self, images: &Images) -> RuleState {
        if self.generation == images.generation() {
            return RuleState::Unchanged;
        }
        self.generation = images.generation();
        self.kept.clear();
        RuleState::Cleared
    }

    /// How to leave the function that `address` is in, and `None` when no image has it.
    #[inline]
    pub(crate) fn find(&mut self, images: &Images, address: u64) -> Option<Rule> {
        if let Some(rule) = self.kept.get(address) {
            return Some(rule);
        }
        let rule = self.work_out(images.find(address)?, address);
        self.kept.put(address, rule);
        Some(rule)
    }

    #[cold]
    fn work_out(&mut self, image: &Image, address: u64) -> Rule {
        self.read_tables(image, address).unwrap_or(Rule::UNKNOWN)
    }

    fn read_tables(&mut self, image: &Image, address: u64) -> Option<Rule> {
        let tables = image.tables()?;
        let offset = EhFrameOffset(tables.index.entry(address)?);
        // No entry for this address, or one that cannot be read: the walk falls back.
        let function = tables
            .frames
            .fde_from_offset(&tables.bases, offset, gimli::EhFrame::cie_from_offset)
            .ok()?;
        let row = function
            .unwind_info_for_address(&tables.frames, &tables.bases, &mut self.context, address)
            .ok()?;
        let frame = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                let offset = i32::try_from(*offset).ok()?;
                match *register {
                    X86_64::RSP => Frame::FromStack(offset),
                    X86_64::RBP => Frame::FromBase(offset),
                    _ => return None,
                }
            }
            CfaRule::Expression(expression) => {
                let expression = expression.get(&tables.frames).ok()?;
                if expression.0.slice() == SIGNAL_FRAME {
                    return Some(Rule {
                        frame: Frame::Signal,
                        base_offset: 0,
                    });
                }
                aligned(expression)?
            }
        };
        let is_outermost = matches!(row.register(X86_64::RA), Some(RegisterRule::Undefined));
        let base_offset = match row.register(X86_64::RBP) {
            Some(RegisterRule::Offset(offset)) => i32::try_from(offset).ok()?,
            Some(RegisterRule::Expression(expression)) => {
                let expression = expression.get(&tables.frames).ok()?;
                return Some(Rule {
                    frame,
                    base_offset: saved_at_base(expression)?,
                });
            }
            _ => 0,
        };
        Some(Rule {
            frame: if is_outermost { Frame::Outermost } else { frame },
            base_offset,
        })
    }
}

type Expression<'a> = gimli::Expression<EndianSlice<'a, LittleEndian>>;

/// `breg6 (rbp) OFFSET; deref`: what compilers write for a function that aligned its stack.
fn aligned(expression: Expression<'_>) -> Option<Frame> {
    let bytes = expression.0.slice();
    let (&[BREG_BASE], rest) = bytes.split_first_chunk::<1>()? else {
        return None;
    };
    let (offset, rest) = signed(rest)?;
    (rest == [DEREFERENCE]).then_some(Frame::AtBase(offset))
}

/// `breg6 (rbp) 0`: the base pointer was saved where it points to. Told apart from offsets by a number that no offset
/// from a caller's frame has.
fn saved_at_base(expression: Expression<'_>) -> Option<i32> {
    let (&[BREG_BASE], rest) = expression.0.slice().split_first_chunk::<1>()? else {
        return None;
    };
    let (offset, rest) = signed(rest)?;
    (offset == 0 && rest.is_empty()).then_some(SAVED_WHERE_IT_POINTS)
}

/// The base pointer was saved where it points to.
pub(crate) const SAVED_WHERE_IT_POINTS: i32 = i32::MAX;

/// `breg7 (rsp) 160; deref`: the C library's way back from a handler. There the interrupted stack pointer is kept.
const SIGNAL_FRAME: [u8; 4] = [0x77, 0xa0, 0x01, DEREFERENCE];

const BREG_BASE: u8 = 0x76;
const DEREFERENCE: u8 = 0x06;

/// A signed number of seven bits a byte.
fn signed(bytes: &[u8]) -> Option<(i32, &[u8])> {
    let mut value: i64 = 0;
    for (at, &byte) in bytes.iter().enumerate().take(5) {
        value |= i64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            if byte & 0x40 != 0 {
                value |= -1 << (7 * (at + 1));
            }
            return Some((i32::try_from(value).ok()?, &bytes[at + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signed_numbers_are_read() {
        assert_eq!(signed(&[0x78, 9]), Some((-8, &[9][..])));
        assert_eq!(signed(&[0x00]), Some((0, &[][..])));
        assert_eq!(signed(&[0x80, 0x7f]), Some((-128, &[][..])));
        assert_eq!(signed(&[0xff, 0xff, 0xff, 0xff, 0x0f]), None, "beyond 32 bits");
        assert_eq!(signed(&[0x80; 9]), None);
    }

    #[test]
    fn an_aligned_functions_frame_is_read_from_its_base() {
        let expression = |bytes| gimli::Expression(EndianSlice::new(bytes, LittleEndian));
        assert_eq!(aligned(expression(&[0x76, 0x78, 0x06])), Some(Frame::AtBase(-8)));
        assert_eq!(aligned(expression(&[0x77, 0x78, 0x06])), None);
        assert_eq!(aligned(expression(&[0x76, 0x78])), None);
        assert_eq!(
            saved_at_base(expression(&[0x76, 0x00])),
            Some(SAVED_WHERE_IT_POINTS)
        );
    }
}
