//! The layout that an interpreter publishes in `_PyRuntime`, from 3.13 on (`_Py_DebugOffsets` in
//! `internal/pycore_debug_offsets.h`).
//!
//! It is a table of words: a cookie, the version, whether the build has no GIL, and then the size and offsets of one
//! structure after the other. Versions add words anywhere, so each version has its own positions. A few missing offsets
//! are next to those in the table.

use super::layout::{
    Code, Form, Frame, Identity, Innermost, Instructions, Layout, Mark, NEW_TEXT, OBJECT, OBJECT_WITH_LOCK,
    Object, TEXT_WITH_LOCK, Text,
};
use super::lines::LineTable;
use super::memory::Checked;

impl Layout {
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
            15 => &WORDS_3_15,
            _ => return Err("this version is not supported"),
        };
        if table[0] != COOKIE || table[1] >> 16 != u64::from(0x0300 | minor) {
            return Err(WRONG);
        }
        let lock = match (table[2], minor) {
            (0, _) => Lock::Global,
            // 3.13 has no copies of bytecode.
            (1, 14..) => Lock::PerObject,
            _ => return Err("this version is not supported without the GIL"),
        };
        // Each structure starts with its size. An offset must be inside, and no structure is large.
        let offset = |of: usize, nth: usize| {
            let (size, offset) = (table[of], table[of + nth]);
            let sound = size < 1 << 16 && offset < size;
            sound.then_some(offset).ok_or(WRONG)
        };
        let start = offset(words.code, 9)?;
        let first_line = offset(words.code, 5)?;
        let (object, text) = lock.headers();
        let header_is_known = table[words.object + 1] == object.kind
            && (table[words.bytes + 1], table[words.bytes + 2]) == (object.size, object.bytes)
            && (table[words.text + 1], table[words.text + 2]) == (text.state, text.length)
            && table[words.text + 3] == text.ascii;
        if !header_is_known || !start.is_multiple_of(8) || start < 64 {
            return Err(WRONG);
        }
        let owner = offset(words.frame, 5)?;
        let form = match lock {
            Lock::Global => Form::Owned { owner },
            Lock::PerObject => Form::Copied {
                owner,
                number: offset(words.frame, 7)?,
                copies: offset(words.code, 10)?,
            },
        };
        Ok(Self {
            innermost: Innermost::Straight {
                frame: offset(words.thread, 4)?,
            },
            mark: Mark::EntryFrame,
            frame: Frame {
                code: offset(words.frame, 2)?,
                previous: offset(words.frame, 1)?,
                instruction: offset(words.frame, 3)?,
                form,
            },
            code: Code {
                file: offset(words.code, 1)?,
                name: offset(words.code, 3)?,
                first_line,
                line_table: offset(words.code, 4)?,
                line_form: LineTable::Locations,
                // Not in the table, but equal in all versions: `int _co_firsttraceable; void *co_extra;` come before
                // the instructions, without the GIL also `co_tlbc`. `co_version` is six integers after
                // `co_firstlineno`.
                instructions: Instructions::Within {
                    start,
                    first_traceable: match lock {
                        Lock::Global => start - 16,
                        Lock::PerObject => start - 24,
                    },
                },
                identity: Identity::Version(first_line + 24),
            },
            object,
            text,
        })
    }
}

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
const WORDS_3_15: Words = Words {
    thread: 22,
    frame: 39,
    code: 47,
    object: 58,
    bytes: 86,
    text: 89,
};
const TABLE_WORDS: usize = 93;

/// What protects objects from other threads. Headers of objects differ.
#[derive(Clone, Copy)]
enum Lock {
    Global,
    PerObject,
}

