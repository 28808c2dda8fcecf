//! Python frames of the calling thread, read from the interpreter's structures.
//!
//! A thread that launches GPU work usually does not hold the GIL, so it must not call Python functions that need it.
//! This is not necessary either: a thread's own frames do not move or disappear while it is inside a C call. The
//! launch path reads only two numbers per frame. Names and lines are read immediately when a frame is new, while its
//! code object is certainly alive.
//!
//! The layout of these structures differs between CPython versions. It is checked on the first frames, with reads
//! that cannot fault. If something is not as expected, stacks have only native frames, and the trace states why.
//!
//! - `symbols`: the interpreter in the process.
//! - `layout`, `published`: the offsets of each version.
//! - `memory`: reads that cannot fault, and reads that are fast.
//! - `check`: checks the layout.
//! - `chain`, `walk`: read frame by frame.
//! - `copies`: the bytecode that a thread runs in a build without the GIL.
//! - `names`, `lines`: the name, file and line of a frame.
//! - `mixed`: merges Python and native frames.

mod chain;
mod check;
mod copies;
mod layout;
mod lines;
mod memory;
mod mixed;
mod names;
mod published;
mod symbols;
mod walk;

use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};

pub(crate) use lines::LineTable;
pub use mixed::{Fit, InterpreterFrames, Mixed, MixedFrame, NativeStack};
pub use names::CodeNames;
pub use symbols::Version;
pub use walk::{CodeId, PythonEnd, PythonFrame, PythonWalk, PythonWalker};

use layout::Layout;
use symbols::{Missing, Symbols};

/// The interpreter of the process.
#[derive(Debug)]
pub struct Python {
    symbols: Symbols,
    layout: Layout,
    /// One of the values below. Values from `DOUBTED` on are indexes into [`check::DOUBTS`].
    trust: AtomicU8,
}

/// Not checked yet.
const UNTRIED: u8 = 0;
/// All checks passed.
const TRUSTED: u8 = 1;
/// The first value that states a failed check.
const DOUBTED: u8 = 2;

/// There is an interpreter whose frames cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// The reason, for display.
    pub words: String,
}

impl Python {
    /// Looks for an interpreter. `None` if there is none. One can be loaded later, so call this again after libraries
    /// were loaded.
    ///
    /// Takes the loader's lock and allocates, so it does not belong on the launch path.
    ///
    /// # Errors
    ///
    /// If there is an interpreter of an unsupported version or build.
    pub fn detect() -> Result<Option<Self>, Unknown> {
        let symbols = match Symbols::find() {
            Ok(symbols) => symbols,
            Err(Missing::All) => return Ok(None),
            Err(Missing::One(version, name)) => {
                let why = format!("it does not export {}", name.to_string_lossy());
                return Err(Unknown::new(version, &why));
            }
        };
        let unknown = |why| Unknown::new(symbols.version, why);
        let Version { major, minor } = symbols.version;
        let layout = match (major, minor) {
            (3, 13..) => Layout::of_runtime(minor, symbols.runtime).map_err(unknown)?,
            (3, _) => Layout::of_headers(minor).ok_or_else(|| unknown("this version is not supported"))?,
            _ => return Err(unknown("this version is not supported")),
        };
        Ok(Some(Self {
            symbols,
            layout,
            trust: AtomicU8::new(UNTRIED),
        }))
    }

    /// The version of the interpreter.
    pub fn version(&self) -> Version {
        self.symbols.version
    }

    /// Why frames are not read, if a check failed.
    pub fn unknown(&self) -> Option<Unknown> {
        let doubt = usize::from(self.trust.load(Ordering::Relaxed).checked_sub(DOUBTED)?);
        let why = check::DOUBTS.get(doubt).copied().unwrap_or_default();
        Some(Unknown::new(self.symbols.version, why))
    }

    /// Whether the layout passed the checks. The first frames decide this.
    #[inline]
    fn is_trusted(&self, thread: u64) -> bool {
        match self.trust.load(Ordering::Relaxed) {
            TRUSTED => true,
            UNTRIED => self.try_layout(thread),
            _ => false,
        }
    }

    #[cold]
    fn try_layout(&self, thread: u64) -> bool {
        let found = match check::check(&self.layout, &self.symbols, thread) {
            Ok(0) => return false,
            Ok(_) => TRUSTED,
            Err(doubt) => DOUBTED + doubt as u8,
        };
        // Two threads can check at the same time. A failure is kept.
        let turn = |before: u8| (before < DOUBTED).then_some(found);
        let kept = self
            .trust
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, turn);
        kept.is_ok() && found == TRUSTED
    }
}

impl Unknown {
    fn new(version: Version, why: &str) -> Self {
        Self {
            words: format!("cannot read frames of Python {version}: {why}"),
        }
    }
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

impl std::error::Error for Unknown {}
