//! `tracesmith states`.

use std::io::{self, Write};
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};
use tracesmith_trace::analysis::device_name;
use tracesmith_trace::reconstruct::{
    Activity, Dependencies, Interval, OpId, OpKind, OpTable, State, StateLine, States, Subject,
};
use tracesmith_trace::{EventName, Trace, units};

use crate::args::{Format, StatesArgs};
use crate::commands::analyze::{show_doubts, whole_span, window};
use crate::input::open_trace;
use crate::output::table::{Align, TextTable};
use crate::output::{Output, StdoutError};

pub(crate) fn run(args: &StatesArgs, output: &mut Output) -> anyhow::Result<()> {
    let trace = Arc::new(open_trace(&args.file)?);
    let span = trace.span();
    let window = window(&args.stretch, &trace)?;
    let activity = Arc::new(Activity::within(&trace, window)?);
    let dependencies = Arc::new(Dependencies::of(&activity));
    let states = States::of(&activity, &dependencies);
    let shown = Shown {
        trace: &trace,
        activity: &activity,
        lines: states
            .lines
            .iter()
            .filter(|line| is_wanted(args, &activity, line))
            .collect(),
    };
    if states.lines.is_empty() {
        output.note("no GPU work in this time range");
    } else if shown.lines.is_empty() {
        output.note("no work in these streams in this time range");
    }
    let limit = match (args.limit, output.format) {
        (Some(0), _) | (None, Format::Json | Format::Csv) => usize::MAX,
        (Some(limit), _) => limit,
        (None, Format::Table) => 100,
    };
    match args.at {
        _ if shown.lines.is_empty() && output.format == Format::Table => {}
        Some(time) => shown.at(time.resolve(span).0, output)?,
        None if args.intervals => shown.intervals(limit, output)?,
        None => shown.totals(output)?,
    }
    if output.format != Format::Json {
        show_doubts(&activity.doubts, output);
    }
    Ok(())
}

fn is_wanted(args: &StatesArgs, activity: &Activity, line: &StateLine) -> bool {
    match line.subject {
        _ if args.stream.is_empty() => true,
        Subject::Stream(lane) => args.stream.contains(&activity.lane(lane).stream.0),
        _ => false,
    }
}

/// One interval of a state.
#[derive(Serialize)]
struct JsonInterval<'a> {
    from_ns: u64,
    to_ns: u64,
    state: &'static str,
    work: Option<JsonWork<'a>>,
    waits_for: Option<JsonWork<'a>>,
}

#[derive(Serialize)]
struct JsonWork<'a> {
    name: &'a str,
    table: OpTable,
    row: u32,
}

struct Shown<'a> {
    trace: &'a Trace,
    activity: &'a Activity,
    lines: Vec<&'a StateLine>,
}

