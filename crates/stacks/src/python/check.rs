//! Checks the layout on the frames of the first thread that has some.
//!
//! Every object must have the expected type, and every number must be plausible. The chain of frames must end. All
//! memory is read with a system call, so a wrong offset gives an error instead of a crash. A wrong offset would have
//! to lead to objects of the right types in every frame to pass by chance.

use std::ops::ControlFlow;

use super::chain::Chain;
use super::copies::{self, Copies};
use super::layout::{Form, Instructions, Layout};
use super::memory::{Bytes, Checked, Memory};
use super::symbols::Symbols;
use super::walk::{NOT_BEGUN, PythonEnd, PythonFrame};

/// What was not as expected. [`DOUBTS`] contains the descriptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doubt {
    Unreadable,
    Chain,
    Code,
    Name,
    Instruction,
    Line,
}

/// Descriptions, in the order of [`Doubt`].
pub(super) const DOUBTS: [&str; 6] = [
    "its memory cannot be read safely",
    "its frames do not have the expected layout",
    "its code objects do not have the expected layout",
    "its names do not have the expected layout",
    "its instructions do not have the expected layout",
    "its line number tables do not have the expected layout",
];

/// Number of frames to check: enough for several kinds, and few enough for the first launch.
const MOST: usize = 64;
/// Longer than in any real program.
const LONGEST_NAME: u64 = 1 << 16;
const LONGEST_CODE: u64 = 1 << 28;
const LAST_LINE: u32 = 1 << 28;

/// Returns how many frames were checked.
pub(super) fn check(layout: &Layout, symbols: &Symbols, thread: u64) -> Result<usize, Doubt> {
    Checked.word(thread, 0).ok_or(Doubt::Unreadable)?;
    let copies = Copies::of(layout);
    let chain = Chain::new(layout, Checked, &copies, thread, MOST).map_err(|_| Doubt::Chain)?;
    let (mut seen, mut doubt) = (0, None);
    let end = chain.each(|found| {
        if seen == MOST {
            return ControlFlow::Break(PythonEnd::Limit);
        }
        seen += 1;
        match frame(layout, symbols, &found.frame) {
            Ok(()) => ControlFlow::Continue(()),
            Err(found) => {
                doubt = Some(found);
                ControlFlow::Break(PythonEnd::Broken)
            }
        }
    });
    match (doubt, end) {
        (Some(doubt), _) => Err(doubt),
        (None, PythonEnd::Root | PythonEnd::Limit) => Ok(seen),
        (None, _) => Err(Doubt::Chain),
    }
}

fn frame(layout: &Layout, symbols: &Symbols, frame: &PythonFrame) -> Result<(), Doubt> {
    let (code, at) = (frame.code, layout.code);
    let is_of_type = |object, kind| Checked.word(object, layout.object.kind) == Some(kind);
    if !is_of_type(code, symbols.code_type) {
        return Err(Doubt::Code);
    }
    for name in [at.name, at.file] {
        let name = Checked.word(code, name).ok_or(Doubt::Name)?;
        let length = Checked.word(name, layout.text.length).ok_or(Doubt::Name)?;
        if !is_of_type(name, symbols.text_type) || length > LONGEST_NAME {
            return Err(Doubt::Name);
        }
    }
    let length = instructions_length(layout, symbols, code).ok_or(Doubt::Instruction)?;
    let is_within = frame.instruction == NOT_BEGUN || u64::from(frame.instruction) < length;
    if !is_within || length > LONGEST_CODE {
        return Err(Doubt::Instruction);
    }
    if let (Form::Copied { copies, .. }, Instructions::Within { start, .. }) =
        (layout.frame.form, at.instructions)
        && copies::find(code, copies, 0) != Some(code.wrapping_add(start))
    {
        return Err(Doubt::Instruction);
    }
    let first_line = Checked.half(code, at.first_line).ok_or(Doubt::Line)?;
    let table = Checked.word(code, at.line_table).ok_or(Doubt::Line)?;
    let size = bytes_length(layout, symbols, table).ok_or(Doubt::Line)?;
    let is_readable = Bytes::new(table.wrapping_add(layout.object.bytes), size).count() as u64 == size;
    if first_line > LAST_LINE || size > LONGEST_CODE || !is_readable {
        return Err(Doubt::Line);
    }
    Ok(())
}

/// The size of a code object's instructions in bytes.
fn instructions_length(layout: &Layout, symbols: &Symbols, code: u64) -> Option<u64> {
    match layout.code.instructions {
        Instructions::Apart { bytes_object } => {
            bytes_length(layout, symbols, Checked.word(code, bytes_object)?)
        }
        Instructions::Within { first_traceable, .. } => {
            // In units of two bytes. The first traceable instruction must be one of them.
            let units = Checked.word(code, layout.object.size)?;
            let first = Checked.half(code, first_traceable)?;
            (u64::from(first) <= units).then(|| units.saturating_mul(2))
        }
    }
}

fn bytes_length(layout: &Layout, symbols: &Symbols, object: u64) -> Option<u64> {
    let length = Checked.word(object, layout.object.size)?;
    let kind = Checked.word(object, layout.object.kind)?;
    (kind == symbols.bytes_type).then_some(length)
}

#[cfg(test)]
mod tests {
    use std::ffi::{c_int, c_void};

