//! Steps through a recording for another program: JSON lines on standard input and output.
//!
//! docs/guides/replay.md describes the protocol. A request is one line, and so is its answer. Requests are handled one
//! after another. A bad request gets an error as its answer, and the session continues. It ends with `quit`, with the
//! end of the input, or if work on the GPU fails.

mod answer;
mod lines;
mod offline;
mod online;
mod request;
mod words;

use std::io::{self, BufReader};

use anyhow::Context;
use serde_json::{Value, json};
use tracesmith_replay::debug::{Debugger, Recorded};
use tracesmith_replay::{Error, Plan, Recording, Replay};

use super::origin::is_recorded_elsewhere;
use crate::args::ReplayArgs;
use crate::exit::Exit;
use crate::output::{Output, hint};
use lines::{Lines, Read};
use request::{Request, Sent};

/// Changes with every change of the protocol that a client has to know of.
const PROTOCOL: u32 = 1;

/// Positions with a snapshot, unless the user chooses.
const SNAPSHOTS: usize = 32;

/// A request that failed.
struct Failure {
    error: anyhow::Error,
    /// More fields of the answer.
    more: Value,
}

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self {
            error: error.into(),
            more: Value::Null,
        }
    }
}

/// What answers requests.
trait Session {
    /// Goes to a position.
    fn go(&mut self, place: usize) -> Result<(), Failure>;

    /// Where it stands.
    fn position(&self) -> Value;

    fn answer(&mut self, request: Request) -> Result<Value, Failure>;
}

/// A session on a GPU.
pub(super) fn run(replay: &mut Replay<'_>, args: &ReplayArgs) -> anyhow::Result<Exit> {
    let lines = Lines::of_replay(replay);
    replay.on_progress(lines.count_bytes());
    if args.snapshot_every.is_none() {
        let calls = replay.recording().commands.len();
        replay.keep_snapshots((calls / SNAPSHOTS).max(1))?;
    }
    let mut debugger = Debugger::new(replay);
    lines.begin(Value::Null);
    debugger.go(0)?;
    lines.end();
    let mut ready = ready(debugger.recording(), None);
    let mut session = online::Online::new(debugger);
    ready["position"] = session.position();
    lines.write(&ready)?;
    serve(&mut session, &lines)
}

/// A session that runs nothing.
pub(super) fn run_offline(args: &ReplayArgs, why: &str) -> anyhow::Result<Exit> {
    let name = args.file.display().to_string();
    let mut recording = Recording::open(&args.file).with_context(|| name.clone())?;
    let obstacles = Plan::of(&mut recording).with_context(|| name)?.obstacles;
    let lines = Lines::alone();
    let recorded = Recorded::new(&mut recording);
    let mut ready = ready(recorded.recording(), Some(why));
    ready["obstacles"] = obstacles.iter().map(ToString::to_string).collect();
    let mut session = offline::Offline::new(recorded, why);
    ready["position"] = session.position();
    lines.write(&ready)?;
    serve(&mut session, &lines)
}

/// The first line.
fn ready(recording: &Recording, offline: Option<&str>) -> Value {
    json!({
        "event": "ready", "protocol": PROTOCOL, "offline": offline, "process": recording.process.0,
        "calls": recording.commands.len(), "buffers": recording.begin.len(),
        "begin_bytes": recording.begin_bytes(), "end_bytes": recording.end_bytes(),
        "recorded_gpu": recording.gpu.name, "recorded_on": recording.origin.name,
        "is_from_elsewhere": is_recorded_elsewhere(&recording.origin),
    })
}

fn serve(session: &mut impl Session, lines: &Lines) -> anyhow::Result<Exit> {
    let mut input = BufReader::new(io::stdin());
    loop {
        let line = match lines::read(&mut input).context("reading a request")? {
            Read::End => return Ok(Exit::Done),
            Read::TooLong => {
                let why = anyhow::anyhow!("the request is longer than {} bytes", lines::MOST_BYTES);
                lines.write(&failed(&Value::Null, &why.into()))?;
                continue;
            }
            Read::Line(line) if line.trim_ascii().is_empty() => continue,
            Read::Line(line) => line,
        };
        let Sent { id, request } = request::parse(&line);
        let answered = match request {
            Ok((_, Request::Quit {})) => {
                lines.write(&json!({ "id": id, "ok": {} }))?;
                return Ok(Exit::Done);
            }
            Ok((place, request)) => {
                lines.begin(id.clone());
                let gone = place.map_or(Ok(()), |place| session.go(place));
                let answered = gone.and_then(|()| session.answer(request));
                lines.end();
                answered
            }
            Err(error) => Err(error.into()),
        };
        match answered {
            Ok(mut answer) => {
                answer["position"] = session.position();
                lines.write(&json!({ "id": id, "ok": answer }))?;
            }
            Err(failure) => {
                let is_fault = failure.error.downcast_ref::<Error>().is_some_and(Error::is_fault);
                let mut told = failed(&id, &failure);
                if is_fault {
                    // The process cannot use the device any more.
                    told["fatal"] = true.into();
                }
                lines.write(&told)?;
                if is_fault {
                    return Err(failure.error);
                }
            }
        }
    }
}

fn failed(id: &Value, failure: &Failure) -> Value {
    let mut told = json!({ "id": id, "error": format!("{:#}", failure.error) });
    if let Some(hint) = hint(&failure.error).or_else(|| words::hint(&failure.error)) {
        told["hint"] = hint.into();
    }
    if let (Some(told), Some(more)) = (told.as_object_mut(), failure.more.as_object()) {
        told.extend(more.clone());
    }
    told
}

/// The line with which a replay ends that failed.
pub(super) fn failure_line(failed: &Value, output: &mut Output) -> anyhow::Result<()> {
    let mut event = failed.clone();
    event["event"] = "failed".into();
    output.line(&event.to_string())?;
    Ok(output.finish()?)
}
