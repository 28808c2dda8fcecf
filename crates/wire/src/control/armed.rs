//! Where armed targets wait for a collector.
//!
//! Each has a socket named after its process in one directory of its user. The
//! directory is `$TRACESMITH_RUNTIME_DIR`, else `tracesmith` in the session's
//! runtime directory, else `tracesmith-UID` in the one for temporary files; it
//! is entered by its user only, and refused when it is not so.

use std::{
    env, fs, io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    process,
};

use crate::{
    error::Error,
    handshake::{Listener, check_directory},
};

/// The variable that names the directory.
pub const RUNTIME_DIRECTORY_VARIABLE: &str = "TRACESMITH_RUNTIME_DIR";

/// The variable that arms a process. Its value is [`ASLEEP`] or [`READY`].
pub const VARIABLE: &str = "TRACESMITH_ARMED";

/// CUPTI is left alone until the process is recorded.
pub const ASLEEP: &str = "1";

/// CUPTI is made ready when the process initialises CUDA.
pub const READY: &str = "ready";

/// The directory in which targets of this environment wait, made if need be.
///
/// # Errors
///
/// When it cannot be made or others could enter it.
pub fn directory() -> Result<PathBuf, Error> {
    let path = places().swap_remove(0);
    match fs::DirBuilder::new().mode(0o700).recursive(true).create(&path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(Error::system("creating the runtime directory")(error)),
    }
    check_directory(&path)?;
    Ok(path)
}

/// Listens for collectors, in the target.
///
/// # Errors
///
/// As [`directory`], or when the socket cannot be made.
pub fn listen() -> Result<Listener, Error> {
    let directory = directory()?;
    let name = format!("{}.sock", process::id());
    // A process of the same number that was killed could not clean up.
    let _ = fs::remove_file(directory.join(&name));
    Listener::bind_as(&directory, &name)
}

/// The sockets of targets that wait, by process: those of this environment and
/// of the other places where one of this user may have been armed.
pub fn waiting() -> Vec<(u32, PathBuf)> {
    let mut found: Vec<_> = places().iter().flat_map(|place| waiting_in(place)).collect();
    found.sort();
    found.dedup_by_key(|(process, _)| *process);
    found
}

/// The sockets in one directory. Only one that nobody else can enter is
/// believed. What processes that were killed left there is removed.
pub fn waiting_in(directory: &Path) -> Vec<(u32, PathBuf)> {
    if check_directory(directory).is_err() {
        return Vec::new();
    }
    // A directory that cannot be read holds nothing for us.
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let sockets = entries.filter_map(|entry| {
        let path = entry.path();
        process_of(&path).map(|process| (process, path))
    });
    let mut waiting = Vec::new();
    for (process, path) in sockets {
        if is_left_behind(process, &path) {
            // Someone else may tidy up at the same time.
            let _ = fs::remove_file(&path);
        } else {
            waiting.push((process, path));
        }
    }
    waiting
}

/// Whether a process was killed and could not remove its socket: there is no such
/// process, and nobody listens there.
fn is_left_behind(process: u32, socket: &Path) -> bool {
    if Path::new("/proc").join(process.to_string()).exists() {
        return false;
    }
    // Without the list of sockets it is left where it is.
    let listening = fs::read_to_string("/proc/net/unix");
    listening.is_ok_and(|sockets| {
        !sockets
            .lines()
            .any(|line| line.ends_with(&*socket.to_string_lossy()))
    })
}

fn process_of(socket: &Path) -> Option<u32> {
    let name = socket.file_name()?.to_str()?;
    name.strip_suffix(".sock")?.parse().ok()
}

fn places() -> Vec<PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    let named = env::var_os(RUNTIME_DIRECTORY_VARIABLE).map(PathBuf::from);
    let session = env::var_os("XDG_RUNTIME_DIR").map(|path| PathBuf::from(path).join("tracesmith"));
    let session = session.filter(|path| {
        path.parent()
            .is_some_and(|parent| check_directory(parent).is_ok())
    });
    let usual = PathBuf::from(format!("/run/user/{user}/tracesmith"));
    let temporary = env::temp_dir().join(format!("tracesmith-{user}"));
    let usual = usual.parent().is_some_and(Path::exists).then_some(usual);
    let mut places: Vec<PathBuf> = [named, session, usual].into_iter().flatten().collect();
    places.push(temporary);
    places
}
