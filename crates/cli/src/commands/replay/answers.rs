//! Prints the result of a replay.

use std::time::Duration;

use serde_json::{Value, json};
use tracesmith_replay::{Against, Close, Comparison, Determinism, Difference, Run, Timing, Verdict};
use tracesmith_trace::units;

use super::{SHOWN, csv};
use crate::args::Format;
use crate::commands::replay_timing::{Method, Timed};
use crate::exit::Exit;
use crate::output::Output;
use crate::output::table::{Align, TextTable};

pub(super) fn show_timings(timed: &Timed, output: &mut Output) -> anyhow::Result<Exit> {
    let Timed {
        timings,
        method,
        clocks,
    } = timed;
    if output.format == Format::Json {
        let calls: Vec<Value> = timings.iter().map(timing_value).collect();
        let by_events = *method == Method::Events;
        output.json(&json!({ "calls": calls, "by_events": by_events, "clocks": clocks }))?;
        return Ok(Exit::Done);
    }
    if output.format == Format::Csv {
        csv::timings(timings, output)?;
        return Ok(Exit::Done);
    }
    output.table(&timing_table(timings))?;
    for (when, clocks) in ["before", "after"]
        .into_iter()
        .zip(clocks.as_array().into_iter().flatten())
    {
        if let (Some(sm), Some(memory)) = (clocks["sm_mhz"].as_u64(), clocks["memory_mhz"].as_u64()) {
            output.line(&format!("clocks {when}: SMs {sm} MHz, memory {memory} MHz"))?;
        }
    }
    if *method == Method::Events {
        output.warning(
            "recording does not work here: times come from CUDA events around each call, which make them longer",
        );
    }
    Ok(Exit::Done)
}

fn timing_value(timing: &Timing) -> Value {
    let (shortest, longest) = timing.spread();
    json!({
        "command": timing.command, "name": timing.name,
        "recorded_ns": timing.recorded.map(nanos), "median_ns": nanos(timing.median()),
        "min_ns": nanos(shortest), "max_ns": nanos(longest), "runs": timing.runs.len(),
    })
}

fn timing_table(timings: &[Timing]) -> TextTable {
    let mut table = TextTable::new(&[
        ("call", Align::Right),
        ("name", Align::Left),
        ("recorded", Align::Right),
        ("median", Align::Right),
        ("min", Align::Right),
        ("max", Align::Right),
    ]);
    for timing in timings {
        let (shortest, longest) = timing.spread();
        table.row([
            format!("#{}", timing.command).into(),
            timing.name.clone().into(),
            timing
                .recorded
                .map_or_else(|| "–".to_owned(), |time| units::nanos(nanos(time)))
                .into(),
            units::nanos(nanos(timing.median())).into(),
            units::nanos(nanos(shortest)).into(),
            units::nanos(nanos(longest)).into(),
        ]);
    }
    table
}

pub(super) fn show_check(found: &Determinism, output: &mut Output) -> anyhow::Result<Exit> {
    if output.format == Format::Csv {
        csv::check(found, output)?;
        return Ok(Exit::from_check(matches!(found, Determinism::Repeats { .. })));
    }
    let culprit = match found {
        Determinism::Repeats { runs, calls } => {
            if output.format == Format::Json {
                output.json(&check_value(found))?;
            } else {
                output.line(&format!(
                    "deterministic: {runs} runs, same memory after each of {calls} calls"
                ))?;
            }
            return Ok(Exit::Done);
        }
        Determinism::Differs(culprit) => culprit,
    };
    if output.format == Format::Json {
        output.json(&check_value(found))?;
        return Ok(Exit::No);
    }
    let call = culprit
        .command
        .map_or_else(String::new, |number| format!("#{number} {}", culprit.name));
    let leaves = culprit.buffer.map_or_else(
        || "fails".to_owned(),
        |buffer| format!("gives different results in {buffer:#x}"),
    );
    output.line(&format!("nondeterministic: {call} {leaves} ({})", culprit.cause))?;
    if let Some(difference) = &culprit.difference {
        output.line(&format!("  {difference}"))?;
    }
    Ok(Exit::No)
}

