//! The entry point for fuzzing: reads and plans a recording of arbitrary bytes, as `info`, a dry run and `--dump` do.
//!
//! `fuzz/` runs it under libFuzzer, and `tests/it/corpus.rs` replays its corpus.

use tracesmith_format::fuzz::mended;

use crate::copies::planes;
use crate::cuda::kept_attributes;
use crate::debug::Recorded;
use crate::plan::Plan;
use crate::recording::Recording;
use crate::run::nodes_of;

/// Number of buffers whose contents are read. Each needs a pass over all calls.
const BUFFERS: usize = 8;

/// Reads a recording as it is, and with corrected checksums.
pub fn recording(data: &[u8]) {
    for bytes in [data.to_vec(), mended(data)] {
        if let Ok(mut recording) = Recording::from_bytes(bytes) {
            exercise(&mut recording);
        }
    }
}

fn exercise(recording: &mut Recording) {
    if let Ok(plan) = Plan::of(recording) {
        plan.bytes();
    }
    recording.span();
    recording.code();
    recording.begin_bytes();
    recording.end_bytes();
    for (place, command) in recording.commands.iter().enumerate() {
        recording.argument_buffers(command);
        if place < BUFFERS {
            recording.call_buffers(place);
            recording.buffers_at(place);
        }
        kept_attributes(command);
        planes(&command.parameters);
        nodes_of(command, &recording.commands[place + 1..]);
        recording.places(command.number..command.number.saturating_add(1));
        recording.launch(&command.function, 1);
    }
    let extents: Vec<(u64, u64)> = recording
        .begin
        .iter()
        .chain(&recording.end)
        .take(BUFFERS)
        .map(|buffer| (buffer.address, buffer.bytes))
        .collect();
    for (address, bytes) in extents {
        // Missing content is an error here, too.
        let _ = Recorded::new(recording).readable(&(address..address.saturating_add(bytes)));
        for place in [0, recording.commands.len() / 2, usize::MAX] {
            // Missing content is an error, which is fine here.
            let _ = recording.content_before(place, address, bytes);
        }
    }
    let buffers = recording.begin.iter().chain(&recording.end);
    let pieces: Vec<u128> = buffers
        .flat_map(|buffer| &buffer.pieces)
        .chain(recording.brought.values().flatten())
        .map(|piece| piece.hash)
        .collect();
    for hash in pieces {
        // A missing piece is reported when it is needed.
        let _ = recording.store.piece(hash);
    }
}
