//! Finds calls whose results change if another stream is slower.
//!
//! A delayed stream does its work later than in the recorded program. If other streams wait for it, nothing changes.
//! If a wait is missing, another stream reads data too early, or overwrites data too early. So each stream is delayed
//! in turn, and memory is compared with a serial run.

use std::collections::BTreeSet;
use std::time::Duration;

use tracesmith_cuda::kernels::{Delayer, Digester};

use crate::check::{Cause, Way};
use crate::error::Error;
use crate::recording::Command;
use crate::run::{Order, Replay};
use crate::timing::works;
use crate::trail::{Look, Trail};

/// Delays before each call of a stream. The longer one can show races that the shorter one hides, if other streams
/// start slowly.
const DELAYS: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(20)];

/// Maximum sum of all delays in a run.
const LONGEST: Duration = Duration::from_secs(2);

/// A stream that is delayed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DelayedStream {
    /// The recorded handle of the stream.
    pub(crate) stream: u64,
    /// The delay before each of its calls.
    pub(crate) time: Duration,
}

/// A call that does not wait for another stream.
pub(crate) struct Race {
    /// The position of the call.
    pub(crate) place: usize,
    /// The cause, as far as it was found.
    pub(crate) cause: Cause,
    /// A buffer with different contents.
    pub(crate) buffer: u64,
    /// How the runs were made.
    pub(crate) way: Way,
}

impl Replay<'_> {
    /// Finds a call that does not wait for another stream, by comparison with a serial run.
    pub(crate) fn race(&mut self, digester: &Digester, looks: &[Look]) -> Result<Option<Race>, Error> {
        let Some(last) = looks.last() else { return Ok(None) };
        let ways = self.slower_ways();
        if ways.is_empty() {
            return Ok(None);
        }
        self.go(Way::SERIAL_ONCE);
        let expected = self.outcome(digester, &last.buffers, usize::MAX)?;
        let mut by_itself = None;
        for way in ways {
            self.go(way);
            self.load_delay()?;
            let found = self.outcome(digester, &last.buffers, usize::MAX)?;
            let Some(buffer) = first_apart(&expected, &found, &last.buffers) else {
                continue;
            };
            let Some(delayed) = way.delayed else {
                by_itself = Some(Race {
                    place: usize::MAX,
                    cause: Cause::Overlap,
                    buffer,
                    way,
                });
                continue;
            };
            let place = self.first_place(digester, &last.buffers, way)?;
            let Some(buffer) = self.differing_after(digester, &last.buffers, way, place + 1)? else {
                // The difference was by chance.
                continue;
            };
            let Some(command) = self
                .recording
                .commands
                .get(place)
                .filter(|command| is_work(command))
            else {
                continue;
            };
            let cause = Cause::Stream {
                own: command.stream,
                other: delayed.stream,
            };
            return Ok(Some(Race {
                place,
                cause,
                buffer,
                way,
            }));
        }
        Ok(by_itself)
    }

    /// One way without a delay, for races that show without one, and one way for each stream with GPU work, if there
    /// are several streams.
    fn slower_ways(&self) -> Vec<Way> {
        let commands = &self.recording.commands;
        let busy = commands
            .iter()
            .filter(|command| works(command) && command.graph == 0 || command.bytes > 0 && is_graph(command));
        let streams: Vec<u64> = busy.map(|command| command.stream).collect();
        let all: BTreeSet<u64> = streams.iter().copied().collect();
        if all.len() < 2 {
            return Vec::new();
        }
        let free = Way {
            order: Order::Streams,
            ..Way::SERIAL_ONCE
        };
        let slower = DELAYS.into_iter().flat_map(|delay| {
            all.iter().map(move |stream| DelayedStream {
                stream: *stream,
                time: delay,
            })
        });
        let mut ways = vec![free];
        for delayed in slower {
            let calls = streams.iter().filter(|other| **other == delayed.stream).count();
            let most = LONGEST / calls.max(1) as u32;
            // A long delay that is limited to the short one shows nothing new.
            if delayed.time > DELAYS[0] && most <= DELAYS[0] {
                continue;
            }
            let time = delayed.time.min(most);
            ways.push(Way {
                delayed: Some(DelayedStream { time, ..delayed }),
                ..free
            });
        }
        ways
    }

    /// Hashes of memory after the calls before a position.
    fn outcome(&mut self, digester: &Digester, buffers: &[(u64, u64)], until: usize) -> Result<Trail, Error> {
        let failed = || Error::device("hashing memory");
        self.run_until(until)?;
        let mut digests = digester
            .room(buffers.len().max(1), &self.marks)
            .map_err(failed())?;
        self.digest(digester, buffers, &mut digests)?;
        digests.read(&self.marks).map_err(failed())
    }

    /// The first position whose call makes a difference, by bisection.
    fn first_place(&mut self, digester: &Digester, buffers: &[(u64, u64)], way: Way) -> Result<usize, Error> {
        let (mut same, mut differs) = (0, self.recording.commands.len());
        while same + 1 < differs {
            let until = same.midpoint(differs);
            if self.differing_after(digester, buffers, way, until)?.is_none() {
                same = until;
            } else {
                differs = until;
            }
        }
        Ok(differs - 1)
    }

    /// The first buffer that differs after the calls before a position.
    fn differing_after(
        &mut self,
        digester: &Digester,
        buffers: &[(u64, u64)],
        way: Way,
        until: usize,
    ) -> Result<Option<u64>, Error> {
        self.go(Way::SERIAL_ONCE);
        let serial = self.outcome(digester, buffers, until)?;
        self.go(way);
        let slower = self.outcome(digester, buffers, until)?;
        Ok(first_apart(&serial, &slower, buffers))
    }

    pub(crate) fn load_delay(&mut self) -> Result<(), Error> {
        if self.delayer.is_none() {
            let delayer = Delayer::load(&self.context).map_err(Error::device("loading the delay kernel"))?;
            self.delayer = Some(delayer);
        }
        Ok(())
    }

    /// Delays a call, if its stream is the delayed one.
    pub(crate) fn delay_stream(&self, command: &Command) -> Result<(), Error> {
        let delayed = self.delayed.filter(|delayed| delayed.stream == command.stream);
        let (Some(delayed), Some(delayer)) = (delayed, &self.delayer) else {
            return Ok(());
        };
        if !is_work(command) {
            return Ok(());
        }
        delayer
            .delay(delayed.time, self.stream(command))
            .map_err(Error::device("delaying a stream"))
    }
}

/// The first buffer with different hashes.
fn first_apart(one: &[u64], other: &[u64], buffers: &[(u64, u64)]) -> Option<u64> {
    let mut pairs = one.iter().zip(other).zip(buffers);
    let found = pairs.find(|((one, other), _)| one != other);
    found.map(|(_, (address, _))| *address)
}

fn is_work(command: &Command) -> bool {
    works(command) || is_graph(command)
}

fn is_graph(command: &Command) -> bool {
    command.kind == tracesmith_format::tables::CommandKind::GRAPH
}