    use super::*;
    use crate::python::published::tests::recorded;
    use crate::python::symbols::Version;

    const CODE: u64 = 0x1000;
    const TEXT: u64 = 0x2000;
    const BYTES: u64 = 0x3000;

    unsafe extern "C" fn nothing() -> *mut c_void {
        std::ptr::null_mut()
    }

    unsafe extern "C" fn zero() -> c_int {
        0
    }

    fn symbols() -> Symbols {
        Symbols {
            thread_state: nothing,
            is_finalizing: zero,
            first_interpreter: nothing,
            last_interpreter: nothing,
            code_type: CODE,
            text_type: TEXT,
            bytes_type: BYTES,
            runtime: 0,
            eval: 0..0,
            own: 0..0,
            version: Version { major: 3, minor: 10 },
        }
    }

    /// Objects in the layout of 3.10, 32 words each: a thread, two frames, a code object, its names and tables.
    struct Objects(Box<[[u64; 32]; 6]>);

    const THREAD: usize = 0;
    const FRAME: usize = 1;
    const CALLER: usize = 2;
    const CODE_OBJECT: usize = 3;
    const NAME: usize = 4;
    const TABLE: usize = 5;

    impl Objects {
        fn new() -> Self {
            let mut objects = Self(Box::new([[0; 32]; 6]));
            let at: Vec<u64> = (0..6).map(|object| objects.address(object)).collect();
            let words = &mut objects.0;
            words[THREAD][3] = at[FRAME];
            words[FRAME][3] = at[CALLER];
            for frame in [FRAME, CALLER] {
                words[frame][4] = at[CODE_OBJECT];
                words[frame][12] = 2;
            }
            words[CODE_OBJECT][1] = CODE;
            words[CODE_OBJECT][5] = 7;
            words[CODE_OBJECT][6] = at[TABLE];
            words[CODE_OBJECT][13] = at[NAME];
            words[CODE_OBJECT][14] = at[NAME];
            words[CODE_OBJECT][15] = at[TABLE];
            words[NAME][1] = TEXT;
            words[NAME][2] = 20;
            words[TABLE][1] = BYTES;
            words[TABLE][2] = 40;
            objects
        }

        fn address(&self, object: usize) -> u64 {
            &raw const self.0[object] as u64
        }

        fn check(&self) -> Result<usize, Doubt> {
            let layout = Layout::of_headers(10).unwrap();
            check(&layout, &symbols(), self.address(THREAD))
        }
    }

    #[test]
    fn frames_that_are_right_are_counted() {
        assert_eq!(Objects::new().check(), Ok(2));
        let mut idle = Objects::new();
        idle.0[THREAD][3] = 0;
        assert_eq!(idle.check(), Ok(0));
        let mut endless = Objects::new();
        endless.0[CALLER][3] = endless.address(FRAME);
        assert_eq!(endless.check(), Ok(MOST));
    }

    #[test]
    fn whatever_is_not_as_it_should_be_is_told() {
        let unmapped = 0x10_0000;
        for (object, word, value, doubt) in [
            (THREAD, 3, 12345, Doubt::Chain),
            (THREAD, 3, unmapped, Doubt::Chain),
            (FRAME, 3, u64::MAX, Doubt::Chain),
            (FRAME, 4, 0, Doubt::Chain),
            (FRAME, 4, unmapped, Doubt::Code),
            (CODE_OBJECT, 1, TEXT, Doubt::Code),
            (CODE_OBJECT, 14, unmapped, Doubt::Name),
            (CODE_OBJECT, 13, u64::MAX - 7, Doubt::Name),
            (NAME, 1, CODE, Doubt::Name),
            (NAME, 2, u64::MAX, Doubt::Name),
            (FRAME, 12, 20, Doubt::Instruction),
            (CODE_OBJECT, 6, unmapped, Doubt::Instruction),
            (CODE_OBJECT, 5, u64::MAX, Doubt::Line),
            (CODE_OBJECT, 15, unmapped, Doubt::Line),
        ] {
            let mut objects = Objects::new();
            objects.0[object][word] = value;
            assert_eq!(objects.check(), Err(doubt), "word {word} of object {object}");
        }
        assert_eq!(
            check(&Layout::of_headers(10).unwrap(), &symbols(), unmapped),
            Err(Doubt::Unreadable)
        );
    }

    #[test]
    fn wild_memory_is_an_answer_in_every_layout() {
        let mut seed = 0x1234_5678_9abc_def1_u64;
        let mut random = move || {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed
        };
        for _ in 0..500 {
            let mut objects = Objects::new();
            for object in 0..6 {
                for word in 0..32 {
                    objects.0[object][word] = match random() % 8 {
                        0 => random(),
                        1 => random() >> 40,
                        2 => 0,
                        3 => [CODE, TEXT, BYTES][random() as usize % 3],
                        _ => objects.address(random() as usize % 6),
                    };
                }
            }
            let of_headers = (9..=12).filter_map(Layout::of_headers);
            for layout in of_headers.chain(recorded()) {
                // Any result is fine. The test is that there is one.
                let _ = check(&layout, &symbols(), objects.address(THREAD));
            }
        }
    }

    #[test]
    fn every_doubt_has_words() {
        assert!(DOUBTS[Doubt::Line as usize].contains("line"));
        assert_eq!(Doubt::Line as usize + 1, DOUBTS.len());
    }
}
