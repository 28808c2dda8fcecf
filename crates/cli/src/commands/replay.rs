//! `tracesmith replay`: replays recorded GPU work and compares the result.

mod answers;
pub(super) mod aslr;
mod csv;
mod guard;
mod names;
mod origin;
pub(super) mod plan;
mod plan_file;
mod selection;
mod session;
mod step;

use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use tracesmith_replay::npy::{self, Element};
use tracesmith_replay::{
    Comparison, Content, Error, Float, Needs, Order, Pace, Part, Placing, Plan, PlannedReplacement,
    Recording, Replacement, Replay, Tolerance, has_device,
};
use tracesmith_trace::units;

use super::out_file::{Target, refuse_to_destroy, write_out};
use super::replay_timing;
use crate::args::{ElementArg, Format, OutArgs, ReplayArgs, ReplayMode, ToleranceArg};
use crate::exit::Exit;
use crate::input::repair_hint;
use crate::output::{Hinted, Output};
use crate::progress::Progress;
use answers::Answer;
use guard::Role;
use plan::DryRun;
use plan_file::Written;
pub(super) use selection::launch_place;
use selection::{part, place_before, replacement};

/// Number of calls, buffers and differences to show. The others are counted.
const SHOWN: usize = 20;

/// The hint if addresses are in use.
const RELOCATE: &str =
    "--relocate uses other addresses, and rewrites values that look like pointers into the recorded ones";

/// The hint without a GPU.
const WITHOUT_GPU: &str = "a replay needs a GPU; without one, use --mode dry-run, or --dump of final memory and of memory that no kernel has changed";

/// The exit code of a replay that failed.
const FAILED: Exit = Exit::Code(2);

pub(crate) fn run(args: &ReplayArgs, output: &mut Output) -> anyhow::Result<Exit> {
    // Without a GPU, there is nothing to record the times of.
    let is_timed = args.mode == ReplayMode::Timing
        && (replay_timing::is_inner() || has_device(args.device))
        && args.dump.is_none()
        && args.check.is_none()
        && args.replace.is_empty()
        && !args.step;
    if is_timed && !replay_timing::is_inner() {
        return match replay_timing::timed()? {
            Some(timed) => answers::show_timings(&timed, output),
            None => Ok(FAILED),
        };
    }
    if args.dump.is_some()
        && args.replace.is_empty()
        && guard::role() == Role::Guard
        && !has_device(args.device)
        && dump_recorded(args, output)?
    {
        return Ok(Exit::Done);
    }
    let is_session = args.step && output.format == Format::Json;
    if is_session && guard::role() == Role::Guard {
        if args.mode == ReplayMode::DryRun {
            return session::run_offline(args, "--mode dry-run was requested");
        }
        if !has_device(args.device) {
            return session::run_offline(args, "this machine has no GPU, or no CUDA driver");
        }
    }
    if is_timed {
        aslr::reexec_without_aslr();
    } else if args.mode != ReplayMode::DryRun && guard::role() == Role::Guard {
        return guard::guard(args, output);
    }
    let name = args.file.display().to_string();
    let mut recording = Recording::open(&args.file).with_context(|| name.clone())?;
    if recording.others > 0 {
        output.warning(&format!(
            "the trace contains recordings of {} more processes; replaying the first",
            recording.others
        ));
    }
    let plan = Plan::of(&mut recording).with_context(|| name.clone())?;
    if recording.broken.is_none() {
        warn_of_damage(&recording, &args.file, output)?;
    }
    let request = ReplayRequest::of(args, &recording)?;
    if args.mode == ReplayMode::DryRun {
        let needs = Needs::of(&mut recording, &plan).with_context(|| name.clone())?;
        let dry_run = DryRun {
            replaced: &planned(&request.replacements, &recording, &needs)?,
            recording: &recording,
            plan: &plan,
            part: &request.part,
            needs: &needs,
        };
        return dry_run.show(output);
    }
    if guard::role() != Role::Searcher {
        for array in &request.written {
            array.refuse_to_destroy(args)?;
        }
    }
    let recorded_span = (args.mode == ReplayMode::AsRecorded).then(|| recording.span());
    origin::warn_if_recorded_elsewhere(&recording.origin, output);
    let placing = if args.relocate {
        Placing::Anywhere
    } else {
        Placing::Exact
    };
    let prepared = Replay::prepare_at(&mut recording, &plan, args.device, placing);
    if is_session
        && guard::role() == Role::Runner
        && let Err(error) = &prepared
    {
        let why = format!("the recording cannot be replayed on this machine: {error}");
        drop(prepared);
        return session::run_offline(args, &why);
    }
    let mut replay = prepared.map_err(|error| {
        let hint = match &error {
            error if error.is_address_taken() => Some(RELOCATE),
            error if error.is_without_device() => Some(WITHOUT_GPU),
            _ => None,
        };
        let error = anyhow::Error::new(error).context(name);
        match hint {
            Some(hint) => Hinted::error(&error, hint),
            None => error,
        }
    })?;
    guard::write_progress(&replay.watch());
    let context = Answered {
        args,
        request: &request,
        recorded_span,
    };
    match context.replay(&mut replay, output) {
        Ok(exit) => Ok(exit),
        Err(error) => match error.downcast::<Error>() {
            Ok(error) => guard::report_fault(error, &replay),
            Err(error) => Err(error),
        },
    }
}