impl Shown<'_> {
    fn name(&self, subject: Subject) -> String {
        match subject {
            Subject::Device(device) => device_name(self.trace, device),
            Subject::Context(process, context, _) => format!("process {} context {}", process.0, context.0),
            Subject::Stream(lane) => {
                let lane = self.activity.lane(lane);
                format!(
                    "process {} context {} stream {}",
                    lane.process.0, lane.context.0, lane.stream.0
                )
            }
        }
    }

    fn json_subject(&self, subject: Subject) -> Value {
        match subject {
            Subject::Device(device) => json!({ "kind": "device", "device": device.0 }),
            Subject::Context(process, context, device) => {
                json!({ "kind": "context", "device": device.0, "process": process.0, "context": context.0 })
            }
            Subject::Stream(lane) => {
                let lane = self.activity.lane(lane);
                json!({
                    "kind": "stream",
                    "device": lane.device.0,
                    "process": lane.process.0,
                    "context": lane.context.0,
                    "stream": lane.stream.0,
                })
            }
        }
    }

    fn work(&self, interval: &Interval) -> String {
        if interval.op.is_some() {
            self.activity.name(self.trace, interval.op).to_owned()
        } else {
            String::new()
        }
    }

    fn held_by(&self, interval: &Interval) -> String {
        if interval.waits_for.is_some() {
            let lane = self
                .activity
                .lane(self.activity.ops.lane[interval.waits_for.index()]);
            let name = self.activity.name(self.trace, interval.waits_for);
            format!("{name} on stream {}", lane.stream.0)
        } else {
            String::new()
        }
    }

    fn json_interval(&self, interval: &Interval) -> JsonInterval<'_> {
        let work = |op: OpId| {
            op.is_some().then(|| {
                let name = self.activity.name(self.trace, op);
                let op = self.activity.ops.get(op);
                JsonWork {
                    name,
                    table: op.kind.table,
                    row: op.row,
                }
            })
        };
        JsonInterval {
            from_ns: interval.from,
            to_ns: interval.to,
            state: interval.state.name(),
            work: work(interval.op),
            waits_for: work(interval.waits_for),
        }
    }

    /// The constant members of each operation as JSON text.
    fn json_work(&self) -> anyhow::Result<Vec<Vec<u8>>> {
        let text = |kind: &OpKind| -> anyhow::Result<Vec<u8>> {
            let mut text = b"{\"name\":".to_vec();
            let name = match kind.name {
                EventName::Id(id) => self.trace.string(id),
                EventName::Word(word) => word,
            };
            serde_json::to_writer(&mut text, name)?;
            text.extend_from_slice(b",\"table\":");
            serde_json::to_writer(&mut text, &kind.table)?;
            text.extend_from_slice(b",\"row\":");
            Ok(text)
        };
        self.activity.ops.kinds.iter().map(text).collect()
    }

    fn write_interval(&self, interval: &Interval, work: &[Vec<u8>], out: &mut impl Write) -> io::Result<()> {
        let ops = &self.activity.ops;
        let number = |out: &mut _, number: u64| serde_json::to_writer(out, &number);
        out.write_all(b"        {\"from_ns\":")?;
        number(&mut *out, interval.from)?;
        out.write_all(b",\"to_ns\":")?;
        number(&mut *out, interval.to)?;
        out.write_all(b",\"state\":\"")?;
        out.write_all(interval.state.name().as_bytes())?;
        for (member, op) in [
            ("\",\"work\":", interval.op),
            (",\"waits_for\":", interval.waits_for),
        ] {
            out.write_all(member.as_bytes())?;
            if op.is_some() {
                out.write_all(&work[ops.kind[op.index()] as usize])?;
                number(&mut *out, u64::from(ops.row[op.index()]))?;
                out.write_all(b"}")?;
            } else {
                out.write_all(b"null")?;
            }
        }
        out.write_all(b"}")
    }

    fn totals(&self, output: &mut Output) -> anyhow::Result<()> {
        match output.format {
            Format::Json => {
                let lines: Vec<Value> = self
                    .lines
                    .iter()
                    .map(|line| {
                        let times = line.totals();
                        let totals: serde_json::Map<String, Value> = State::ALL
                            .into_iter()
                            .map(|state| (format!("{}_ns", state.name()), json!(times.nanos[state as usize])))
                            .collect();
                        json!({ "of": self.json_subject(line.subject), "intervals": times.intervals, "totals": totals })
                    })
                    .collect();
                Ok(output.json(&json!({ "states": lines, "doubts": self.activity.doubts }))?)
            }
            Format::Csv => {
                output.csv([
                    "of",
                    "idle_ns",
                    "pending_ns",
                    "waiting_ns",
                    "running_ns",
                    "finished_ns",
                ])?;
                for line in &self.lines {
                    let numbers = line.totals().nanos.map(|nanos| nanos.to_string());
                    output.csv(std::iter::once(self.name(line.subject)).chain(numbers))?;
                }
                Ok(())
            }
            Format::Table => {
                let mut table = TextTable::new(&[
                    ("object", Align::Left),
                    ("running", Align::Right),
                    ("waiting", Align::Right),
                    ("pending", Align::Right),
                    ("idle", Align::Right),
                    ("finished", Align::Right),
                    ("state changes", Align::Right),
                ]);
                for line in &self.lines {
                    let totals = line.totals();
                    let all: u64 = totals.nanos.iter().sum();
                    let part = |state: State| match totals.nanos[state as usize] {
                        0 => String::new(),
                        nanos => {
                            let share = 100.0 * nanos as f64 / all as f64;
                            format!("{} ({share:.1} %)", units::nanos(nanos))
                        }
                    };
                    table.row([
                        self.name(line.subject).into(),
                        part(State::Running).into(),
                        part(State::Waiting).into(),
                        part(State::Pending).into(),
                        part(State::Idle).into(),
                        part(State::Finished).into(),
                        units::count(totals.intervals).into(),
                    ]);
                }
                Ok(output.table(&table)?)
            }
        }
    }

    fn intervals(&self, limit: usize, output: &mut Output) -> anyhow::Result<()> {
        let all = self
            .lines
            .iter()
            .flat_map(|line| line.intervals().map(|interval| (line.subject, interval)));
        match output.format {
            Format::Json => write_intervals(self, limit, output),
            Format::Csv => {
                output.csv(["of", "from_ns", "to_ns", "state", "work", "waits_for"])?;
                for (subject, interval) in all.take(limit) {
                    output.csv([
                        self.name(subject),
                        interval.from.to_string(),
                        interval.to.to_string(),
                        interval.state.name().to_owned(),
                        self.work(&interval),
                        self.held_by(&interval),
                    ])?;
                }
                Ok(())
            }
            Format::Table => {
                let mut table = TextTable::new(&[
                    ("object", Align::Left),
                    ("from", Align::Right),
                    ("duration", Align::Right),
                    ("state", Align::Left),
                    ("work", Align::Flexible),
                    ("waits for", Align::Flexible),
                ]);
                let span = whole_span(self.trace);
                for (subject, interval) in all.take(limit) {
                    table.row([
                        self.name(subject).into(),
                        units::offset(span, interval.from).into(),
                        units::nanos(interval.to - interval.from).into(),
                        interval.state.name().into(),
                        self.work(&interval).into(),
                        self.held_by(&interval).into(),
                    ]);
                }
                output.table(&table)?;
                let count: usize = self.lines.iter().map(|line| line.intervals().count()).sum();
                if count > limit {
                    let hidden = units::count((count - limit) as u64);
                    output.note(&format!("{hidden} more intervals; --limit 0 shows all"));
                }
                Ok(())
            }
        }
    }

    fn at(&self, time: u64, output: &mut Output) -> anyhow::Result<()> {
        let queued = |subject: Subject| match subject {
            Subject::Stream(lane) => Some(States::queued(self.activity, lane, time)),
            _ => None,
        };
        let now: Vec<(Subject, Interval)> = self
            .lines
            .iter()
            .filter_map(|line| Some((line.subject, line.at(time)?)))
            .collect();
        if now.is_empty() && !self.lines.is_empty() {
            anyhow::bail!(
                "the trace has no state at that time; 'tracesmith info' shows when it starts and ends"
            );
        }
        match output.format {
            Format::Json => {
                let lines: Vec<Value> = now
                    .iter()
                    .map(|(subject, interval)| {
                        let mut line = json!(self.json_interval(interval));
                        line["of"] = self.json_subject(*subject);
                        line["queued"] = json!(queued(*subject));
                        line
                    })
                    .collect();
                Ok(
                    output
                        .json(&json!({ "at_ns": time, "states": lines, "doubts": self.activity.doubts }))?,
                )
            }
            Format::Csv => {
                output.csv(["of", "state", "since_ns", "queued", "work", "waits_for"])?;
                for (subject, interval) in now {
                    output.csv([
                        self.name(subject),
                        interval.state.name().to_owned(),
                        interval.from.to_string(),
                        queued(subject).map_or(String::new(), |count| count.to_string()),
                        self.work(&interval),
                        self.held_by(&interval),
                    ])?;
                }
                Ok(())
            }
            Format::Table => {
                let mut table = TextTable::new(&[
                    ("object", Align::Left),
                    ("state", Align::Left),
                    ("duration", Align::Right),
                    ("queued", Align::Right),
                    ("work", Align::Flexible),
                    ("waits for", Align::Flexible),
                ]);
                for (subject, interval) in now {
                    table.row([
                        self.name(subject).into(),
                        interval.state.name().into(),
                        units::nanos(time - interval.from).into(),
                        queued(subject)
                            .map_or(String::new(), |count| units::count(count as u64))
                            .into(),
                        self.work(&interval).into(),
                        self.held_by(&interval).into(),
                    ]);
                }
                Ok(output.table(&table)?)
            }
        }
    }
}

/// Writes every interval as JSON while the intervals are computed, one per line. There can be tens of millions, so
/// repeated text is formatted once, and nothing else is kept.
fn write_intervals(shown: &Shown<'_>, limit: usize, output: &mut Output) -> anyhow::Result<()> {
    let work = shown.json_work()?;
    let out = output.plain()?;
    let mut write = || -> io::Result<()> {
        out.write_all(b"{\n  \"states\": [")?;
        for (number, line) in shown.lines.iter().enumerate() {
            let comma = if number == 0 { "" } else { "," };
            let subject = shown.json_subject(line.subject);
            write!(
                out,
                "{comma}\n    {{\n      \"of\": {subject},\n      \"intervals\": ["
            )?;
            for (number, interval) in line.intervals().take(limit).enumerate() {
                out.write_all(if number == 0 { b"\n" } else { b",\n" })?;
                shown.write_interval(&interval, &work, out)?;
            }
            out.write_all(b"\n      ]\n    }")?;
        }
        out.write_all(b"\n  ],\n  \"doubts\": ")?;
        serde_json::to_writer(&mut *out, &shown.activity.doubts)?;
        out.write_all(b"\n}\n")
    };
    write().map_err(|error| StdoutError(error).into())
}
