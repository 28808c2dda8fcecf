//! The offsets of the interpreter's structures, for each supported version.
//!
//! Up to 3.12, they come from the headers of the version (`cpython/pystate.h`, `cpython/code.h`,
//! `internal/pycore_frame.h`). They do not change between releases of one version. From 3.13 on, the interpreter
//! publishes them in `_PyRuntime` (`internal/pycore_debug_offsets.h`). A few missing ones are next to those that it
//! has. `check` tests all of them on real frames before they are used.

use super::lines::LineTable;
use super::memory::Checked;

/// Offsets in bytes, and the formats of the structures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) innermost: Innermost,
    /// What each run of the eval loop leaves on the C stack.
    pub(super) mark: Mark,
    pub(super) frame: Frame,
    pub(super) code: Code,
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

/// A string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Text {
    /// The offset of the characters of an ASCII string.
    pub(super) ascii: u64,
    /// The offset of the characters of other strings, or of the pointer to them.
    pub(super) other: u64,
}

/// Equal in all versions: `PyObject`, `PyVarObject`, `PyBytesObject`, `PyASCIIObject`.
pub(super) const OBJECT_TYPE: u64 = 8;
pub(super) const OBJECT_SIZE: u64 = 16;
pub(super) const BYTES_DATA: u64 = 32;
pub(super) const TEXT_LENGTH: u64 = 16;
pub(super) const TEXT_HASH: u64 = 24;
pub(super) const TEXT_STATE: u64 = 32;
/// Bits of a string's state.
pub(super) const TEXT_IS_COMPACT: u32 = 1 << 5;
pub(super) const TEXT_IS_ASCII: u32 = 1 << 6;

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
        text: NEW_TEXT,
    };

    /// The layout of version 3.`minor`, from `_PyRuntime`. The error states what is wrong.
    pub(super) fn of_runtime(minor: u32, runtime: u64) -> Result<Self, &'static str> {
        let mut bytes = [0; TABLE_WORDS * 8];
        Checked
            .copy(runtime, &mut bytes)
            .ok_or("its memory cannot be read safely")?;
        let (words, _) = bytes.as_chunks::<8>();
        let mut table = [0; TABLE_WORDS];
        for (word, bytes) in table.iter_mut().zip(words) {
            *word = u64::from_le_bytes(*bytes);
        }
        Self::of_table(minor, &table)
    }

    fn of_table(minor: u32, table: &[u64; TABLE_WORDS]) -> Result<Self, &'static str> {
        const COOKIE: u64 = u64::from_le_bytes(*b"xdebugpy");
        const WRONG: &str = "its offset table (_Py_DebugOffsets) does not match its version";
        let words = match minor {
            13 => &WORDS_3_13,
            14 => &WORDS_3_14,
            _ => return Err("this version is not supported"),
        };
        if table[0] != COOKIE || table[1] >> 16 != u64::from(0x0300 | minor) {
            return Err(WRONG);
        }
        if table[2] != 0 {
            return Err("free-threaded builds (without the GIL) are not supported");
        }
        // Each structure starts with its size. An offset must be inside, and no structure is large.
        let offset = |of: usize, nth: usize| {
            let (size, offset) = (table[of], table[of + nth]);
            let sound = size < 1 << 16 && offset < size;
            sound.then_some(offset).ok_or(WRONG)
        };
        let start = offset(words.code, 9)?;
        let first_line = offset(words.code, 5)?;
        let header_is_known = table[words.object + 1] == OBJECT_TYPE
            && (table[words.bytes + 1], table[words.bytes + 2]) == (OBJECT_SIZE, BYTES_DATA)
            && (table[words.text + 1], table[words.text + 2]) == (TEXT_STATE, TEXT_LENGTH)
            && table[words.text + 3] == NEW_TEXT.ascii;
        if !header_is_known || !start.is_multiple_of(8) || start < 64 {
            return Err(WRONG);
        }
        Ok(Self {
            innermost: Innermost::Straight {
                frame: offset(words.thread, 4)?,
            },
            mark: Mark::EntryFrame,
            frame: Frame {
                code: offset(words.frame, 2)?,
                previous: offset(words.frame, 1)?,
                instruction: offset(words.frame, 3)?,
                form: Form::Owned {
                    owner: offset(words.frame, 5)?,
                },
            },
            code: Code {
                file: offset(words.code, 1)?,
                name: offset(words.code, 3)?,
                first_line,
                line_table: offset(words.code, 4)?,
                line_form: LineTable::Locations,
                // Not in the table, but equal in both versions: `int _co_firsttraceable; void *co_extra;` come before
                // the instructions, and `co_version` is six integers after `co_firstlineno`.
                instructions: Instructions::Within {
                    start,
                    first_traceable: start - 16,
                },
                identity: Identity::Version(first_line + 24),
            },
            text: NEW_TEXT,
        })
    }
}

const OLD_TEXT: Text = Text { ascii: 48, other: 72 };
const NEW_TEXT: Text = Text { ascii: 40, other: 56 };

/// The start of each structure in the table, in words.
struct Words {
    thread: usize,
    frame: usize,
    code: usize,
    object: usize,
    bytes: usize,
    text: usize,
}

const WORDS_3_13: Words = Words {
    thread: 19,
    frame: 28,
    code: 34,
    object: 44,
    bytes: 64,
    text: 67,
};
const WORDS_3_14: Words = Words {
    thread: 22,
    frame: 31,
    code: 39,
    object: 50,
    bytes: 74,
    text: 77,
};
const TABLE_WORDS: usize = 81;

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of 3.13, as far as it is used.
    fn table() -> [u64; TABLE_WORDS] {
        let mut table = [0; TABLE_WORDS];
        table[0] = u64::from_le_bytes(*b"xdebugpy");
        table[1] = 0x030d_00f0;
        let parts: [(usize, &[u64]); 6] = [
            (19, &[400, 0, 8, 16, 72]),
            (28, &[80, 8, 0, 56, 72, 70]),
            (34, &[208, 112, 120, 128, 136, 68, 52, 96, 104, 200]),
            (44, &[16, 8]),
            (64, &[40, 16, 32]),
            (67, &[64, 32, 16, 40]),
        ];
        for (at, words) in parts {
            table[at..at + words.len()].copy_from_slice(words);
        }
        table
    }

    #[test]
    fn a_published_table_gives_the_layout_of_the_headers() {
        let layout = Layout::of_table(13, &table()).unwrap();
        assert_eq!(layout.frame, Layout::OF_3_12.frame);
        assert_eq!(layout.innermost, Innermost::Straight { frame: 72 });
        assert_eq!(layout.code.identity, Identity::Version(92));
        let instructions = Instructions::Within {
            start: 200,
            first_traceable: 184,
        };
        assert_eq!(layout.code.instructions, instructions);
    }

    #[test]
    fn a_table_that_is_not_what_it_should_be_is_not_used() {
        assert!(Layout::of_table(14, &table()).is_err(), "of another version");
        assert!(Layout::of_table(15, &table()).is_err());
        for (at, value) in [
            (0, 0),
            (1, 0x030e_00f0),
            (2, 1),
            (23, 400),
            (30, 1 << 40),
            (34, 0),
            (43, 8),
            (45, 24),
        ] {
            let mut table = table();
            table[at] = value;
            assert!(Layout::of_table(13, &table).is_err(), "word {at}");
        }
    }

    #[test]
    fn versions_without_headers_are_unknown() {
        for minor in [0, 8, 13, 15] {
            assert_eq!(Layout::of_headers(minor), None);
        }
    }
}