/// Checks replacements without a GPU, as far as the files tell.
fn planned(
    replacements: &[Replacement],
    recording: &Recording,
    needs: &Needs,
) -> anyhow::Result<Vec<PlannedReplacement>> {
    let planned = replacements.iter().map(|replacement| {
        let planned = replacement.plan(recording)?;
        if let Some((major, minor)) = planned.capability
            && needs.capabilities.iter().any(|(of, _)| *of != major)
        {
            anyhow::bail!(
                "cannot replace {:?}: the new module was compiled for compute capability {major}.{minor}, and the \
                 recorded modules need a GPU of another generation",
                replacement.kernel
            );
        }
        Ok(planned)
    });
    planned.collect()
}

/// Writes memory contents from the file. Returns false if only a replay can determine them.
fn dump_recorded(args: &ReplayArgs, output: &mut Output) -> anyhow::Result<bool> {
    let name = args.file.display().to_string();
    let mut recording = Recording::open(&args.file).with_context(|| name.clone())?;
    part(args, &recording)?;
    let Some(array) = written(args, &recording)? else {
        return Ok(false);
    };
    array.refuse_to_destroy(args)?;
    if recording.broken.is_some() {
        return Ok(false);
    }
    let content = recording.content_before(array.place, array.address, array.bytes);
    match content.with_context(|| name)? {
        Content::Known(content) => {
            warn_of_damage(&recording, &args.file, output)?;
            output.note("no GPU on this machine: the contents come from the file, and nothing was run");
            array.write(&content, output)?;
            Ok(true)
        }
        Content::Unknown {
            call: Some(call),
            name,
        } => {
            output.note(&format!(
                "#{call} {name} may have written that memory: its contents are known only after a replay on a GPU"
            ));
            Ok(false)
        }
        Content::Unknown { call: None, .. } => Ok(false),
    }
}

/// Warns about damaged blocks that a replay does not need. Damage in all other blocks is an error when the file is
/// opened.
pub(super) fn warn_of_damage(recording: &Recording, file: &Path, output: &mut Output) -> anyhow::Result<()> {
    let found = recording.unrelated_damage()?;
    for damage in &found {
        output.warning(&format!(
            "{damage}. The replay recording is intact: it does not use this part of the file"
        ));
    }
    if !found.is_empty() {
        output.note(&repair_hint(file));
    }
    Ok(())
}

/// A replay with its arguments.
struct Answered<'a> {
    args: &'a ReplayArgs,
    request: &'a ReplayRequest,
    recorded_span: Option<Duration>,
}

impl Answered<'_> {
    fn replay(&self, replay: &mut Replay<'_>, output: &mut Output) -> anyhow::Result<Exit> {
        let Self { args, request, .. } = self;
        replay.set_tolerances(&request.tolerances);
        for replacement in &request.replacements {
            replay.replace(replacement)?;
        }
        if guard::role() == Role::Searcher {
            replay.run_one_by_one()?;
            return Ok(Exit::Done);
        }
        if let Some(every) = args.snapshot_every {
            replay.keep_snapshots(every as usize)?;
        }
        if args.step {
            return match output.format {
                Format::Json => session::run(replay, args),
                Format::Table | Format::Csv => step::run(replay, output),
            };
        }
        for array in &request.written {
            replay.go_to(array.place)?;
            let content = replay.read(array.address, array.bytes)?;
            array.write(&content, output)?;
        }
        if args.dump.is_some() {
            return Ok(Exit::Done);
        }
        if args.check.is_some() {
            let found = replay.check(args.repeat)?;
            return answers::show_check(&found, output);
        }
        match args.mode {
            ReplayMode::Timing if request.replacements.is_empty() => {
                let before = replay.clocks();
                let timings = replay.time(request.part.places.clone(), args.repeat)?;
                let clocks = [before, replay.clocks()];
                output.json(&replay_timing::report_value(&timings, clocks))?;
                return Ok(Exit::Done);
            }
            ReplayMode::Serial => replay.set_order(Order::Serial),
            ReplayMode::AsRecorded => replay.set_pace(Pace::AsRecorded),
            _ => {}
        }
        let repeat = request.repeat.unwrap_or(args.repeat);
        self.show_progress(replay, repeat, output);
        let runs = replay.run_part(&request.part, repeat)?;
        let compared: Vec<Comparison> = replay.time_replaced(repeat)?;
        let is_whole = request.part == Part::whole(replay.recording().commands.len());
        let timings = if is_whole && compared.is_empty() && output.wants_detail() {
            replay.time_each()?
        } else {
            Vec::new()
        };
        let answer = Answer {
            runs: &runs,
            compared: &compared,
            timings: &timings,
            relocated: replay.relocated().len(),
            recorded_span: self.recorded_span,
        };
        answers::show_runs(&answer, output)
    }

    /// Shows a progress bar for restoring and comparing memory.
    fn show_progress(&self, replay: &mut Replay<'_>, repeat: u32, output: &Output) {
        let recording = replay.recording();
        let each = recording.begin_bytes().saturating_add(recording.end_bytes());
        let progress = Progress::new("replaying", each.saturating_mul(repeat.into()), output.bar());
        replay.on_progress(Box::new(move |bytes| progress.add(bytes)));
    }
}

