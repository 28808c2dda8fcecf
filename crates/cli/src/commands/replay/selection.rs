//! The calls and kernels that options select: `--ops`, `--kernel`, `--stream`, `--replace`, `--until`.

use std::fs;

use anyhow::Context;
use tracesmith_replay::{Part, Recording, Replacement};

use super::names;
use crate::args::{KernelArg, OpsArg, ReplaceArg, ReplayArgs};

/// Number of streams to show.
const STREAMS_SHOWN: usize = 8;

/// The selected calls.
pub(super) fn part(args: &ReplayArgs, recording: &Recording) -> anyhow::Result<Part> {
    let mut part = Part::whole(recording.commands.len());
    if let Some(kernel) = &args.kernel {
        let place = launch_place(recording, kernel)?;
        part.places = place..place + 1;
    }
    if let Some(OpsArg(ops)) = &args.ops {
        part.places = recording.places(ops.clone());
        anyhow::ensure!(
            !part.places.is_empty(),
            "--ops {}..{} selects no call: {}",
            ops.start,
            ops.end,
            recorded_calls(recording)
        );
    }
    if let Some(stream) = args.stream {
        let known = recording.streams();
        anyhow::ensure!(
            known.contains(&stream),
            "--stream {stream:#x}: the recording has no call in stream {stream:#x}; it has calls in {}",
            streams(&known)
        );
        part.stream = Some(stream);
        anyhow::ensure!(
            !part.chosen(&recording.commands).is_empty(),
            "--stream {stream:#x}: none of the selected calls is in this stream"
        );
    }
    Ok(part)
}

fn streams(known: &[u64]) -> String {
    let mut names: Vec<String> = known
        .iter()
        .take(STREAMS_SHOWN)
        .map(|stream| format!("{stream:#x}"))
        .collect();
    if known.len() > STREAMS_SHOWN {
        names.push(format!("{} more", known.len() - STREAMS_SHOWN));
    }
    names.join(", ")
}

/// Describes the range of call numbers.
pub(super) fn recorded_calls(recording: &Recording) -> String {
    match (recording.commands.first(), recording.commands.last()) {
        (Some(first), Some(last)) => {
            format!("the recording has calls {} to {}", first.number, last.number)
        }
        _ => "the recording has no calls".to_owned(),
    }
}

/// The position of a launch.
pub(in crate::commands) fn launch_place(recording: &Recording, kernel: &KernelArg) -> anyhow::Result<usize> {
    let places = names::launches(recording, &kernel.name);
    places
        .get(kernel.nth - 1)
        .copied()
        .with_context(|| match places.len() {
            0 => format!(
                "--kernel {}#{}: the recording has no kernel whose name contains {0:?}; {}",
                kernel.name,
                kernel.nth,
                names::suggestion(recording, &kernel.name)
            ),
            _ => format!(
                "--kernel {}#{}: kernels whose name contains {0:?} are launched only {}",
                kernel.name,
                kernel.nth,
                times(places.len())
            ),
        })
}

fn times(count: usize) -> String {
    match count {
        1 => "once".to_owned(),
        count => format!("{count} times"),
    }
}

/// Replaces all launches, or only the selected one.
pub(super) fn replacement(
    arg: &ReplaceArg,
    args: &ReplayArgs,
    recording: &Recording,
) -> anyhow::Result<Replacement> {
    let replaced = replaced_launch(&arg.kernel, None, recording)?;
    let code = fs::read(&arg.file).with_context(|| format!("reading {}", arg.file.display()))?;
    let nth = match &args.kernel {
        None => None,
        Some(kernel) => {
            let chosen = launch_place(recording, kernel)?;
            let nth = recording.launches(&replaced).position(|place| place == chosen);
            let nth = nth
                .with_context(|| format!("--kernel {} selects no launch of {:?}", kernel.name, arg.kernel))?;
            Some(nth + 1)
        }
    };
    Ok(Replacement {
        kernel: replaced,
        nth,
        code,
        symbol: arg.symbol.clone(),
    })
}

/// The recorded name of a kernel to replace, which is launched at least `nth` times.
pub(super) fn replaced_launch(
    kernel: &str,
    nth: Option<usize>,
    recording: &Recording,
) -> anyhow::Result<String> {
    let name = match names::recorded_name(recording, kernel) {
        Ok(name) => name,
        Err(several) => anyhow::bail!(
            "cannot replace {kernel:?}: {} kernels have it in their readable names: {}; use a part of a recorded name, \
             which --mode dry-run --format csv lists",
            several.len(),
            several.join(", ")
        ),
    };
    let count = recording.launches(&name).count();
    let wanted = nth.unwrap_or(1);
    if count == 0 {
        anyhow::bail!(
            "cannot replace {kernel:?}: the recording has no kernel whose name contains it; {}",
            names::suggestion(recording, kernel)
        );
    }
    anyhow::ensure!(
        wanted <= count,
        "cannot replace launch {wanted} of {kernel:?}: such kernels are launched only {}",
        times(count)
    );
    Ok(name)
}

/// The position of a call. Without a call, or for the number after the last call, it is the end.
pub(super) fn place_before(option: &str, call: Option<u64>, recording: &Recording) -> anyhow::Result<usize> {
    let Some(number) = call else {
        return Ok(recording.commands.len());
    };
    let first = recording.commands.first().map_or(0, |command| command.number);
    let end = recording.commands.last().map_or(0, |command| command.number + 1);
    anyhow::ensure!(
        (first..=end).contains(&number),
        "{option} {number}: {}; without {option}, the final memory is written",
        recorded_calls(recording)
    );
    Ok(recording.places(0..number).end)
}
