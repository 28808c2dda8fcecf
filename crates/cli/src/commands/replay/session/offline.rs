//! A session without a GPU: positions, and the contents that the file determines.

use std::ops::Range;

use serde_json::{Value, json};
use tracesmith_replay::Error;
use tracesmith_replay::debug::{Recorded, Shape, diff};

use super::request::{At, Request};
use super::{Failure, Session, answer};

/// A session that runs nothing.
pub(super) struct Offline<'r> {
    recorded: Recorded<'r>,
    why: String,
}

impl<'r> Offline<'r> {
    pub(super) fn new(recorded: Recorded<'r>, why: &str) -> Self {
        Self {
            recorded,
            why: why.to_owned(),
        }
    }

    fn moved(&mut self, place: usize) -> Value {
        self.recorded.go(place);
        json!({})
    }

    /// Adds to an error where the contents of a range can be read.
    fn with_readable(&mut self, error: anyhow::Error, range: &Range<u64>) -> Failure {
        let is_unknown = matches!(error.downcast_ref::<Error>(), Some(Error::NeedsDevice { .. }));
        // An error of this is less useful than the one that is reported.
        let places = is_unknown.then(|| self.recorded.readable(range).ok()).flatten();
        let more = match places {
            Some(places) => {
                let places: Vec<[usize; 2]> = places
                    .iter()
                    .map(|places| [places.start, places.end.saturating_sub(1)])
                    .collect();
                json!({ "readable": places })
            }
            None => Value::Null,
        };
        Failure { error, more }
    }

    fn looked(
        &mut self,
        range: Range<u64>,
        look: impl FnOnce(&mut Recorded<'r>, &Range<u64>) -> anyhow::Result<Value>,
    ) -> Result<Value, Failure> {
        let looked = look(&mut self.recorded, &range);
        looked.map_err(|error| self.with_readable(error, &range))
    }

    fn refuse(&self, what: &str) -> Failure {
        anyhow::anyhow!(
            "{what} needs a replay on a GPU, and this session runs nothing: {}",
            self.why
        )
        .into()
    }
}

impl Session for Offline<'_> {
    fn go(&mut self, place: usize) -> Result<(), Failure> {
        self.recorded.go(place);
        Ok(())
    }

    fn position(&self) -> Value {
        let mut position = answer::position(self.recorded.recording(), self.recorded.place());
        position["offline"] = self.why.as_str().into();
        position
    }

    fn answer(&mut self, request: Request) -> Result<Value, Failure> {
        let (place, calls) = (self.recorded.place(), self.recorded.recording().commands.len());
        let recording = self.recorded.recording();
        let range = |address, bytes| answer::range_of(recording, place, address, bytes);
        let now = At(tracesmith_replay::debug::Moment::Now);
        match request {
            Request::Calls { from, limit } => Ok(answer::calls(recording, from, limit)),
            Request::Position {} => Ok(self.moved(place)),
            Request::Go { before, after, to } => {
                let target = answer::target(recording, before, after, to)?;
                Ok(self.moved(target))
            }
            Request::Next { count } => Ok(self.moved(place.saturating_add(count.unwrap_or(1)).min(calls))),
            Request::Back { count } => Ok(self.moved(place.saturating_sub(count.unwrap_or(1)))),
            Request::Buffers { call: None } => Ok(answer::buffers(&recording.buffers_at(place))),
            Request::Buffers { call: Some(number) } => {
                let place = answer::place_of(recording, number)?;
                Ok(answer::call_buffers(number, &recording.call_buffers(place), None))
            }
            Request::Read {
                address,
                bytes,
                at,
                rows,
            } => {
                let range = range(address, Some(answer::whole_range(bytes, rows)?))?;
                let at = at.unwrap_or(now);
                self.looked(range, |memory, range| {
                    answer::read(memory, range, at, bytes, rows)
                })
            }
            Request::Stats {
                address,
                bytes,
                at,
                number,
                bins,
            } => {
                let range = range(address, bytes)?;
                self.looked(range, |memory, range| {
                    answer::range_stats(memory, range, at.unwrap_or(now), number, bins)
                })
            }
            Request::Grid {
                address,
                bytes,
                at,
                number,
                rows,
                columns,
                most_rows,
                most_columns,
            } => {
                let range = range(address, bytes)?;
                self.looked(range, |memory, range| {
                    let shape = Shape { rows, columns };
                    let most = [most_rows, most_columns];
                    answer::picture(memory, range, at.unwrap_or(now), number, shape, most)
                })
            }
            Request::Diff {
                address,
                bytes,
                from,
                to,
                how,
            } => {
                let range = range(address, bytes)?;
                self.looked(range, |memory, range| {
                    let found = diff(memory, [from.0, to.0], range, how.number(), how.limits())?;
                    Ok(answer::diff(&found))
                })
            }
            Request::Changes { .. } => Err(self.refuse("what a call changes")),
            Request::Compare { .. } => Err(self.refuse("a comparison with the recording")),
            Request::Check { .. } => Err(self.refuse("the check")),
            Request::Replace { .. } | Request::Restore {} => Err(self.refuse("another kernel")),
            Request::Quit {} => Ok(json!({})),
        }
    }
}
