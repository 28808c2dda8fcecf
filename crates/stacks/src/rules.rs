//! Unwind rules: where the caller's frame is, and where its registers were saved.
//!
//! `.eh_frame` describes this for every instruction, as a program for a small virtual machine. The result nearly
//! always has the same form. The caller's frame is at a fixed offset from the stack or base pointer, and the return
//! address is right below it. The base pointer was saved at another fixed offset, or not at all. This form is
//! computed once per return address and cached, so an unwind needs only a few reads per frame.

use gimli::{
    CfaRule, EhFrameOffset, EndianSlice, LittleEndian, Register, RegisterRule, UnwindContext, UnwindSection,
    X86_64,
};

use crate::images::{Image, Images};
use crate::rule_cache::UnwindRuleCache;

/// How to unwind one function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) frame: Frame,
    /// The offset of the saved base pointer from the caller's frame. 0 if it was not saved.
    pub(crate) base_offset: i32,
}

/// The caller's frame: the value of the stack pointer before the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// At this offset from the stack pointer.
    FromStack(i32),
    /// At this offset from the base pointer.
    FromBase(i32),
    /// Stored at this offset from the base pointer. For functions that align their stack.
    AtBase(i32),
    /// A signal frame. The kernel stored the registers of the interrupted code on the stack.
    Signal,
    /// There is no caller.
    Outermost,
    /// The tables contain no usable rule.
    Unknown,
}

impl Rule {
    pub(crate) const UNKNOWN: Self = Self {
        frame: Frame::Unknown,
        base_offset: 0,
    };
}

/// Whether cached rules are still valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RuleState {
    Unchanged,
    Cleared,
}

/// Storage of the virtual machine. Nothing is allocated while a stack is captured.
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

    /// Clears all rules if a library was unloaded, because another may be at its address.
    pub(crate) fn follow(&mut self, images: &Images) -> RuleState {
        if self.generation == images.generation() {
            return RuleState::Unchanged;
        }
        self.generation = images.generation();
        self.kept.clear();
        RuleState::Cleared
    }

    /// The rule for `address`. `None` if no image contains it.
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
        // There is no readable entry for this address. The unwinder then uses the frame pointer.
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

/// `breg6 (rbp) OFFSET; deref`: the expression of compilers for a function that aligns its stack.
fn aligned(expression: Expression<'_>) -> Option<Frame> {
    let bytes = expression.0.slice();
    let (&[BREG_BASE], rest) = bytes.split_first_chunk::<1>()? else {
        return None;
    };
    let (offset, rest) = signed(rest)?;
    (rest == [DEREFERENCE]).then_some(Frame::AtBase(offset))
}

/// `breg6 (rbp) 0`: the base pointer was saved where it points to. The result is a value that no offset has.
fn saved_at_base(expression: Expression<'_>) -> Option<i32> {
    let (&[BREG_BASE], rest) = expression.0.slice().split_first_chunk::<1>()? else {
        return None;
    };
    let (offset, rest) = signed(rest)?;
    (offset == 0 && rest.is_empty()).then_some(SAVED_WHERE_IT_POINTS)
}

/// The base pointer was saved where it points to.
pub(crate) const SAVED_WHERE_IT_POINTS: i32 = i32::MAX;

/// `breg7 (rsp) 160; deref`: the C library's return from a signal handler. The interrupted stack pointer is stored
/// there.
const SIGNAL_FRAME: [u8; 4] = [0x77, 0xa0, 0x01, DEREFERENCE];

const BREG_BASE: u8 = 0x76;
const DEREFERENCE: u8 = 0x06;

/// Decodes a signed LEB128 number.
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
