//! Python frames of the calling thread, read from the interpreter's own structures.
//!
//! A thread that launches GPU work mostly does not hold the global lock, so nothing of Python that needs it may be
//! called. It need not be: a thread's own frames neither move nor go while the thread is inside a call to C. What is
//! read on the launch path are two numbers for each frame; names and lines are read when a frame is new, at once, while
//! its code is surely alive.
//!
//! The layout of those structures is CPython's own affair and differs from version to version. It is checked on the
//! first frames that are met, by reads that cannot fault; if anything is not as expected, there are native frames only,
//! and words that say why.
//!
//! - `symbols`: the interpreter in the process.
//! - `layout`: where each version keeps what.
//! - `memory`: reads that cannot fault, and reads that are fast.
//! - `check`: whether the layout is right.
//! - `chain`, `walk`: from frame to frame.
//! - `names`, `lines`: what a frame is called, and where it is in its file.
//! - `mixed`: one stack from Python and native frames.

mod chain;
mod check;
mod layout;
mod lines;
mod memory;
mod mixed;
mod names;
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
    /// One of the numbers below, or of [`check::DOUBTS`] behind them.
    trust: AtomicU8,
}

/// Nothing has been checked yet.
const UNTRIED: u8 = 0;
/// All checks have passed.
const TRUSTED: u8 = 1;
/// The first of those that say what failed.
const DOUBTED: u8 = 2;

/// There is an interpreter whose frames cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// Why, for people.
    pub words: String,
}

impl Python {
    /// Looks for an interpreter. `None` when there is none: one may be loaded later, so ask again when libraries were.
    ///
    /// Takes the loader's lock and allocates: not for the launch path.
    ///
    /// # Errors
    ///
    /// When there is one of a version or build whose layout is not known.
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

    /// Its version.
    pub fn version(&self) -> Version {
        self.symbols.version
    }

    /// Why its frames are not read, when a check on its first frames has failed.
    pub fn unknown(&self) -> Option<Unknown> {
        let doubt = usize::from(self.trust.load(Ordering::Relaxed).checked_sub(DOUBTED)?);
        let why = check::DOUBTS.get(doubt).copied().unwrap_or_default();
        Some(Unknown::new(self.symbols.version, why))
    }

    /// Whether the layout can be trusted, which is found out with the first frames.
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
        // Two threads may find out at once. A doubt stays, whoever had it.
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
