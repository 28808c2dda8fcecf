//! Starts a program under the collector.

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

/// A program to start.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// The library to load into it.
    pub library: PathBuf,
    /// Whether to preload the library with the dynamic loader.
    pub preload: Preload,
    /// Whether the CUDA driver loads the library.
    pub injection: Injection,
    /// When to stop recording.
    pub wait: Wait,
    /// Who gets signals that another process sends to the collector.
    pub forwarding: Forwarding,
}

/// Who gets signals that another process sends to the collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forwarding {
    /// The started program.
    Program,
    /// All processes of the collector's process group get the signals that a terminal sends: SIGINT, SIGQUIT and SIGHUP.
    /// The started program gets the others, and all of them if the collector does not lead its group.
    Group,
}

/// Whether to set `LD_PRELOAD`. With it, the library can interpose calls between the program and CUPTI. The other
/// variables do not allow that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preload {
    /// Set it.
    Yes,
    /// Leave it unchanged.
    No,
}

/// Whether to set `CUDA_INJECTION64_PATH`. It makes the CUDA driver load the library. Without it, no GPU activity is
/// recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Injection {
    /// Set it.
    ByDriver,
    /// Leave it unchanged. The trace contains this reason.
    Withheld(String),
}

/// When to stop recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// When the started program exits.
    Primary,
    /// When the last connected process exits.
    All,
}

impl Launch {
    /// Checks that the program exists, before anything is created for it.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let program = self.command.first().map(|program| program.to_string_lossy());
        let program = program.unwrap_or_default().into_owned();
        match find(&program) {
            Some(_) => Ok(()),
            None => Err(Error::NoSuchProgram { program }),
        }
    }

    /// Starts the program. It gets the path of the collector's socket, and the signal mask from before the collector
    /// blocked signals.
    ///
    /// The standard library would pass on the collector's own signal mask, and has no safe way to pass on another
    /// one.
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
        // Rust programs ignore SIGPIPE. The child would inherit that.
        attributes.set_sigdefault(&SigSet::from(Signal::SIGPIPE))?;
        let files = PosixSpawnFileActions::init()?;
        let pid = posix_spawnp(program, &files, &attributes, &arguments, &c_strings(variables)?)?;
        let pid = Pid::from_raw(pid.as_raw()).ok_or(io::ErrorKind::Other)?;
        Ok(Child { pid })
    }
}

/// A started program.
pub(crate) struct Child {
    pid: Pid,
}

impl Child {
    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// How the program ended. `None` while it runs.
    pub(crate) fn try_wait(&mut self) -> Result<Option<End>, Error> {
        self.wait_with(WaitOptions::NOHANG)
    }

    /// Waits until the program ends.
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

/// Distinguishes a missing program from one that cannot be executed. The system reports "not found" for a script
/// whose interpreter is missing, too.
fn failure(program: &OsStr, source: io::Error) -> Error {
    let program = program.to_string_lossy().into_owned();
    if source.kind() == io::ErrorKind::NotFound && find(&program).is_none() {
        return Error::NoSuchProgram { program };
    }
    Error::NotStarted { program, source }
}

/// The file of a program, found as the shell does.
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
