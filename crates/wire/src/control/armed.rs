//! Where armed targets wait for a collector.
//!
//! Each has a socket named after its process in one directory of its user, which
//! processes in containers may share. The
//! directory is `$TRACESMITH_RUNTIME_DIR`, else `tracesmith` in the session's
//! runtime directory, else `tracesmith-UID` in the one for temporary files; it
//! is entered by its user only, and refused when it is not so.

use std::{
    env, fs, io,
    os::{fd::OwnedFd, unix::fs::DirBuilderExt},
    path::{Path, PathBuf},
    process, thread,
    time::{Duration, Instant},
};

use rustix::{
    fs::{FlockOperation, Mode, OFlags},
    io::Errno,
    net::{self, SocketAddrUnix, SocketFlags},
};

use crate::{
    environment,
    error::Error,
    handshake::{Credentials, Listener, check_directory, open_socket},
};

/// Names that are tried: processes of so many containers can share a directory
/// and a number.
const MAX_NAMES: u32 = 1000;

/// Names are given in microseconds; a process that holds the lock for longer is
/// stopped.
const LOCK_LIMIT: Duration = Duration::from_millis(200);

/// The directory in which targets of this environment wait, made if need be.
///
/// # Errors
///
/// When it cannot be made or others could enter it.
pub fn directory() -> Result<PathBuf, Error> {
    let path = places().swap_remove(0);
    make(&path)?;
    Ok(path)
}

fn make(directory: &Path) -> Result<(), Error> {
    match fs::DirBuilder::new()
        .mode(0o700)
        .recursive(true)
        .create(directory)
    {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(Error::system("creating the runtime directory")(error)),
    }
    check_directory(directory)
}

/// Listens for collectors, in the target.
///
/// The socket is named after the process. Where processes of several pid
/// namespaces share the directory, two of them can have the same number: the
/// second one gets a number of its own behind it (`7-1.sock`). A socket has its
/// name only once someone listens there, so one where nobody does was left by a
/// process that was killed.
///
/// # Errors
///
/// As [`directory`], or when the socket cannot be made.
pub fn listen() -> Result<Listener, Error> {
    listen_in(&directory()?, process::id())
}

/// The same in a directory of the caller's choice, made if need be.
///
/// # Errors
///
/// As [`listen`].
pub fn listen_at(directory: &Path) -> Result<Listener, Error> {
    make(directory)?;
    listen_in(directory, process::id())
}

/// The same in a directory, as the process with this number.
///
/// # Errors
///
/// When the socket cannot be made.
pub fn listen_in(directory: &Path, process: u32) -> Result<Listener, Error> {
    let mut listener = bind_unnamed(directory, process)?;
    let unnamed = listener.path().to_owned();
    // A lock that cannot be had, as on a file system without any, is no reason to be out of reach: it keeps apart only
    // processes of one number that start at the same moment.
    let lock = Lock::of(directory).ok();
    let named = name_socket(&unnamed, directory, process);
    drop(lock);
    // Linked or not, the first name has done its work.
    let _ = fs::remove_file(&unnamed);
    listener.set_path(named?);
    Ok(listener)
}

/// Listens at a name that nobody looks for.
fn bind_unnamed(directory: &Path, process: u32) -> Result<Listener, Error> {
    let mut attempt = 0;
    loop {
        let bound = Listener::bind_as(directory, &format!(".{process}-{attempt}.new"));
        attempt += 1;
        match bound {
            // Another process of this number is about to listen, or was killed when it was.
            Err(Error::System { source, .. })
                if source.kind() == io::ErrorKind::AddrInUse && attempt < MAX_NAMES => {}
            bound => return bound,
        }
    }
}

/// Gives a socket the first name that is free, or at which nobody listens.
fn name_socket(unnamed: &Path, directory: &Path, process: u32) -> Result<PathBuf, Error> {
    for attempt in 0..MAX_NAMES {
        let path = directory.join(match attempt {
            0 => format!("{process}.sock"),
            attempt => format!("{process}-{attempt}.sock"),
        });
        if path.exists() && probe(&path) == Probe::Nobody {
            // Someone else may tidy up at the same time.
            let _ = fs::remove_file(&path);
        }
        match fs::hard_link(unnamed, &path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            linked => {
                return linked.map(|()| path).map_err(Error::system("naming the socket"));
            }
        }
    }
    Err(Error::RuntimeDirectory {
        what: "every name for the socket is taken in",
        path: directory.to_owned(),
    })
}

