//! Starting a program under the collector.

use std::{
    collections::BTreeMap,
    env,
    ffi::{CString, OsStr, OsString},
    io,
    os::unix::{ffi::OsStringExt, fs::PermissionsExt},
    path::{Path, PathBuf},
};

use nix::{
    spawn::{PosixSpawnAttr, PosixSpawnFileActions, PosixSpawnFlags, posix_spawnp},
    sys::signal::{SigSet, Signal},
};
use rustix::{
    io::retry_on_intr,
    process::{Pid, WaitOptions, waitpid},
};

use crate::{end::End, environment, error::Error};

/// A program to be started.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// The library to load into it.
    pub library: PathBuf,
    /// Whether the dynamic loader is told too.
    pub preload: Preload,
    /// Whether the driver is told of the library.
    pub injection: Injection,
    /// How long recording goes on.
    pub wait: Wait,
}

/// Whether `LD_PRELOAD` is set: it lets the library stand between the program
/// and the vendor's libraries, which the other variables alone do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preload {
    /// It is.
    Yes,
    /// It is left as it was.
    No,
}

/// Whether `CUDA_INJECTION64_PATH` is set, which has the CUDA driver load the library: nothing of the GPU is recorded
/// without it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Injection {
    /// It is.
    ByDriver,
    /// It is left as it was. Why stands in the trace.
    Withheld(String),
}

/// Whose end is the end of the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// That of the program which was started.
    Primary,
    /// That of the last process which connected.
    All,
}

impl Launch {
    /// Whether there is such a program, before anything is touched for it.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let program = self.command.first().map(|program| program.to_string_lossy());
        let program = program.unwrap_or_default().into_owned();
        match find(&program) {
            Some(_) => Ok(()),
            None => Err(Error::NoSuchProgram { program }),
        }
    }

    /// Starts the program; it finds the collector at `socket`, and signals as
    /// they were before we blocked ours.
    ///
    /// The standard library would hand our own signal mask on, and has no safe
    /// way to hand on another one.
    pub(crate) fn start(&self, socket: &Path, signals: &SigSet) -> Result<Child, Error> {
        let program = self.command.first().cloned().unwrap_or_default();
        let started = self.spawn(socket, signals);
        started.map_err(|source| failure(&program, source))
    }

    fn spawn(&self, socket: &Path, signals: &SigSet) -> io::Result<Child> {
        let arguments = c_strings(self.command.iter().cloned())?;
        let program = arguments.first().ok_or(io::ErrorKind::NotFound)?;
        let mut variables: BTreeMap<OsString, OsString> = env::vars_os().collect();
        variables.insert(tracesmith_wire::environment::COLLECTOR.into(), socket.into());
        for (name, value) in environment::injection(&self.library, self.preload, &self.injection) {
            variables.insert(name.into(), value);
        }
        let variables = variables.into_iter().map(|(mut name, value)| {
            name.push("=");
            name.push(value);
            name
        });
        let mut attributes = PosixSpawnAttr::init()?;
        attributes
            .set_flags(PosixSpawnFlags::POSIX_SPAWN_SETSIGMASK | PosixSpawnFlags::POSIX_SPAWN_SETSIGDEF)?;
        attributes.set_sigmask(signals)?;
        // A Rust program ignores this one, which would be handed on too.
        attributes.set_sigdefault(&SigSet::from(Signal::SIGPIPE))?;
        let files = PosixSpawnFileActions::init()?;
        let pid = posix_spawnp(program, &files, &attributes, &arguments, &c_strings(variables)?)?;
        let pid = Pid::from_raw(pid.as_raw()).ok_or(io::ErrorKind::Other)?;
        Ok(Child { pid })
    }
}

/// A program that was started, and is not waited for yet.
pub(crate) struct Child {
    pid: Pid,
}

impl Child {
    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// How it ended, if it has.
    pub(crate) fn try_wait(&mut self) -> Result<Option<End>, Error> {
        self.wait_with(WaitOptions::NOHANG)
    }

    /// How it ends, in the end.
    pub(crate) fn wait(&mut self) -> Result<End, Error> {
        loop {
            if let Some(end) = self.wait_with(WaitOptions::empty())? {
                return Ok(end);
            }
        }
    }

    fn wait_with(&mut self, options: WaitOptions) -> Result<Option<End>, Error> {
        let waited = retry_on_intr(|| waitpid(Some(self.pid), options));
        let waited = waited.map_err(Error::system("waiting for the program"))?;
        Ok(waited.map(|(_, status)| End::from_raw_status(status.as_raw())))
    }
}

fn c_strings(texts: impl IntoIterator<Item = OsString>) -> io::Result<Vec<CString>> {
    let c_string = |text: OsString| CString::new(text.into_vec()).map_err(io::Error::from);
    texts.into_iter().map(c_string).collect()
}

/// Tells a program that is not there from one that cannot be run. The system
/// says "not found" also of a script whose interpreter is missing.
fn failure(program: &OsStr, source: io::Error) -> Error {
    let program = program.to_string_lossy().into_owned();
    if source.kind() == io::ErrorKind::NotFound && find(&program).is_none() {
        return Error::NoSuchProgram { program };
    }
    Error::NotStarted { program, source }
}

/// The file that a program's name stands for.
fn find(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return Path::new(program).exists().then(|| program.into());
    }
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|file| {
            file.metadata()
                .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
        })
}
