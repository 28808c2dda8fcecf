//! A session on a GPU.

use std::fs;
use std::path::Path;

use anyhow::Context;
use serde_json::{Value, json};
use tracesmith_replay::debug::{Debugger, Moment, Shape, diff};
use tracesmith_replay::{Replacement, Tolerance};

use super::super::selection::replaced_launch;
use super::super::{answers, tolerance};
use super::request::{Address, At, How, Request, ToleranceText};
use super::{Failure, Session, answer};

/// Runs of a check, and of each kernel that is replaced.
const RUNS: u32 = 2;
const TIMED: u32 = 10;
const MOST_RUNS: u32 = 1000;

/// A session on a GPU.
pub(super) struct Online<'s, 'r> {
    debugger: Debugger<'s, 'r>,
    /// What was replaced, until the recorded kernels are restored.
    replaced: Value,
}

/// Another kernel, as it was requested.
struct Wanted<'w> {
    kernel: Option<String>,
    call: Option<u64>,
    file: &'w Path,
    symbol: Option<String>,
}

impl<'s, 'r> Online<'s, 'r> {
    pub(super) fn new(debugger: Debugger<'s, 'r>) -> Self {
        Self {
            debugger,
            replaced: Value::Null,
        }
    }

    fn moved(&mut self, place: usize) -> Result<Value, Failure> {
        self.debugger.go(place)?;
        Ok(json!({}))
    }

    fn buffers(&self, call: Option<u64>) -> Result<Value, Failure> {
        let recording = self.debugger.recording();
        let Some(number) = call else {
            return Ok(answer::buffers(&recording.buffers_at(self.debugger.place())));
        };
        let place = answer::place_of(recording, number)?;
        let offsets = self.debugger.parameter_offsets(place);
        let buffers = recording.call_buffers(place);
        Ok(answer::call_buffers(number, &buffers, offsets.as_deref()))
    }

    /// What a call changed; without one, the call before the position.
    fn changes(&mut self, call: Option<u64>, how: &How) -> Result<Value, Failure> {
        let recording = self.debugger.recording();
        let place = match call {
            Some(number) => answer::place_of(recording, number)?,
            None => {
                let last = self.debugger.place().checked_sub(1);
                last.context("no call comes before the start; name one with `call`")?
            }
        };
        let number = recording.commands.get(place).map(|command| command.number);
        let found = self.debugger.changes(place, how.number(), how.limits())?;
        Ok(json!({
            "call": number, "buffers": answer::buffer_diffs(&found),
        }))
    }

    fn compare(&mut self, how: &How) -> Result<Value, Failure> {
        let found = self.debugger.compare_end(how.number(), how.limits())?;
        Ok(json!({
            // Without recorded memory nothing is known to be the same.
            "same": found.buffers > 0 && found.different.is_empty(), "buffer_count": found.buffers, "bytes": found.bytes,
            "buffers": answer::buffer_diffs(&found.different),
        }))
    }

    fn check(&mut self, runs: u32) -> Result<Value, Failure> {
        if !self.replaced.is_null() {
            return Err(anyhow::anyhow!("the check runs the recorded kernels; restore them first").into());
        }
        let place = self.debugger.place();
        let found = self.debugger.check(runs.clamp(2, MOST_RUNS));
        // Also after an error, memory is brought back to the position.
        let found = found.and_then(|found| self.debugger.go(place).map(|()| found))?;
        Ok(answer::with_address_texts(answers::check_value(&found)))
    }

    fn replace(
        &mut self,
        wanted: Wanted<'_>,
        tolerances: &[ToleranceText],
        repeat: u32,
    ) -> Result<Value, Failure> {
        let place = self.debugger.place();
        let replacement = self.replacement(&wanted)?;
        let tolerances: Vec<Tolerance> = tolerances
            .iter()
            .map(|ToleranceText(arg)| tolerance(arg, None))
            .collect::<anyhow::Result<_>>()?;
        self.replaced = Value::Null;
        let compared = self
            .debugger
            .replace(&replacement, &tolerances, repeat.clamp(1, MOST_RUNS));
        let compared = match compared {
            Ok(compared) => compared,
            Err(error) => {
                self.debugger.restore_kernels();
                return Err(error.into());
            }
        };
        self.replaced = json!({
            "kernel": replacement.kernel, "file": wanted.file.display().to_string(),
            "calls": compared.iter().map(|one| one.old.command).collect::<Vec<u64>>(),
        });
        self.debugger.go(place)?;
        let launches = compared.iter().map(answers::comparison_value);
        let launches: Vec<Value> = launches.map(answer::with_address_texts).collect();
        Ok(json!({ "launches": launches }))
    }