/// The sockets of targets that wait, by process: those of this environment and
/// of the other places where one of this user may have been armed. Each target
/// is connected to for a moment: the kernel then tells its number as it is known
/// here, which in a container is not the one in the name.
pub fn waiting() -> Vec<(u32, PathBuf)> {
    let mut found: Vec<_> = places().iter().flat_map(|place| waiting_in(place)).collect();
    found.sort();
    found.dedup_by_key(|(process, _)| *process);
    found
}

/// The sockets in one directory. Only one that nobody else can enter is
/// believed. What processes that were killed left there is removed.
pub fn waiting_in(directory: &Path) -> Vec<(u32, PathBuf)> {
    let mut waiting = Vec::new();
    for (named, path) in sockets_in(directory) {
        match probe(&path) {
            Probe::Listens { process } => waiting.push((process.unwrap_or(named), path)),
            Probe::Unknown => {}
            Probe::Nobody => remove_left_behind(directory, &path),
        }
    }
    waiting.sort();
    waiting
}

/// The sockets of this environment, whoever listens there or does not: for a
/// look that is repeated often.
pub fn sockets() -> Vec<PathBuf> {
    let mut found: Vec<_> = places()
        .iter()
        .flat_map(|place| sockets_in(place))
        .map(|(_, path)| path)
        .collect();
    found.sort();
    found.dedup();
    found
}

fn sockets_in(directory: &Path) -> Vec<(u32, PathBuf)> {
    if check_directory(directory).is_err() {
        return Vec::new();
    }
    // A directory that cannot be read holds nothing for us.
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let path = entry.path();
            named_process(&path).map(|process| (process, path))
        })
        .collect()
}

/// Looks again with the lock held: another target may have taken the name.
fn remove_left_behind(directory: &Path, path: &Path) {
    if let Ok(_lock) = Lock::of(directory)
        && probe(path) == Probe::Nobody
    {
        // Someone else may tidy up at the same time.
        let _ = fs::remove_file(path);
    }
}

/// Who listens at a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Probe {
    /// A process, by its number here; none when it is not visible from here.
    Listens { process: Option<u32> },
    /// Nobody.
    Nobody,
    /// It is gone, or of another user.
    Unknown,
}

/// Neither the list of processes nor that of sockets tells: a process in a
/// container has another number, and its socket is in another list.
fn probe(path: &Path) -> Probe {
    let Ok(address) = SocketAddrUnix::new(path) else {
        return Probe::Unknown;
    };
    let Ok(socket) = open_socket(SocketFlags::NONBLOCK) else {
        return Probe::Unknown;
    };
    match net::connect(&socket, &address) {
        Ok(()) => match Credentials::of_own_user(&socket) {
            Ok(credentials) => Probe::Listens {
                process: credentials.process_id(),
            },
            Err(_) => Probe::Unknown,
        },
        // Its queue is full: it is stopped or busy.
        Err(Errno::AGAIN) => Probe::Listens { process: None },
        Err(Errno::CONNREFUSED) => Probe::Nobody,
        Err(_) => Probe::Unknown,
    }
}

/// Names are given and taken by one process at a time.
struct Lock(#[allow(dead_code, reason = "held until it is dropped")] OwnedFd);

impl Lock {
    fn of(directory: &Path) -> Result<Self, Error> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::open(directory, flags, Mode::empty())
            .map_err(Error::system("locking the runtime directory"))?;
        let deadline = Instant::now() + LOCK_LIMIT;
        loop {
            match rustix::fs::flock(&folder, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Self(folder)),
                Err(Errno::WOULDBLOCK | Errno::INTR) if Instant::now() < deadline => {
                    thread::sleep(Duration::from_millis(1));
                }
                Err(error) => return Err(Error::system("locking the runtime directory")(error)),
            }
        }
    }
}

/// The process that a socket is named after, by the number that it knows itself by.
pub fn named_process(socket: &Path) -> Option<u32> {
    let name = socket.file_name()?.to_str()?.strip_suffix(".sock")?;
    let (process, number) = name.split_once('-').unwrap_or((name, "0"));
    number.parse::<u32>().ok()?; // not a name that we give
    process.parse().ok()
}

fn places() -> Vec<PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    let named = env::var_os(environment::RUNTIME_DIRECTORY).map(PathBuf::from);
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
