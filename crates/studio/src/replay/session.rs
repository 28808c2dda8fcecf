//! A child that replays one trace: its start, one request at a time, and its end.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use tokio::sync::Mutex as TaskMutex;

use super::Replayer;
use super::body::LineSender;
use super::child::{Child, Pipes};

/// How often an idle child is looked for.
const LOOK: Duration = Duration::from_secs(5);

/// What a child does with a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// It runs the recorded calls on the GPU.
    Run,
    /// It runs nothing, and reads recorded contents.
    Look,
}

impl Mode {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Mode::Run => "run",
            Mode::Look => "look",
        }
    }
}

/// How a session is.
#[derive(Clone, Debug)]
pub(crate) enum Status {
    Starting,
    /// With the first line of the child.
    Ready(Value),
    /// With the reason.
    Ended(String),
}

/// A child with its state.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) mode: Mode,
    /// The trace as it was when the session started.
    pub(crate) stamp: String,
    child: Child,
    pipes: TaskMutex<Pipes>,
    status: Mutex<Status>,
    last_use: Mutex<Instant>,
    requests: AtomicU64,
    silence_limit: Duration,
}

impl Session {
    /// Starts a child.
    pub(crate) fn start(
        replayer: &Replayer,
        file: &Path,
        mode: Mode,
        stamp: &str,
    ) -> std::io::Result<Arc<Self>> {
        let mut arguments = vec![OsStr::new("replay"), file.as_os_str()];
        arguments.extend(["--step", "--format", "json", "--no-color"].map(OsStr::new));
        if mode == Mode::Look {
            arguments.extend(["--mode", "dry-run"].map(OsStr::new));
        }
        let (child, pipes) = Child::start(&replayer.program, &arguments)?;
        let session = Arc::new(Self {
            mode,
            stamp: stamp.to_owned(),
            child,
            pipes: TaskMutex::new(pipes),
            status: Mutex::new(Status::Starting),
            last_use: Mutex::new(Instant::now()),
            requests: AtomicU64::new(0),
            silence_limit: replayer.silence_limit,
        });
        tokio::spawn(end_when_idle(Arc::downgrade(&session), replayer.idle_limit));
        Ok(session)
    }

    pub(crate) fn status(&self) -> Status {
        self.lock().clone()
    }

    /// Ends the child. The first reason counts.
    pub(crate) fn end(&self, why: &str) {
        {
            let mut status = self.lock();
            if matches!(*status, Status::Ended(_)) {
                return;
            }
            *status = Status::Ended(why.to_owned());
        }
        self.child.kill();
    }

    /// Waits for the first line, and sends progress and then that line to a page.
    pub(crate) async fn wait_until_ready(self: Arc<Self>, page: LineSender) {
        let mut pipes = self.pipes.lock().await;
        let line = match self.status() {
            Status::Ready(ready) => ready,
            _ => self.first_line(&mut pipes, &page).await,
        };
        // Other pages do not wait for this one to read.
        drop(pipes);
        page.send(&line).await;
    }

    async fn first_line(&self, pipes: &mut Pipes, page: &LineSender) -> Value {
        let wanted = |line: &Value| line["event"] == "ready";
        let line = self.answer(pipes, page, wanted).await;
        if line["event"] == "ready" {
            let mut status = self.lock();
            if matches!(*status, Status::Starting) {
                *status = Status::Ready(line.clone());
            }
        }
        line
    }

    /// Sends a request, and sends progress and then the answer to a page. The child works to the end of a request, also
    /// if the page goes away.
    pub(crate) async fn ask(self: Arc<Self>, mut request: Map<String, Value>, page: LineSender) {
        let mut pipes = self.pipes.lock().await;
        self.note_use();
        let id = Value::from(self.requests.fetch_add(1, Ordering::Relaxed));
        request.insert("id".to_owned(), id.clone());
        let mut line = Value::Object(request).to_string();
        line.push('\n');
        // A child that has ended does not read, and its last lines say why.
        if tokio::time::timeout(self.silence_limit, pipes.write(line))
            .await
            .is_err()
        {
            self.end_silent();
        }
        let is_answer = |line: &Value| line["id"] == id && line.get("progress").is_none();
        let answer = self.answer(&mut pipes, &page, is_answer).await;
        self.note_use();
        drop(pipes);
        page.send(&answer).await;
    }

