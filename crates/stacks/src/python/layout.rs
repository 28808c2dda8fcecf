//! The offsets of the interpreter's structures, for each supported version.
//!
//! Up to 3.12, they come from the headers of the version (`cpython/pystate.h`, `cpython/code.h`,
//! `internal/pycore_frame.h`). They do not change between releases of one version. From 3.13 on, the interpreter
//! publishes them; see `published`. `check` tests all of them on real frames before they are used.
//!
//! Builds without the GIL have larger object headers, and a copy of the bytecode for each thread.

use super::lines::LineTable;

/// Offsets in bytes, and the formats of the structures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) innermost: Innermost,
    /// What each run of the eval loop leaves on the C stack.
    pub(super) mark: Mark,
    pub(super) frame: Frame,
    pub(super) code: Code,
    pub(super) object: Object,
    pub(super) text: Text,
}

/// How a thread's state leads to its innermost frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Innermost {
    /// It points to the frame.
    Straight { frame: u64 },
    /// It points to a structure of the eval loop, which points to the frame: 3.11 and 3.12.
    ThroughLoop { eval_loop: u64, frame: u64 },
}

/// What marks a run of the eval loop on the C stack, and so identifies its C frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// Nothing: 3.9.
    None,
    /// A linked list of structures, one per run, that starts at the thread's state: 3.10 and 3.11.
    Chain { thread: u64, previous: u64 },
    /// The entry frame of a run is on the C stack itself: from 3.12 on.
    EntryFrame,
}

/// A frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) code: u64,
    pub(super) previous: u64,
    pub(super) instruction: u64,
    pub(super) form: Form,
}

/// How frames store their instruction, and where runs of the eval loop start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Frames are objects with their own eval loop. The instruction is counted in units of this many bytes.
    Objects { unit_bytes: u32 },
    /// A flag marks the first frame of a run. The instruction is an address.
    Flagged { owner: u64, is_entry: u64 },
    /// A frame of the eval loop comes before each run. The instruction is an address.
    Owned { owner: u64 },
    /// As `Owned`, and each thread runs its own copy of the bytecode: builds without the GIL. A frame has the number of
    /// its copy, and a code object has the list of its copies. Copy 0 is in the code object itself.
    Copied { owner: u64, number: u64, copies: u64 },
}

/// A code object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Code {
    pub(super) file: u64,
    pub(super) name: u64,
    pub(super) first_line: u64,
    pub(super) line_table: u64,
    pub(super) line_form: LineTable,
    pub(super) instructions: Instructions,
    pub(super) identity: Identity,
}

/// Where the instructions are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Instructions {
    /// In a separate object.
    Apart { bytes_object: u64 },
    /// In the code object. Instructions before the first traceable one prepare the frame.
    Within { start: u64, first_traceable: u64 },
}

/// What distinguishes a code object from an earlier one at the same address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Identity {
    /// The interpreter numbers code objects: from 3.12 on.
    Version(u64),
    /// Its names.
    Names,
}

/// The start of every object: `PyObject`, `PyVarObject`, `PyBytesObject`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Object {
    pub(super) kind: u64,
    pub(super) size: u64,
    /// The offset of the data of a `bytes` object.
    pub(super) bytes: u64,
}

/// A string: `PyASCIIObject`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Text {
    pub(super) length: u64,
    pub(super) hash: u64,
    /// Bits that state how the characters are stored.
    pub(super) state: u64,
    /// The lowest of these bits: three for the width, then `is_compact` and `is_ascii`.
    pub(super) lowest_bit: u32,
    /// The offset of the characters of an ASCII string.
    pub(super) ascii: u64,
    /// The offset of the characters of other strings, or of the pointer to them.
    pub(super) other: u64,
}

impl Text {
    /// The width of the characters in bytes.
    pub(super) fn width(self, state: u32) -> u32 {
        state >> self.lowest_bit & 7
    }

    /// Whether the characters are in the string object.
    pub(super) fn is_compact(self, state: u32) -> bool {
        state >> self.lowest_bit & 8 != 0
    }

    pub(super) fn is_ascii(self, state: u32) -> bool {
        state >> self.lowest_bit & 16 != 0
    }
}

/// The owner of a frame (`enum _frameowner`).
pub(super) const OWNED_BY_GENERATOR: u8 = 1;
/// From this value on, a frame belongs to the eval loop and not to Python code.
pub(super) const OWNED_BY_LOOP: u8 = 3;
/// The largest value.
pub(super) const LAST_OWNER: u8 = 4;

