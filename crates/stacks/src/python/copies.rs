//! The copies of bytecode in builds without the GIL.
//!
//! In such a build, each thread runs its own copy of a function's bytecode. The offset of an instruction is therefore
//! relative to the start of a copy, and the code object has the list of all copies (`co_tlbc`). Another thread can
//! replace this list by a larger one at any time. It then frees the old list, without waiting for a thread that is
//! inside a C call. So this list, unlike the frames and code objects, is not stable while it is read.
//!
//! It is read with system calls, and the result is checked and remembered. A copy stays where it is as long as its
//! thread has this copy's number.

use std::cell::Cell;

use super::layout::{Form, Layout};
use super::memory::{Checked, Memory, can_be_object};

/// A copy of a code object's bytecode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Copy {
    pub(super) code: u64,
    /// Distinguishes code objects at the same address.
    pub(super) version: u32,
    /// The number of the copy, other than 0.
    pub(super) number: u32,
}

/// The copies that a thread has met.
#[derive(Clone, Debug)]
pub(super) struct Copies(Box<[Cell<Known>]>);

#[derive(Clone, Copy, Debug)]
struct Known {
    copy: Copy,
    start: u64,
    size_bytes: u64,
}

/// The empty entry: no object is at address 0.
const NONE: Known = Known {
    copy: Copy {
        code: 0,
        version: 0,
        number: 0,
    },
    start: 0,
    size_bytes: 0,
};

/// 16 KiB per thread.
const ENTRIES: usize = 512;
/// How often a list is read that other threads replace meanwhile. They double its size each time.
const MOST_TRIES: usize = 8;

impl Copies {
    /// For a layout. Has no entries if there are no copies.
    pub(super) fn of(layout: &Layout) -> Self {
        let entries = match layout.frame.form {
            Form::Copied { .. } => ENTRIES,
            _ => 0,
        };
        Self(vec![Cell::new(NONE); entries].into_boxed_slice())
    }

    /// The start of a copy, if it is known and contains the instruction.
    #[inline(always)]
    pub(super) fn get(&self, copy: Copy, instruction: u64) -> Option<u64> {
        let known = self.entry(copy)?.get();
        let is_within = instruction.wrapping_sub(known.start) < known.size_bytes;
        (known.copy == copy && is_within).then_some(known.start)
    }

    /// Reads the start of a copy of this size, and remembers it if it contains the instruction.
    #[cold]
    pub(super) fn find(&self, copy: Copy, list: u64, size_bytes: u64, instruction: u64) -> Option<u64> {
        let start = find(copy.code, list, copy.number)?;
        if instruction.wrapping_sub(start) >= size_bytes {
            return None;
        }
        if let Some(entry) = self.entry(copy) {
            entry.set(Known {
                copy,
                start,
                size_bytes,
            });
        }
        Some(start)
    }

    #[inline(always)]
    fn entry(&self, copy: Copy) -> Option<&Cell<Known>> {
        // Code objects are at multiples of 16, and often in a row.
        let hash = (copy.code >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        self.0.get(hash as usize % ENTRIES)
    }
}

/// The start of a copy, from the list in a code object: its length, then the addresses. All is read with system calls.
///
/// If the code object still has the same list afterwards, the list was not freed in between.
pub(super) fn find(code: u64, list: u64, number: u32) -> Option<u64> {
    for _ in 0..MOST_TRIES {
        let before = Checked.word(code, list)?;
        if !can_be_object(before) {
            return None;
        }
        let start = in_list(before, number);
        if Checked.word(code, list)? == before {
            return start;
        }
    }
    None
}

fn in_list(list: u64, number: u32) -> Option<u64> {
    let number = u64::from(number);
    let length = Checked.word(list, 0)?;
    if number >= length {
        return None;
    }
    // An unused number has address 0.
    Checked.word(list, 8 + 8 * number).filter(|&start| start != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A code object whose second word is the address of its list.
    struct Code {
        words: [u64; 2],
        list: Box<[u64; 4]>,
    }

    const LIST: u64 = 8;

    impl Code {
        fn new() -> Box<Self> {
            let list = Box::new([3, 0x1000, 0, 0x3000]);
            let address = list.as_ptr() as u64;
            Box::new(Self {
                words: [0, address],
                list,
            })
        }

        fn address(&self) -> u64 {
            self.words.as_ptr() as u64
        }

        fn copy(&self, number: u32) -> Copy {
            Copy {
                code: self.address(),
                version: 7,
                number,
            }
        }
    }

    fn copies() -> Copies {
        Copies(vec![Cell::new(NONE); ENTRIES].into_boxed_slice())
    }

    #[test]
    fn a_copy_is_found_in_the_list_and_remembered() {
        let (mut code, copies) = (Code::new(), copies());
        assert_eq!(copies.get(code.copy(2), 0x3010), None);
        assert_eq!(copies.find(code.copy(2), LIST, 0x20, 0x3010), Some(0x3000));
        code.list[3] = 0x4000;
        assert_eq!(copies.get(code.copy(2), 0x3010), Some(0x3000));
        assert_eq!(copies.get(code.copy(2), 0x3020), None, "behind its end");
        assert_eq!(copies.get(code.copy(2), 0x2ff0), None, "before its start");
        assert_eq!(copies.get(code.copy(1), 0x3010), None, "another copy");
        let other = Copy {
            version: 8,
            ..code.copy(2)
        };
        assert_eq!(copies.get(other, 0x3010), None, "another code object");
        assert_eq!(copies.find(code.copy(2), LIST, 0x20, 0x4010), Some(0x4000));
        assert_eq!(copies.get(code.copy(2), 0x4010), Some(0x4000));
    }

    #[test]
    fn what_is_not_in_the_list_is_not_found() {
        let (mut code, copies) = (Code::new(), copies());
        let find = |code: &Code, number, at| copies.find(code.copy(number), LIST, 0x20, at);
        assert_eq!(find(&code, 1, 0x10), None, "not used");
        assert_eq!(find(&code, 3, 0x10), None, "behind the end of the list");
        assert_eq!(find(&code, 2, 0x3020), None, "an instruction outside");
        for list in [0, 12345, 0x10_0000, u64::MAX] {
            code.words[1] = list;
            assert_eq!(find(&code, 2, 0x3010), None, "{list:x}");
        }
    }

    #[test]
    fn without_entries_every_copy_is_read_anew() {
        let (code, none) = (Code::new(), Copies(Box::new([])));
        assert_eq!(none.find(code.copy(2), LIST, 0x20, 0x3010), Some(0x3000));
        assert_eq!(none.get(code.copy(2), 0x3010), None);
    }
}
