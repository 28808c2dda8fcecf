//! Recordings that pages start: each is a child process, `tracesmith record --control`, which takes orders by lines
//! and answers by lines of JSON.
//!
//! The end of its standard input stops a recording. So it is stopped, and its file completed, also when the server
//! ends.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::events::{Hub, Recorded};
use crate::library::Library;
use crate::options::Recorder;
use crate::reply::Failure;

/// Recordings at once. A process has one collector at a time.
const MOST_AT_ONCE: usize = 16;
/// Bytes of what a child says about its arguments.
const MOST_WORDS: u64 = 4 << 10;
const LONGEST_LINE: u64 = 1 << 20;

/// What a page wants to record. Its texts are arguments of the command, which checks them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wish {
    pub(crate) pid: u32,
    /// The file, below the start folder.
    pub(crate) path: String,
    duration: Option<String>,
    level: Option<String>,
    stacks: Option<String>,
    /// Also record what a replay needs.
    #[serde(default)]
    replay: bool,
}

/// All recordings of this server.
#[derive(Debug)]
pub(crate) struct Recordings {
    list: Mutex<Vec<Recording>>,
    hub: Hub,
}

#[derive(Debug)]
struct Recording {
    status: Status,
    began: Instant,
    /// Gone once the recording was told to stop.
    orders: Option<ChildStdin>,
}

/// How a recording is.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Status {
    pub(crate) id: usize,
    pid: u32,
    path: String,
    pub(crate) state: Stage,
    /// The number of the trace, once it can be looked at.
    pub(crate) trace: Option<usize>,
    /// Since it was started, to its end.
    seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// What was recorded, in the words of `record --control`.
    #[serde(skip_serializing_if = "Option::is_none")]
    report: Option<Value>,
}

/// How far a recording is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Stage {
    /// The process starts to record.
    Starting,
    Recording,
    /// The process is free again, and the file is being completed.
    Closing,
    Done,
    Failed,
}

impl Recordings {
    pub(crate) fn new(hub: Hub) -> Self {
        Recordings {
            list: Mutex::default(),
            hub,
        }
    }

    /// How all of them are, in the order in which they were started.
    pub(crate) fn all(&self) -> Vec<Status> {
        self.lock().iter().map(Recording::status).collect()
    }

    /// Starts one. `file` does not exist.
    pub(crate) fn start(
        self: &Arc<Self>,
        recorder: &Recorder,
        library: &Arc<Library>,
        wish: &Wish,
        file: &Path,
    ) -> Result<Status, Failure> {
        let mut list = self.lock();
        let running = list.iter().filter(|one| one.status.state.is_running()).count();
        if running >= MOST_AT_ONCE {
            return Err(Failure::conflict(format!("{running} recordings are running"))
                .with_hint("stop one of them first"));
        }
        let cannot = |error: std::io::Error| {
            Failure::unprocessable(format!("cannot start {}: {error}", recorder.program.display()))
        };
        let mut child = command(recorder, wish, file).spawn().map_err(cannot)?;
        let id = list.len();
        let recording = Recording {
            status: Status {
                id,
                pid: wish.pid,
                path: wish.path.clone(),
                state: Stage::Starting,
                trace: None,
                seconds: 0.0,
                error: None,
                hint: None,
                report: None,
            },
            began: Instant::now(),
            orders: child.stdin.take(),
        };
        let status = recording.status();
        list.push(recording);
        drop(list);
        let listener = Listener {
            recordings: Arc::clone(self),
            library: Arc::clone(library),
            id,
            file: file.to_owned(),
        };
        let thread = thread::Builder::new().name("studio-record".to_owned());
        // Without a thread nobody holds the output of the child, and its input is closed below: it ends.
        if let Err(error) = thread.spawn(move || listener.run(child)) {
            self.change(id, |one| {
                one.fail(format!("cannot start a thread: {error}"), None)
            });
        }
        Ok(status)
    }

    /// Tells one to stop. One that has ended stays as it is.
    pub(crate) fn stop(&self, id: usize) -> Result<Status, Failure> {
        let mut list = self.lock();
        let one = list
            .get_mut(id)
            .ok_or_else(|| Failure::missing(format!("there is no recording {id}")))?;
        if let Some(mut orders) = one.orders.take() {
            // It may have ended by itself. The end of the orders means the same.
            let _ = orders.write_all(b"stop\n");
        }
        Ok(one.status())
    }

