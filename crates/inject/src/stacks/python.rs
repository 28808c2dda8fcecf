//! The interpreter, if there is one, and the code that it runs.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
};

use tracesmith_stacks::{CodeId, Python, PythonFrame};
use tracesmith_wire::record::{PYTHON_FRAME, PythonCode};

use crate::{
    guard::lock,
    sink::{Cause, Sink},
};

/// Room for the name and the file of a function; a quarter is the name's.
const NAMES_BYTES: usize = 4096;

/// Lines beyond this do not fit into a frame's word.
const LAST_LINE: u32 = (1 << 24) - 1;

/// The interpreter of the process.
#[derive(Default)]
pub(super) struct Interpreter {
    wanted: AtomicBool,
    found: OnceLock<Arc<Python>>,
    /// Why there are no Python frames; told once.
    told: Mutex<Option<String>>,
    last_code: AtomicU32,
}

impl Interpreter {
    /// Python frames are wanted: looks for an interpreter. One that is loaded
    /// later is found by [`look_again`](Self::look_again).
    pub(super) fn look_for(&self, sink: &Sink) {
        self.wanted.store(true, Ordering::Relaxed);
        *lock(&self.told) = None;
        self.look_again(sink);
    }

    /// Python frames are not wanted.
    pub(super) fn leave_alone(&self) {
        self.wanted.store(false, Ordering::Relaxed);
    }

    /// Libraries were loaded since: there may be an interpreter now.
    pub(super) fn look_again(&self, sink: &Sink) {
        if !self.wanted.load(Ordering::Relaxed) || self.found.get().is_some() {
            return;
        }
        match Python::detect() {
            Ok(Some(python)) => {
                self.found.get_or_init(|| Arc::new(python));
            }
            Ok(None) => {}
            Err(unknown) => self.send(unknown.words, sink),
        }
    }

    /// The interpreter whose frames are wanted.
    #[inline]
    pub(super) fn wanted(&self) -> Option<&Arc<Python>> {
        self.found.get().filter(|_| self.wanted.load(Ordering::Relaxed))
    }

    /// Says why there are no Python frames, if there could have been some.
    pub(super) fn report(&self, sink: &Sink) {
        if let Some(unknown) = self.wanted().and_then(|python| python.unknown()) {
            self.send(unknown.words, sink);
        }
    }

    fn send(&self, words: String, sink: &Sink) {
        let mut told = lock(&self.told);
        if told.as_ref() != Some(&words) {
            sink.note(Cause::Unavailable, &words);
            *told = Some(words);
        }
    }
}

/// The code objects that a thread has met, with the numbers that they got.
#[derive(Default)]
pub(super) struct SeenCodeObjects(HashMap<CodeId, u32>);

impl SeenCodeObjects {
    /// In a new window all are told anew.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// A frame of the calling thread, taken just now, as it travels.
    pub(super) fn word(
        &mut self,
        frame: &PythonFrame,
        python: &Python,
        interpreter: &Interpreter,
        sink: &Sink,
    ) -> u64 {
        let code = *self.0.entry(frame.code_id()).or_insert_with(|| {
            let code = interpreter
                .last_code
                .fetch_add(1, Ordering::Relaxed)
                .wrapping_add(1);
            send_code(code, frame, python, sink);
            code
        });
        let line = python.line(frame).unwrap_or(0).min(LAST_LINE);
        PYTHON_FRAME | u64::from(code) << 24 | u64::from(line)
    }
}

/// The names are read here and now, while the code runs: later it may be gone.
fn send_code(code: u32, frame: &PythonFrame, python: &Python, sink: &Sink) {
    let mut room = [0; NAMES_BYTES];
    let (name, file) = python
        .names(frame, &mut room)
        .map_or(("", ""), |names| (names.name, names.file));
    let name_bytes = u32::try_from(name.len()).unwrap_or(0);
    sink.define_with(
        &PythonCode { code, name_bytes },
        [name.as_bytes(), file.as_bytes()].concat().as_slice(),
    );
}