impl Layout {
    /// The layout of version 3.`minor`, if its headers define everything.
    pub(super) fn of_headers(minor: u32) -> Option<Self> {
        match minor {
            9 => Some(Self::with_objects(
                Mark::None,
                104,
                Form::Objects { unit_bytes: 1 },
                LineTable::Changes,
            )),
            10 => Some(Self::with_objects(
                Mark::Chain {
                    thread: 48,
                    previous: 8,
                },
                96,
                Form::Objects { unit_bytes: 2 },
                LineTable::Ranges,
            )),
            11 => Some(Self::OF_3_11),
            12 => Some(Self::OF_3_12),
            _ => None,
        }
    }

    /// 3.9 and 3.10, which differ little.
    fn with_objects(mark: Mark, instruction: u64, form: Form, line_form: LineTable) -> Self {
        Self {
            innermost: Innermost::Straight { frame: 24 },
            mark,
            frame: Frame {
                code: 32,
                previous: 24,
                instruction,
                form,
            },
            code: Code {
                file: 104,
                name: 112,
                first_line: 40,
                line_table: 120,
                line_form,
                instructions: Instructions::Apart { bytes_object: 48 },
                identity: Identity::Names,
            },
            object: OBJECT,
            text: OLD_TEXT,
        }
    }

    const OF_3_11: Self = Self {
        innermost: Innermost::ThroughLoop {
            eval_loop: 56,
            frame: 8,
        },
        mark: Mark::Chain {
            thread: 56,
            previous: 16,
        },
        frame: Frame {
            code: 32,
            previous: 48,
            instruction: 56,
            form: Form::Flagged {
                owner: 69,
                is_entry: 68,
            },
        },
        code: Code {
            file: 112,
            name: 128,
            first_line: 72,
            line_table: 136,
            line_form: LineTable::Locations,
            instructions: Instructions::Within {
                start: 184,
                first_traceable: 168,
            },
            identity: Identity::Names,
        },
        object: OBJECT,
        text: OLD_TEXT,
    };

    const OF_3_12: Self = Self {
        innermost: Innermost::ThroughLoop {
            eval_loop: 56,
            frame: 0,
        },
        mark: Mark::EntryFrame,
        frame: Frame {
            code: 0,
            previous: 8,
            instruction: 56,
            form: Form::Owned { owner: 70 },
        },
        code: Code {
            file: 112,
            name: 128,
            first_line: 68,
            line_table: 136,
            line_form: LineTable::Locations,
            instructions: Instructions::Within {
                start: 192,
                first_traceable: 176,
            },
            identity: Identity::Version(92),
        },
        object: OBJECT,
        text: NEW_TEXT,
    };
}

pub(super) const OBJECT: Object = Object {
    kind: 8,
    size: 16,
    bytes: 32,
};

pub(super) const OBJECT_WITH_LOCK: Object = Object {
    kind: 24,
    size: 32,
    bytes: 48,
};

pub(super) const OLD_TEXT: Text = Text {
    length: 16,
    hash: 24,
    state: 32,
    lowest_bit: 2,
    ascii: 48,
    other: 72,
};

pub(super) const NEW_TEXT: Text = Text {
    ascii: 40,
    other: 56,
    ..OLD_TEXT
};

pub(super) const TEXT_WITH_LOCK: Text = Text {
    length: 32,
    hash: 40,
    state: 48,
    lowest_bit: 8,
    ascii: 56,
    other: 72,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_without_headers_are_unknown() {
        for minor in [0, 8, 13, 15] {
            assert_eq!(Layout::of_headers(minor), None);
        }
    }

    #[test]
    fn the_state_of_a_string_is_read_at_its_place() {
        let state = 4 | 8;
        assert_eq!(NEW_TEXT.width(state << 2 | 3), 4);
        assert!(NEW_TEXT.is_compact(state << 2) && !NEW_TEXT.is_ascii(state << 2 | 3));
        assert_eq!(TEXT_WITH_LOCK.width(state << 8 | 0xff), 4);
        assert!(TEXT_WITH_LOCK.is_compact(state << 8) && !TEXT_WITH_LOCK.is_ascii(state << 8 | 0xff));
        assert!(TEXT_WITH_LOCK.is_ascii(1 << 12) && NEW_TEXT.is_ascii(1 << 6));
    }
}
