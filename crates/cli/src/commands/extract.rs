//! `tracesmith extract`: writes one launch as a standalone reproducer.

use anyhow::Context;
use serde_json::json;
use tracesmith_replay::{Plan, Recording, Replay};
use tracesmith_trace::units;

use super::leftovers;
use super::out_file::write_folder;
use super::replay::{aslr, launch_place, warn_of_damage};
use crate::args::{ExtractArgs, Format, OutArgs};
use crate::output::Output;

pub(crate) fn run(args: &ExtractArgs, output: &mut Output) -> anyhow::Result<()> {
    aslr::reexec_without_aslr();
    leftovers::watch()?;
    let name = args.file.display().to_string();
    let mut recording = Recording::open(&args.file).with_context(|| name.clone())?;
    let place = launch_place(&recording, &args.kernel)?;
    let plan = Plan::of(&mut recording).with_context(|| name.clone())?;
    if recording.broken.is_none() {
        warn_of_damage(&recording, &args.file, output)?;
    }
    let folder = args.out.display();
    let out = OutArgs {
        out: args.out.clone(),
        force: args.force,
    };
    let extracted = write_folder(&out, |folder| {
        let prepared = match Replay::prepare(&mut recording, &plan, args.device) {
            Err(error) if error.is_without_device() => None,
            prepared => Some(prepared.context(name)?),
        };
        Ok(match prepared {
            Some(mut replay) => replay.extract(place, folder)?,
            None => {
                output.note(
                    "no GPU on this machine: extracting from the file only, without running the kernel",
                );
                recording.extract(&plan, place, folder)?
            }
        })
    })?;
    if output.format == Format::Json {
        output.json(&json!({
            "command": extracted.command, "kernel": extracted.function, "buffers": extracted.buffers,
            "bytes": extracted.bytes, "changed": extracted.changed, "unknown": extracted.unknown, "folder": args.out,
        }))?;
        return Ok(());
    }
    let leaves = match extracted.unknown {
        0 => format!("{} changed by the kernel", extracted.changed),
        unknown => format!("{unknown} not compared (no GPU)"),
    };
    output.line(&format!(
        "#{} {}: {} buffers ({}), {leaves}; wrote {folder}, see README.md there",
        extracted.command,
        extracted.function,
        extracted.buffers,
        units::bytes(extracted.bytes),
    ))?;
    Ok(())
}