    fn replacement(&self, wanted: &Wanted<'_>) -> anyhow::Result<Replacement> {
        let recording = self.debugger.recording();
        let code = fs::read(wanted.file).with_context(|| format!("reading {}", wanted.file.display()))?;
        let launch = match wanted.call {
            Some(number) => Some(answer::place_of(recording, number)?),
            None => None,
        };
        let kernel = match (&wanted.kernel, launch) {
            (Some(kernel), _) => replaced_launch(kernel, None, recording)?,
            (None, Some(place)) => recording.commands[place].function.clone(),
            (None, None) => {
                anyhow::bail!("name the launch with `call`, or a part of the kernel's name with `kernel`")
            }
        };
        let nth = match launch {
            None => None,
            Some(place) => {
                let nth = recording.launches(&kernel).position(|other| other == place);
                let nth =
                    nth.with_context(|| format!("that call is no launch of a kernel named {kernel:?}"))?;
                Some(nth + 1)
            }
        };
        Ok(Replacement {
            kernel,
            nth,
            code,
            symbol: wanted.symbol.clone(),
        })
    }

    fn restore(&mut self) -> Result<Value, Failure> {
        self.replaced = Value::Null;
        self.debugger.restore_kernels();
        self.moved(self.debugger.place())
    }

    fn range(&self, address: Address, bytes: Option<u64>) -> anyhow::Result<std::ops::Range<u64>> {
        answer::range_of(self.debugger.recording(), self.debugger.place(), address, bytes)
    }
}

impl Session for Online<'_, '_> {
    fn go(&mut self, place: usize) -> Result<(), Failure> {
        self.debugger.go(place)?;
        Ok(())
    }

    fn position(&self) -> Value {
        let recording = self.debugger.recording();
        let mut position = answer::position(recording, self.debugger.place());
        let before = self
            .debugger
            .before_place()
            .and_then(|place| recording.commands.get(place));
        position["before"] = before.map(|command| command.number).into();
        position["snapshots"] = self.debugger.replay().snapshot_count().into();
        position["replaced"] = self.replaced.clone();
        position
    }

    fn answer(&mut self, request: Request) -> Result<Value, Failure> {
        let place = self.debugger.place();
        let now = At(Moment::Now);
        match request {
            Request::Calls { from, limit } => Ok(answer::calls(self.debugger.recording(), from, limit)),
            Request::Position {} => Ok(json!({})),
            Request::Go { before, after, to } => {
                let target = answer::target(self.debugger.recording(), before, after, to)?;
                self.moved(target)
            }
            Request::Next { count } => self.moved(place.saturating_add(count.unwrap_or(1))),
            Request::Back { count } => self.moved(place.saturating_sub(count.unwrap_or(1))),
            Request::Buffers { call } => self.buffers(call),
            Request::Read {
                address,
                bytes,
                at,
                rows,
            } => {
                let range = self.range(address, Some(answer::whole_range(bytes, rows)?))?;
                let at = at.unwrap_or(now);
                Ok(answer::read(&mut self.debugger, &range, at, bytes, rows)?)
            }
            Request::Stats {
                address,
                bytes,
                at,
                number,
                bins,
            } => {
                let (range, at) = (self.range(address, bytes)?, at.unwrap_or(now));
                Ok(answer::range_stats(&mut self.debugger, &range, at, number, bins)?)
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
                let (range, at) = (self.range(address, bytes)?, at.unwrap_or(now));
                let shape = Shape { rows, columns };
                let most = [most_rows, most_columns];
                Ok(answer::picture(
                    &mut self.debugger,
                    &range,
                    at,
                    number,
                    shape,
                    most,
                )?)
            }
            Request::Changes { call, how } => self.changes(call, &how),
            Request::Diff {
                address,
                bytes,
                from,
                to,
                how,
            } => {
                let range = self.range(address, bytes)?;
                let moments = [from.0, to.0];
                let found = diff(&mut self.debugger, moments, &range, how.number(), how.limits())?;
                Ok(answer::diff(&found))
            }
            Request::Compare { how } => self.compare(&how),
            Request::Check { runs } => self.check(runs.unwrap_or(RUNS)),
            Request::Replace {
                kernel,
                call,
                file,
                symbol,
                tolerance,
                repeat,
            } => {
                let wanted = Wanted {
                    kernel,
                    call,
                    file: &file,
                    symbol,
                };
                self.replace(wanted, &tolerance, repeat.unwrap_or(TIMED))
            }
            Request::Restore {} => self.restore(),
            Request::Quit {} => Ok(json!({})),
        }
    }
}
