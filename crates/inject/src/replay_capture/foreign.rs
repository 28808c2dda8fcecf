//! What a kernel can use that a replay cannot give it: memory of other
//! processes, and other devices that take part in its work.

use std::{collections::BTreeMap, time::Instant};

use tracesmith_wire::record::Command;
use xxhash_rust::xxh3::xxh3_128;

use super::{
    Function, PIECE_BYTES, State,
    arguments::words,
    calls::{Call, HOST_LIMIT, code},
};

/// Why such a launch is refused.
const OTHER_PROCESS: &str = "a kernel that uses memory of another process";
pub(super) const COLLECTIVE: &str =
    "a collective of NCCL, in which other devices take part (--stub-collectives keeps its result)";

/// Beginnings of the names of NCCL's kernels.
const COLLECTIVES: [&[u8]; 2] = [b"ncclDevKernel", b"ncclKernel"];

/// Memory that is not the window's own.
#[derive(Default)]
pub(super) struct Foreign {
    /// Memory of other processes: where it begins, and how much.
    pub(super) ranges: BTreeMap<u64, u64>,
}

impl Foreign {
    /// Why a launch with these parameters cannot be made again.
    pub(super) fn objection(&self, parameters: &[u8]) -> Option<&'static str> {
        words(parameters).find_map(|word| {
            let (address, bytes) = self.ranges.range(..=word).next_back()?;
            (word - address < *bytes).then_some(OTHER_PROCESS)
        })
    }
}

/// What becomes of collectives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Collectives {
    Refused,
    /// What one leaves in memory stands for it.
    Stubbed,
}

/// Pieces of memory, and what they hold.
type Hashes = Vec<((u64, usize), u128)>;

/// A collective that is being launched.
pub(super) struct Stub {
    name: Box<[u8]>,
    stream: usize,
    before: Hashes,
}

/// Whether a kernel is one of NCCL's.
pub(super) fn is_collective(name: &[u8]) -> bool {
    COLLECTIVES.iter().any(|beginning| name.starts_with(beginning))
}

impl State {
    /// A collective is launched: what it leaves stands for it, if that is wanted.
    pub(super) fn collective(&mut self, call: &Call<'_>, function: &Function, stream: usize) {
        if self.collectives == Collectives::Refused {
            self.refuse_launch(call, function, COLLECTIVE);
            return;
        }
        self.stub = Some(Stub {
            name: function.name.clone(),
            stream,
            before: self.hashes(),
        });
    }

    /// A launch that cannot be made again, by the kernel's name.
    pub(super) fn refuse_launch(&mut self, call: &Call<'_>, function: &Function, why: &str) {
        let command = Command {
            kind: code::REFUSED,
            ..self.command(call)
        };
        self.send_command(command, &function.name, &[], &[], why);
    }

    /// The launch of a collective has been made: waits for its end, and tells
    /// which memory it has changed.
    pub(super) fn collective_launched(&mut self, call: &Call<'_>) {
        let Some(Stub { name, stream, before }) = self.stub.take() else {
            return;
        };
        let began = Instant::now();
        while !self.driver.is_done(stream) {
            if began.elapsed() > HOST_LIMIT {
                self.mark_incomplete("a collective did not end within 5 s");
                return;
            }
            std::thread::sleep(std::time::Duration::from_micros(50));
        }
        let command = Command {
            kind: code::HOST_FUNCTION,
            stream: self.stream(call, stream),
            ..self.command(call)
        };
        let number = command.number;
        self.send_command(command, &name, &[], &[], "");
        for ((address, bytes), old) in before {
            let mut piece = vec![0; bytes];
            if self.driver.read(address, &mut piece) && xxh3_128(&piece) != old {
                self.send_bytes(&piece, address, number);
            }
        }
        self.memory.read_time += began.elapsed();
    }

    /// What all memory of the device holds that is reached, by pieces.
    fn hashes(&mut self) -> Hashes {
        self.synchronize();
        let mut hashes = Vec::new();
        for (base, bytes) in self.reached_device() {
            let mut piece = vec![0; PIECE_BYTES];
            for at in (0..bytes).step_by(PIECE_BYTES) {
                let length = (bytes - at).min(PIECE_BYTES as u64) as usize;
                if self.driver.read(base + at, &mut piece[..length]) {
                    hashes.push(((base + at, length), xxh3_128(&piece[..length])));
                }
            }
        }
        hashes
    }
}