    fn change(&self, id: usize, change: impl FnOnce(&mut Recording)) {
        let status = {
            let mut list = self.lock();
            let one = &mut list[id];
            change(one);
            one.status.seconds = one.began.elapsed().as_secs_f64();
            if !one.status.state.is_running() {
                one.orders = None;
            }
            one.status()
        };
        self.hub.tell_recording(Recorded {
            recording: status.id,
            state: status.state,
        });
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Recording>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stage {
    fn is_running(self) -> bool {
        !matches!(self, Stage::Done | Stage::Failed)
    }
}

impl Recording {
    fn status(&self) -> Status {
        let mut status = self.status.clone();
        if status.state.is_running() {
            status.seconds = self.began.elapsed().as_secs_f64();
        }
        status
    }

    fn fail(&mut self, error: String, hint: Option<String>) {
        self.status.state = Stage::Failed;
        self.status.error = Some(error);
        self.status.hint = hint;
    }
}

/// Every value is part of the word of its option, so that none is taken for an option of its own.
fn command(recorder: &Recorder, wish: &Wish, file: &Path) -> Command {
    let mut command = Command::new(&recorder.program);
    command
        .args(["--quiet", "record", "--control"])
        .arg(format!("--pid={}", wish.pid))
        .arg("-o")
        .arg(file)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    for (name, value) in [
        ("duration", &wish.duration),
        ("level", &wish.level),
        ("stacks", &wish.stacks),
    ] {
        if let Some(value) = value {
            command.arg(format!("--{name}={value}"));
        }
    }
    if wish.replay {
        command.arg("--record");
    }
    command
}

/// Reads what a child answers.
struct Listener {
    recordings: Arc<Recordings>,
    library: Arc<Library>,
    id: usize,
    file: PathBuf,
}

/// Events of the child that are used here. The docs of `record --control` list all.
#[derive(Deserialize)]
struct Line {
    event: String,
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    hint: Option<String>,
    #[serde(default)]
    report: Option<Value>,
}

impl Listener {
    fn run(self, mut child: Child) {
        let errors = child.stderr.take().map(|mut errors| {
            thread::spawn(move || {
                let mut words = Vec::new();
                // What cannot be read is not shown.
                let _ = errors.by_ref().take(MOST_WORDS).read_to_end(&mut words);
                // A child that has more to say is not to fail because nobody reads it.
                let _ = std::io::copy(&mut errors, &mut std::io::sink());
                String::from_utf8_lossy(&words).into_owned()
            })
        });
        if let Some(output) = child.stdout.take() {
            let mut output = BufReader::new(output);
            let mut line = String::new();
            while matches!(output.by_ref().take(LONGEST_LINE).read_line(&mut line), Ok(read) if read > 0) {
                if let Ok(line) = serde_json::from_str(&line) {
                    self.hear(line);
                }
                line.clear();
            }
        }
        let ended = child.wait();
        let words = errors.and_then(|errors| errors.join().ok()).unwrap_or_default();
        self.recordings.change(self.id, |one| {
            if one.status.state.is_running() {
                let (error, hint) = in_words(&words);
                let error = error.unwrap_or_else(|| match ended {
                    Ok(status) => format!("the recorder ended: {status}"),
                    Err(error) => format!("the recorder is lost: {error}"),
                });
                one.fail(error, hint);
            }
        });
    }

    fn hear(&self, line: Line) {
        let trace = match line.event.as_str() {
            "open" => self.file.canonicalize().ok().map(|path| self.library.open(path)),
            _ => None,
        };
        self.recordings.change(self.id, |one| match line.event.as_str() {
            "open" => {
                one.status.state = Stage::Recording;
                one.status.trace = trace;
            }
            "closed" => one.status.state = Stage::Closing,
            "done" => {
                one.status.state = Stage::Done;
                one.status.report = line.report;
            }
            "error" => one.fail(line.message.unwrap_or_default(), line.hint),
            _ => {}
        });
    }
}

/// The sentence and the hint of a command that could not start.
fn in_words(words: &str) -> (Option<String>, Option<String>) {
    let part = |name: &str| {
        let mut lines = words.lines().map(str::trim);
        lines.find_map(|line| line.strip_prefix(name).map(|rest| rest.trim().to_owned()))
    };
    let first = words.lines().map(str::trim).find(|line| !line.is_empty());
    (
        part("error:").or_else(|| first.map(str::to_owned)),
        part("hint:").or_else(|| {
            part("[possible values:").map(|list| format!("possible values: {}", list.trim_end_matches(']')))
        }),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_command_become_a_sentence_and_a_hint() {
        assert_eq!(
            in_words("error: no process 7\n\nhint: look for it\n"),
            (Some("no process 7".to_owned()), Some("look for it".to_owned()))
        );
        let wrong = "error: invalid value 'x' for '--level <LEVEL>'\n  [possible values: light, full]\n\nFor more, try";
        assert_eq!(
            in_words(wrong),
            (
                Some("invalid value 'x' for '--level <LEVEL>'".to_owned()),
                Some("possible values: light, full".to_owned())
            )
        );
        assert_eq!(in_words(""), (None, None));
    }
}