impl Lock {
    fn headers(self) -> (Object, Text) {
        match self {
            Self::Global => (OBJECT, NEW_TEXT),
            Self::PerObject => (OBJECT_WITH_LOCK, TEXT_WITH_LOCK),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// All layouts of the tables below.
    pub(in crate::python) fn recorded() -> [Layout; 5] {
        [
            (13, OF_3_13),
            (14, OF_3_14),
            (14, OF_3_14_WITHOUT_GIL),
            (15, OF_3_15),
            (15, OF_3_15_WITHOUT_GIL),
        ]
        .map(|(minor, table)| Layout::of_table(minor, &table).unwrap())
    }

    #[test]
    fn recorded_tables_give_the_layouts_of_the_headers() {
        let older = Layout::of_headers(12).unwrap();
        for (minor, table, start) in [(13, OF_3_13, 200), (14, OF_3_14, 208), (15, OF_3_15, 208)] {
            let layout = Layout::of_table(minor, &table).unwrap();
            assert_eq!(layout.innermost, Innermost::Straight { frame: 72 });
            assert_eq!((layout.object, layout.text), (older.object, older.text));
            let owner = if minor == 13 { 70 } else { 74 };
            let form = Form::Owned { owner };
            assert_eq!(layout.frame, Frame { form, ..older.frame });
            let instructions = Instructions::Within {
                start,
                first_traceable: start - 16,
            };
            let code = Code {
                instructions,
                ..older.code
            };
            assert_eq!(layout.code, code, "3.{minor}");
        }
    }

    #[test]
    fn builds_without_the_gil_have_larger_headers_and_copies_of_bytecode() {
        for (minor, table) in [(14, OF_3_14_WITHOUT_GIL), (15, OF_3_15_WITHOUT_GIL)] {
            let layout = Layout::of_table(minor, &table).unwrap();
            let with_gil = Layout::of_table(15, &OF_3_15).unwrap();
            assert_eq!(layout.innermost, with_gil.innermost);
            let form = Form::Copied {
                owner: 78,
                number: 72,
                copies: 224,
            };
            assert_eq!(
                layout.frame,
                Frame {
                    form,
                    ..with_gil.frame
                }
            );
            let code = Code {
                file: 128,
                name: 144,
                first_line: 84,
                line_table: 152,
                line_form: LineTable::Locations,
                instructions: Instructions::Within {
                    start: 232,
                    first_traceable: 208,
                },
                identity: Identity::Version(108),
            };
            assert_eq!(layout.code, code, "3.{minor}");
        }
    }

    #[test]
    fn a_table_that_is_not_what_it_should_be_is_not_used() {
        assert!(Layout::of_table(14, &OF_3_13).is_err(), "of another version");
        assert!(Layout::of_table(15, &OF_3_14_WITHOUT_GIL).is_err());
        assert!(Layout::of_table(16, &OF_3_15).is_err());
        let cases = [
            (
                13,
                OF_3_13,
                [(23, 304), (30, 1 << 40), (34, 0), (43, 8), (45, 24), (2, 1)],
            ),
            (
                15,
                OF_3_15,
                [(26, 888), (42, 1 << 40), (47, 0), (56, 8), (59, 24), (2, 1)],
            ),
            (
                14,
                OF_3_14_WITHOUT_GIL,
                [(38, 88), (49, 240), (51, 8), (75, 16), (80, 40), (2, 0)],
            ),
        ];
        for (minor, sound, changes) in cases {
            for (at, value) in changes.into_iter().chain([(0, 0), (1, 0x0310_00f0), (2, 2)]) {
                let mut table = sound;
                table[at] = value;
                assert!(Layout::of_table(minor, &table).is_err(), "3.{minor}, word {at}");
            }
        }
    }

    /// 3.13.0, on Debian 12, built with pyenv.
    #[rustfmt::skip]
    const OF_3_13: [u64; TABLE_WORDS] = [
        0x7970677562656478, 0x030d00f0,
        0, 283320, 608, 632, 194968, 7272, 7264, 7344, 7400, 7656, 7640, 7648, 16, 7752, 0, 7768, 7760, 304,
        0, 8, 16, 72, 152, 160, 232, 32, 80, 8, 0, 56, 72, 70, 208, 112, 120, 128, 136, 68, 52, 96, 104, 200,
        16, 8, 416, 24, 88, 168, 32, 24, 16, 40, 24, 16, 48, 32, 40, 24, 16, 32, 16, 24, 40, 16, 32, 64, 32,
        16, 40, 240, 200, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ];

    /// 3.14.8 of Debian.
    #[rustfmt::skip]
    const OF_3_14: [u64; TABLE_WORDS] = [
        0x7970677562656478, 0x030e08f0,
        0, 316616, 784, 808, 225864, 7280, 7272, 7344, 7360, 7408, 7688, 7672, 7680, 16, 7784, 0, 7800, 7792,
        7992, 0, 832, 0, 8, 16, 72, 152, 160, 232, 32, 88, 8, 0, 56, 80, 74, 64, 0, 216, 112, 120, 128, 136,
        68, 52, 96, 104, 208, 0, 16, 8, 416, 24, 88, 168, 40, 32, 16, 40, 24, 16, 200, 24, 40, 32, 48, 32, 40,
        24, 16, 32, 16, 24, 40, 16, 32, 64, 32, 16, 40, 264, 192, 160, 24, 72, 67, 0, 8, 24, 304, 8076, 0,
    ];

    /// 3.14.2 without the GIL.
    #[rustfmt::skip]
    const OF_3_14_WITHOUT_GIL: [u64; TABLE_WORDS] = [
        0x7970677562656478, 0x030e02f0,
        1, 362304, 784, 808, 246656, 7280, 7272, 7344, 7360, 7408, 7712, 7696, 7704, 16, 7808, 0, 7832, 7824,
        8024, 17628, 824, 0, 8, 16, 72, 152, 160, 232, 32, 88, 8, 0, 56, 80, 78, 64, 72, 240, 128, 136, 144,
        152, 84, 68, 112, 120, 232, 224, 32, 24, 432, 40, 104, 184, 56, 48, 32, 56, 40, 32, 216, 40, 56, 48,
        64, 48, 56, 40, 32, 48, 32, 40, 56, 32, 48, 80, 48, 32, 56, 288, 192, 176, 40, 88, 83, 0, 8, 24, 304,
        8108, 0,
    ];

    /// 3.15.0 of Debian.
    #[rustfmt::skip]
    const OF_3_15: [u64; TABLE_WORDS] = [
        0x7970677562656478, 0x030f00f0,
        0, 346568, 912, 936, 226240, 7272, 7264, 7336, 7352, 7400, 7592, 7576, 7584, 16, 7736, 0, 7752, 7744,
        7944, 0, 888, 0, 8, 16, 72, 80, 88, 96, 176, 184, 256, 32, 36, 40, 136, 288, 0, 88, 8, 0, 56, 80, 74,
        64, 0, 216, 112, 120, 128, 136, 68, 52, 96, 104, 208, 0, 16, 8, 424, 24, 88, 168, 32, 288, 944, 888,
        40, 32, 16, 40, 24, 16, 200, 24, 40, 32, 48, 32, 40, 24, 16, 32, 16, 24, 40, 16, 32, 64, 32, 16, 40,
    ];

    /// 3.15.0 without the GIL, from its headers.
    #[rustfmt::skip]
    const OF_3_15_WITHOUT_GIL: [u64; TABLE_WORDS] = [
        0x7970677562656478, 0x030f00f0,
        1, 406016, 912, 936, 247040, 7272, 7264, 7336, 7352, 7400, 7592, 7576, 7584, 16, 7736, 0, 7760, 7752,
        7952, 17564, 888, 0, 8, 16, 72, 80, 88, 96, 176, 184, 256, 32, 36, 40, 136, 288, 0, 88, 8, 0, 56, 80,
        78, 64, 72, 240, 128, 136, 144, 152, 84, 68, 112, 120, 232, 224, 32, 24, 440, 40, 104, 184, 48, 304,
        968, 904, 56, 48, 32, 56, 40, 32, 216, 40, 56, 48, 64, 48, 56, 40, 32, 48, 32, 40, 56, 32, 48, 80, 48,
        32, 56,
    ];
}
