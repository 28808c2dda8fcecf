//! Where the socket lies: in a directory that only its user can enter.

use std::{
    env, fs, io,
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
    process,
};

use crate::{control::armed, environment, error::Error};

/// Names tried before giving up: one is taken only by a collector that had the
/// same process id and could not clean up.
const ATTEMPTS: u32 = 1000;

/// An error unless nobody else can enter `path`.
pub(crate) fn check(path: &Path) -> Result<(), Error> {
    let wrong = |what| {
        Err(Error::RuntimeDirectory {
            what,
            path: path.to_owned(),
        })
    };
    // Not followed: a link's target could be swapped after the check.
    let metadata = fs::symlink_metadata(path).map_err(Error::system("looking at the runtime directory"))?;
    if !metadata.is_dir() {
        return wrong("the socket's place is not a directory");
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return wrong("the socket's directory belongs to another user");
    }
    if metadata.mode() & 0o077 != 0 {
        return wrong("the socket's directory is open to others");
    }
    Ok(())
}

/// A new directory of our own, below `$TRACESMITH_RUNTIME_DIR`, the session's
/// runtime directory or, where there is neither, the one for temporary files.
///
/// One that was named is used or refused: who names it shares it with a
/// container, whose programs look nowhere else.
pub(super) fn create() -> Result<PathBuf, Error> {
    let base = match env::var_os(environment::RUNTIME_DIRECTORY) {
        Some(_) => armed::directory()?,
        None => {
            let session = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
            session
                .filter(|path| check(path).is_ok())
                .unwrap_or_else(env::temp_dir)
        }
    };
    create_in(&base)
}

/// Processes of several pid namespaces can have the same number, and then take
/// the next name.
fn create_in(base: &Path) -> Result<PathBuf, Error> {
    for attempt in 0..ATTEMPTS {
        let path = base.join(format!("tracesmith-{}-{attempt}", process::id()));
        match fs::DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return check(&path).map(|()| path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(Error::system("creating the runtime directory")(error)),
        }
    }
    Err(Error::RuntimeDirectory {
        what: "every name for the socket's directory is taken below",
        path: base.to_owned(),
    })
}
