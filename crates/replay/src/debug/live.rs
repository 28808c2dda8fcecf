//! Moves through a replay on a GPU, and looks at its memory.

use std::ops::Range;

use tracesmith_cuda::kernels::Digester;

use super::changes::Before;
use super::memory::{Memory, Moment};
use crate::check::Determinism;
use crate::error::Error;
use crate::offline::WindowEdge;
use crate::recording::Recording;
use crate::replace::{Comparison, Replacement};
use crate::run::Replay;
use crate::tolerance::Tolerance;

/// A replay that stands before one of its calls.
pub struct Debugger<'s, 'r> {
    pub(super) replay: &'s mut Replay<'r>,
    /// The position of the next call.
    place: usize,
    /// The position of memory. `None` after an error, or after runs of another kind.
    at: Option<usize>,
    pub(super) before: Option<Before>,
    pub(super) digester: Option<Digester>,
}

impl<'s, 'r> Debugger<'s, 'r> {
    /// Stands before the first call.
    pub fn new(replay: &'s mut Replay<'r>) -> Self {
        Self {
            replay,
            place: 0,
            at: None,
            before: None,
            digester: None,
        }
    }

    /// The recording.
    pub fn recording(&self) -> &Recording {
        self.replay.recording()
    }

    /// The replay.
    pub fn replay(&self) -> &Replay<'r> {
        self.replay
    }

    /// The position of the next call.
    pub fn place(&self) -> usize {
        self.place
    }

    /// The position of the call from before which memory is kept.
    pub fn before_place(&self) -> Option<usize> {
        self.before.as_ref().map(|before| before.place)
    }

    /// Goes to just before the call at a position. The number of calls is the end.
    ///
    /// # Errors
    ///
    /// If the driver reports an error.
    pub fn go(&mut self, place: usize) -> Result<(), Error> {
        let place = place.min(self.recording().commands.len());
        let gone = match self.at.take() {
            Some(at) if at <= place => self.replay.go_on(at..place),
            _ => self.replay.go_to(place),
        };
        self.place = place;
        gone?;
        self.at = Some(place);
        Ok(())
    }

    /// Brings memory to the position, if it is not there.
    pub(super) fn settle(&mut self) -> Result<(), Error> {
        match self.at {
            Some(at) if at == self.place => Ok(()),
            _ => self.go(self.place),
        }
    }

    /// Whether memory is at the position.
    pub(super) fn is_settled(&self) -> bool {
        self.at == Some(self.place)
    }

    /// Runs the recording several times, and finds the first call with different results.
    ///
    /// # Errors
    ///
    /// If the driver reports an error.
    pub fn check(&mut self, runs: u32) -> Result<Determinism, Error> {
        (self.at, self.before) = (None, None);
        self.replay.check(runs)
    }

    /// Launches another kernel from now on, and compares it with the recorded one on the same inputs.
    ///
    /// # Errors
    ///
    /// If the kernel cannot be replaced, or if the driver reports an error.
    pub fn replace(
        &mut self,
        replacement: &Replacement,
        tolerances: &[Tolerance],
        repeat: u32,
    ) -> Result<Vec<Comparison>, Error> {
        self.restore_kernels();
        // The comparison needs the memory of the snapshots.
        self.replay.drop_snapshots();
        self.replay.set_tolerances(tolerances);
        self.replay.replace(replacement)?;
        self.replay.time_replaced(repeat)
    }

    /// Launches the recorded kernels from now on.
    pub fn restore_kernels(&mut self) {
        // What is kept contains results of the other kernel.
        (self.at, self.before) = (None, None);
        self.replay.restore_kernels();
    }

    /// The offsets of a kernel's parameters, if the driver reports them.
    pub fn parameter_offsets(&self, place: usize) -> Option<Vec<usize>> {
        self.replay.parameter_offsets(place)
    }
}

impl Memory for Debugger<'_, '_> {
    fn contents(&mut self, moment: Moment, range: Range<u64>) -> Result<Vec<u8>, Error> {
        match moment {
            Moment::Now => {
                self.settle()?;
                self.replay.read(range.start, range.end - range.start)
            }
            Moment::Before => self.contents_before(&range),
            Moment::Begin => self.replay.recording.at_edge(WindowEdge::Begin, &range),
            Moment::End => self.replay.recording.at_edge(WindowEdge::End, &range),
        }
    }
}