    /// The line that is wanted, or an error if the child ends before.
    async fn answer(
        &self,
        pipes: &mut Pipes,
        page: &LineSender,
        is_wanted: impl Fn(&Value) -> bool,
    ) -> Value {
        let mut failed = None;
        loop {
            let line = match tokio::time::timeout(self.silence_limit, pipes.lines.recv()).await {
                Ok(Some(line)) => line,
                Ok(None) => return self.ended(failed.as_ref()),
                Err(_) => {
                    self.end_silent();
                    return self.ended(None);
                }
            };
            match serde_json::from_str::<Value>(&line) {
                Ok(line) if is_wanted(&line) => return line,
                Ok(line) if line.get("progress").is_some() => page.offer(&line),
                Ok(line) if line["event"] == "failed" => failed = Some(line),
                // Answers to requests that nobody waits for any longer.
                Ok(_) => {}
                Err(_) => {
                    self.end("the replay wrote a line that is not JSON, and was ended");
                    return self.ended(None);
                }
            }
        }
    }

    fn end_silent(&self) {
        self.end(&format!(
            "the replay wrote nothing for {} s, and was ended",
            self.silence_limit.as_secs()
        ));
    }

    /// The error for a request that the child did not answer.
    fn ended(&self, failed: Option<&Value>) -> Value {
        let talk = self.child.talk();
        let why = match self.status() {
            Status::Ended(why) => why,
            _ if talk.is_empty() => "the replay ended unexpectedly".to_owned(),
            _ => words(&talk),
        };
        self.end(&why);
        let mut line = json!({ "error": why, "ended": true });
        if let Some(hint) = hint(&talk) {
            line["hint"] = hint.into();
        }
        if let Some(failed) = failed {
            line["failed"] = failed.clone();
        }
        line
    }

    fn note_use(&self) {
        *self.last_use.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn idle(&self) -> Duration {
        let last = *self.last_use.lock().unwrap_or_else(PoisonError::into_inner);
        // A request that is being handled holds the pipes.
        match self.pipes.try_lock() {
            Ok(_) => last.elapsed(),
            Err(_) => Duration::ZERO,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn end_when_idle(session: Weak<Session>, limit: Duration) {
    loop {
        tokio::time::sleep(LOOK.min(limit)).await;
        let Some(session) = session.upgrade() else { return };
        if matches!(session.status(), Status::Ended(_)) {
            return;
        }
        if session.idle() >= limit {
            session.end("the replay was not used for a while, and was ended to free the memory of the GPU");
            return;
        }
    }
}

/// The error message of a program that failed, or all that it said.
fn words(talk: &str) -> String {
    let error = talk.find("error: ").map(|at| &talk[at + "error: ".len()..]);
    let error = error.map(|rest| rest.split("\n\nhint: ").next().unwrap_or(rest));
    error.unwrap_or(talk).trim().to_owned()
}

fn hint(talk: &str) -> Option<String> {
    let (_, hint) = talk.split_once("\n\nhint: ")?;
    Some(hint.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_of_a_program_is_its_error_without_its_hint() {
        let talk = "warning: recorded on another machine\nerror: t.sbt: the file is cut off\n  at 7\n\nhint: repair it\n";
        assert_eq!(words(talk), "t.sbt: the file is cut off\n  at 7");
        assert_eq!(hint(talk).as_deref(), Some("repair it"));
        assert_eq!(words("Killed"), "Killed");
        assert_eq!(hint("Killed"), None);
    }
}
