//! Looks at the memory of a recording without a GPU: before its first kernel, and after its last one.

use std::ops::Range;

use super::memory::{Memory, Moment};
use crate::error::Error;
use crate::offline::{Content, WindowEdge};
use crate::recording::Recording;

/// A position in a recording that is not run.
pub struct Recorded<'r> {
    recording: &'r mut Recording,
    place: usize,
}

impl<'r> Recorded<'r> {
    /// Stands before the first call.
    pub fn new(recording: &'r mut Recording) -> Self {
        Self { recording, place: 0 }
    }

    /// The recording.
    pub fn recording(&self) -> &Recording {
        self.recording
    }

    /// The position of the next call.
    pub fn place(&self) -> usize {
        self.place
    }

    /// Goes to just before the call at a position. The number of calls is the end.
    pub fn go(&mut self, place: usize) {
        self.place = place.min(self.recording.commands.len());
    }

    /// The positions before whose calls the file determines the contents of a range.
    ///
    /// # Errors
    ///
    /// If the file lacks contents.
    pub fn readable(&mut self, range: &Range<u64>) -> Result<Vec<Range<usize>>, Error> {
        self.recording.known_places(range)
    }
}

impl Memory for Recorded<'_> {
    fn contents(&mut self, moment: Moment, range: Range<u64>) -> Result<Vec<u8>, Error> {
        match moment {
            Moment::Now => {
                let bytes = range.end - range.start;
                match self.recording.content_before(self.place, range.start, bytes)? {
                    Content::Known(content) => Ok(content),
                    Content::Unknown { call, name } => Err(Error::NeedsDevice {
                        address: range.start,
                        why: match call {
                            Some(call) => format!("#{call} {name} may have written it"),
                            None => "the file does not contain it".to_owned(),
                        },
                    }),
                }
            }
            Moment::Before => Err(Error::Unavailable(
                "what a call changes is known only after a replay on a GPU".to_owned(),
            )),
            Moment::Begin => self.recording.at_edge(WindowEdge::Begin, &range),
            Moment::End => self.recording.at_edge(WindowEdge::End, &range),
        }
    }
}