/// The result of a check.
pub(super) fn check_value(found: &Determinism) -> Value {
    match found {
        Determinism::Repeats { runs, calls } => json!({ "verdict": "repeats", "runs": runs, "calls": calls }),
        Determinism::Differs(culprit) => json!({
            "verdict": "does not repeat", "command": culprit.command, "name": culprit.name,
            "cause": culprit.cause.to_string(), "buffer": culprit.buffer,
            "difference": culprit.difference.as_ref().map(difference_value),
        }),
    }
}

pub(super) fn difference_value(difference: &Difference) -> Value {
    json!({
        "address": difference.address, "bytes": difference.bytes, "offset": difference.offset,
        "expected": difference.expected, "found": difference.found, "count": difference.count,
        "after": difference.call,
    })
}

/// The results of all runs.
pub(super) struct Answer<'a> {
    pub(super) runs: &'a [Run],
    pub(super) compared: &'a [Comparison],
    /// The measured time of each call, if requested.
    pub(super) timings: &'a [Timing],
    /// Number of relocated memory ranges.
    pub(super) relocated: usize,
    /// The recorded time from the first call to the last, if pauses were kept.
    pub(super) recorded_span: Option<Duration>,
}

pub(super) fn show_runs(answer: &Answer<'_>, output: &mut Output) -> anyhow::Result<Exit> {
    let runs = answer.runs;
    let verdict = word(answer);
    let is_good = verdict != DIFFERS && verdict != UNPROVEN;
    if output.format == Format::Json {
        output.json(&json!({
            "verdict": verdict,
            "against": runs.first().map(|run| against(run.against)),
            "runs": runs.iter().map(run_value).collect::<Vec<Value>>(),
            "calls": answer.timings.iter().map(timing_value).collect::<Vec<Value>>(),
            "relocated": answer.relocated,
            "recorded_host_ns": answer.recorded_span.map(nanos),
            "replaced": answer.compared.iter().map(comparison_value).collect::<Vec<Value>>(),
        }))?;
        return Ok(Exit::from_check(is_good));
    }
    if output.format == Format::Csv {
        csv::runs(runs, answer.compared, output)?;
        return Ok(Exit::from_check(is_good));
    }
    for (number, run) in (1..).zip(runs) {
        show_run(number, run, answer, output)?;
    }
    show_compared(answer.compared, output)?;
    if !answer.timings.is_empty() {
        output.line("time of each call, measured with CUDA events:")?;
        output.table(&timing_table(answer.timings))?;
    }
    Ok(Exit::from_check(is_good))
}

fn show_run(number: usize, run: &Run, answer: &Answer<'_>, output: &mut Output) -> anyhow::Result<()> {
    let time = |time: Duration| units::nanos(nanos(time));
    let mut times = format!("{} calls, {} on the GPU", run.commands, time(run.device_time));
    if answer.relocated > 0 {
        times += &format!(", relocated: {} memory ranges", answer.relocated);
    }
    if let Some(span) = answer.recorded_span {
        times += &format!(", {} on the host (recorded: {})", time(run.host_time), time(span));
    }
    let with = match run.against {
        Against::Recorded => "",
        Against::Replay => " as in a replay of all earlier calls",
    };
    match &run.verdict {
        Verdict::Same { buffers, bytes } => {
            let bytes = units::bytes(*bytes);
            output.line(&format!(
                "run {number}: same{with} ({buffers} buffers, {bytes}; {times})"
            ))?;
        }
        Verdict::Within { buffers, close, .. } => {
            let elements: u64 = close.iter().map(|close| close.elements).sum();
            let largest = close.iter().map(|close| close.largest).fold(0.0, f64::max);
            output.line(&format!(
                "run {number}: within tolerance{with} ({elements} elements in {} of {buffers} buffers differ by \
                 at most {largest:e}; {times})",
                close.len()
            ))?;
            for close in close.iter().take(SHOWN) {
                output.line(&format!("  {}", close_text(close)))?;
            }
        }
        Verdict::Unproven { why } => {
            output.line(&format!("run {number}: unproven: {why} ({times})"))?;
        }
        Verdict::Differs { differences, buffers } => {
            let count = differences.len();
            output.line(&format!(
                "run {number}: differs in {count} of {buffers} buffers{} ({times})",
                if run.against == Against::Replay {
                    " from a replay of all earlier calls"
                } else {
                    ""
                }
            ))?;
            for difference in differences.iter().take(SHOWN) {
                output.line(&format!("  {difference}"))?;
            }
        }
    }
    Ok(())
}