/// The request, in the types of the library.
struct ReplayRequest {
    part: Part,
    tolerances: Vec<Tolerance>,
    replacements: Vec<Replacement>,
    /// Arrays to write during the run, by position.
    written: Vec<Written>,
    /// The number of runs, if a plan contains it.
    repeat: Option<u32>,
}

impl ReplayRequest {
    fn of(args: &ReplayArgs, recording: &Recording) -> anyhow::Result<Self> {
        if let Some(plan) = &args.plan {
            return plan_file::request(plan, recording);
        }
        Ok(Self {
            part: part(args, recording)?,
            tolerances: args
                .tolerance
                .iter()
                .map(|tolerance| self::tolerance(tolerance, args.element))
                .collect::<anyhow::Result<_>>()?,
            replacements: args
                .replace
                .iter()
                .map(|replace| replacement(replace, args, recording))
                .collect::<anyhow::Result<_>>()?,
            written: written(args, recording)?.into_iter().collect(),
            repeat: None,
        })
    }
}

fn tolerance(arg: &ToleranceArg, element: Option<ElementArg>) -> anyhow::Result<Tolerance> {
    let of_type = match element {
        Some(ElementArg::F16) => Some(Float::F16),
        Some(ElementArg::F32) => Some(Float::F32),
        Some(ElementArg::F64) => Some(Float::F64),
        _ => None,
    };
    let float = arg
        .float
        .or(of_type)
        .context("a tolerance needs a type: --tolerance f32=1e-5, or --type f32 (f16 and f64 likewise)")?;
    Ok(Tolerance {
        float,
        absolute: arg.absolute,
        relative: arg.relative,
    })
}

/// The array to write.
fn written(args: &ReplayArgs, recording: &Recording) -> anyhow::Result<Option<Written>> {
    let (Some(address), Some(file)) = (args.dump, &args.out) else {
        return Ok(None);
    };
    let wanted = address;
    let (address, bytes) = extent(recording, wanted)?;
    Ok(Some(Written {
        place: place_before("--until", args.until, recording)?,
        wanted,
        address,
        bytes,
        element: args.element,
        file: file.clone(),
    }))
}

/// The whole buffer that contains an address.
fn extent(recording: &Recording, address: u64) -> anyhow::Result<(u64, u64)> {
    let buffer = recording.buffer(address).with_context(|| {
        format!("no recorded buffer contains {address:#x}; --mode dry-run lists the buffers")
    })?;
    Ok((buffer.address, buffer.bytes))
}

impl Written {
    /// Fails if the file exists and may not be replaced.
    fn refuse_to_destroy(&self, args: &ReplayArgs) -> anyhow::Result<()> {
        let out = OutArgs {
            out: self.file.clone(),
            force: args.force,
        };
        refuse_to_destroy(&out, &[&args.file])
    }

    fn write(&self, content: &[u8], output: &mut Output) -> anyhow::Result<()> {
        // Whether it may be replaced was checked before the run.
        write_array(&self.file, content, self.element)?;
        let (file, bytes) = (self.file.display(), units::bytes(self.bytes));
        output.note(&format!("wrote {file} ({bytes})"));
        if self.wanted != self.address {
            output.note(&format!(
                "{:#x} is at offset {} of the buffer at {:#x}; the whole buffer was written",
                self.wanted,
                self.wanted - self.address,
                self.address
            ));
        }
        Ok(())
    }
}

fn write_array(out: &Path, content: &[u8], element: Option<ElementArg>) -> anyhow::Result<()> {
    let element = match element {
        None | Some(ElementArg::U8) => Element::U8,
        Some(ElementArg::I32) => Element::I32,
        Some(ElementArg::I64) => Element::I64,
        Some(ElementArg::F16) => Element::F16,
        Some(ElementArg::F32) => Element::F32,
        Some(ElementArg::F64) => Element::F64,
    };
    let out = OutArgs {
        out: out.to_owned(),
        force: true,
    };
    write_out(&out, &[], |target| {
        let sink: Box<dyn Write> = match target {
            Target::File(file) => Box::new(file),
            Target::Stream(stream) => stream,
        };
        let mut sink = BufWriter::new(sink);
        npy::write(&mut sink, content, element)?;
        Ok(sink.flush()?)
    })
}

/// Prints how many entries are not shown.
fn rest(count: usize, output: &mut Output) -> anyhow::Result<()> {
    if count > SHOWN {
        output.line(&format!("and {} more (--format json lists all)", count - SHOWN))?;
    }
    Ok(())
}
