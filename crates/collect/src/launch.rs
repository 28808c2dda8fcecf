//! Starting a program under the collector.

use std::{
    env,
    ffi::{OsStr, OsString},
    io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command},
};

use crate::{environment, error::Error};

/// A program to be started.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// The library to load into it.
    pub library: PathBuf,
    /// Whether the dynamic loader is told too.
    pub preload: Preload,
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

    /// Starts the program; it finds the collector at `socket`.
    pub(crate) fn start(&self, socket: &Path) -> Result<Child, Error> {
        let Some((program, arguments)) = self.command.split_first() else {
            let program = String::new();
            return Err(Error::NoSuchProgram { program });
        };
        let mut command = Command::new(program);
        command.args(arguments);
        command.env(environment::COLLECTOR_VARIABLE, socket);
        command.envs(environment::injection(&self.library, self.preload));
        command.spawn().map_err(|source| failure(program, source))
    }
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
