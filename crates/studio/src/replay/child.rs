//! A child process, and the lines that it reads and writes. It is killed when this is dropped.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{self, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use tokio::sync::mpsc;

/// Bytes of a line. The largest answers are pictures of matrices.
const MOST_LINE: u64 = 64 << 20;

/// Bytes of the last messages that are kept.
const MOST_TALK: usize = 8 << 10;

/// A running program.
#[derive(Debug)]
pub(super) struct Child {
    /// `None` after it was killed.
    process: Mutex<Option<process::Child>>,
    talk: Arc<Mutex<Vec<u8>>>,
}

/// Its lines, which one request at a time uses.
#[derive(Debug)]
pub(super) struct Pipes {
    input: Option<ChildStdin>,
    pub(super) lines: mpsc::UnboundedReceiver<String>,
}

impl Child {
    pub(super) fn start(program: &Path, arguments: &[&std::ffi::OsStr]) -> io::Result<(Self, Pipes)> {
        let mut process = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let (input, output, errors) = (process.stdin.take(), process.stdout.take(), process.stderr.take());
        let child = Self {
            process: Mutex::new(Some(process)),
            talk: Arc::default(),
        };
        let (sender, lines) = mpsc::unbounded_channel();
        let talk = Arc::clone(&child.talk);
        if let (Some(output), Some(errors)) = (output, errors) {
            let listener = thread::Builder::new().name("replay-talk".to_owned());
            let listening = listener.spawn(move || listen(errors, &talk))?;
            let reader = thread::Builder::new().name("replay-lines".to_owned());
            reader.spawn(move || {
                read_lines(output, &sender);
                // Then all messages are there when the lines end.
                let _ = listening.join();
            })?;
        }
        Ok((child, Pipes { input, lines }))
    }

    /// Ends it at once, without waiting: a driver can take long to free the memory of a process.
    pub(super) fn kill(&self) {
        let process = self.process.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut process) = process else { return };
        // It may have ended.
        let _ = process.kill();
        let reaper = thread::Builder::new().name("replay-end".to_owned());
        // Without a thread, the process stays in the table until the server ends.
        let _ = reaper.spawn(move || process.wait());
    }

    /// What it printed last, without colors.
    pub(super) fn talk(&self) -> String {
        let talk = self.talk.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&talk).trim().to_owned()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Pipes {
    /// Writes a line, on a thread that may wait.
    pub(super) async fn write(&mut self, line: String) -> io::Result<()> {
        let ended = || io::Error::from(io::ErrorKind::BrokenPipe);
        let mut input = self.input.take().ok_or_else(ended)?;
        let written = tokio::task::spawn_blocking(move || {
            input.write_all(line.as_bytes())?;
            input.flush()?;
            Ok::<ChildStdin, io::Error>(input)
        });
        self.input = Some(written.await.map_err(io::Error::other)??);
        Ok(())
    }
}

fn read_lines(output: ChildStdout, lines: &mpsc::UnboundedSender<String>) {
    let mut output = BufReader::new(output);
    loop {
        let mut line = String::new();
        match output.by_ref().take(MOST_LINE).read_line(&mut line) {
            Ok(length) if length > 0 => {
                if lines.send(line).is_err() {
                    return;
                }
            }
            _ => return,
        }
    }
}

fn listen(mut errors: ChildStderr, talk: &Mutex<Vec<u8>>) {
    let mut bytes = [0; 1024];
    while let Ok(length) = errors.read(&mut bytes) {
        if length == 0 {
            return;
        }
        let mut talk = talk.lock().unwrap_or_else(PoisonError::into_inner);
        talk.extend_from_slice(&bytes[..length]);
        let surplus = talk.len().saturating_sub(MOST_TALK);
        talk.drain(..surplus);
    }
}