fn close_text(close: &Close) -> String {
    format!(
        "{:#x} ({} bytes): as {}, {} elements differ by at most {:e}",
        close.address,
        close.bytes,
        close.float.name(),
        close.elements,
        close.largest
    )
}

fn show_compared(compared: &[Comparison], output: &mut Output) -> anyhow::Result<()> {
    if compared.is_empty() {
        return Ok(());
    }
    let mut table = TextTable::new(&[
        ("call", Align::Right),
        ("replaced", Align::Left),
        ("recorded", Align::Right),
        ("old", Align::Right),
        ("new", Align::Right),
        ("new / old", Align::Right),
        ("result", Align::Left),
    ]);
    for comparison in compared {
        let (old, new) = (comparison.old.median(), median(&comparison.new));
        let recorded = comparison.old.recorded;
        table.row([
            format!("#{}", comparison.old.command).into(),
            comparison.old.name.clone().into(),
            recorded
                .map_or_else(|| "–".to_owned(), |time| units::nanos(nanos(time)))
                .into(),
            units::nanos(nanos(old)).into(),
            units::nanos(nanos(new)).into(),
            format!("{:.2}", new.as_secs_f64() / old.as_secs_f64().max(1e-9)).into(),
            verdict_word(&comparison.verdict).into(),
        ]);
    }
    output.table(&table)?;
    let unproven = compared
        .iter()
        .find(|comparison| matches!(comparison.verdict, Verdict::Unproven { .. }));
    if let Some(Comparison {
        old,
        verdict: Verdict::Unproven { why },
        ..
    }) = unproven
    {
        output.warning(&format!(
            "#{}: {why}, so the result of the new kernel cannot be checked; record a window in which the kernel \
             changes memory",
            old.command
        ));
    }
    Ok(())
}

pub(super) fn median(times: &[Duration]) -> Duration {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn against(against: Against) -> &'static str {
    match against {
        Against::Recorded => "recorded",
        Against::Replay => "replay",
    }
}

const DIFFERS: &str = "differs";
const UNPROVEN: &str = "unproven";

/// The worst verdict of all runs and replaced launches.
fn word(answer: &Answer<'_>) -> &'static str {
    let runs = answer.runs.iter().map(|run| &run.verdict);
    let replaced = answer.compared.iter().map(|comparison| &comparison.verdict);
    let rank = |word: &&str| {
        ["same", "within tolerance", UNPROVEN, DIFFERS]
            .iter()
            .position(|other| other == word)
    };
    let words = runs.chain(replaced).map(verdict_word);
    words.max_by_key(rank).unwrap_or("same")
}

pub(super) fn verdict_word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Same { .. } => "same",
        Verdict::Within { .. } => "within tolerance",
        Verdict::Unproven { .. } => UNPROVEN,
        Verdict::Differs { .. } => DIFFERS,
    }
}

fn run_value(run: &Run) -> Value {
    let mut value = verdict_value(&run.verdict);
    value["commands"] = json!(run.commands);
    value["device_ns"] = json!(nanos(run.device_time));
    value["host_ns"] = json!(nanos(run.host_time));
    value
}

fn verdict_value(verdict: &Verdict) -> Value {
    match verdict {
        Verdict::Same { buffers, bytes } => json!({ "verdict": "same", "buffers": buffers, "bytes": bytes }),
        Verdict::Within {
            buffers,
            bytes,
            close,
        } => json!({
            "verdict": "within tolerance", "buffers": buffers, "bytes": bytes,
            "within": close.iter().map(close_value).collect::<Vec<Value>>(),
        }),
        Verdict::Unproven { why } => json!({ "verdict": UNPROVEN, "reason": why }),
        Verdict::Differs { differences, buffers } => json!({
            "verdict": "differs", "buffers": buffers,
            "differences": differences.iter().map(difference_value).collect::<Vec<Value>>(),
        }),
    }
}

fn close_value(close: &Close) -> Value {
    json!({
        "address": close.address, "bytes": close.bytes, "type": close.float.name(),
        "elements": close.elements, "largest": close.largest,
    })
}

pub(super) fn comparison_value(comparison: &Comparison) -> Value {
    json!({
        "command": comparison.old.command, "name": comparison.old.name,
        "recorded_ns": comparison.old.recorded.map(nanos), "old_ns": nanos(comparison.old.median()),
        "new_ns": nanos(median(&comparison.new)), "outcome": verdict_value(&comparison.verdict),
    })
}
