//! The library that is loaded into profiled programs. The binary contains it, and writes it to the user's runtime
//! directory when it is needed.

use std::{
    env, fs,
    hash::{DefaultHasher, Hash, Hasher},
    io::Write,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use tracesmith_wire::{control::armed, environment};

/// The path of another library to use.
const VARIABLE: &str = "TRACESMITH_INJECT_LIBRARY";

static CARRIED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libtracesmith_inject.so"));

/// The absolute path of the library. Writes the library if it does not exist.
pub(crate) fn locate() -> Result<PathBuf> {
    if let Some(path) = env::var_os(VARIABLE) {
        let path = PathBuf::from(path);
        return fs::canonicalize(&path)
            .with_context(|| format!("looking for {}, set in {VARIABLE}", path.display()));
    }
    let folder = armed::directory().context("creating the runtime directory")?;
    check_folder(&folder)?;
    let mut hasher = DefaultHasher::new();
    CARRIED.hash(&mut hasher);
    let path = folder.join(format!("libtracesmith_inject-{:016x}.so", hasher.finish()));
    if fs::read(&path).is_ok_and(|there| there == CARRIED) {
        return Ok(path);
    }
    write(&folder, &path).with_context(|| format!("writing {}", path.display()))?;
    Ok(path)
}

/// Writes to another name first: a program that starts meanwhile must not load an incomplete file.
fn write(folder: &Path, path: &Path) -> Result<()> {
    let mut file = tempfile::Builder::new().prefix(".inject").tempfile_in(folder)?;
    file.write_all(CARRIED)?;
    file.as_file()
        .set_permissions(fs::Permissions::from_mode(0o700))?;
    file.persist(path)?;
    Ok(())
}

/// The loader splits LD_PRELOAD at spaces and colons, and cannot map code from a noexec file system.
fn check_folder(folder: &Path) -> Result<()> {
    let hint = format!("hint: set {} to another folder", environment::RUNTIME_DIRECTORY);
    let name = folder.to_string_lossy();
    if name.contains([' ', ':', '\t']) {
        bail!("LD_PRELOAD cannot contain a path with a space or colon: {name}\n\n{hint}");
    }
    let forbids = rustix::fs::statvfs(folder)
        .is_ok_and(|system| system.f_flag.contains(rustix::fs::StatVfsMountFlags::NOEXEC));
    if forbids {
        bail!("the file system is mounted noexec, so no library can be loaded from it: {name}\n\n{hint}");
    }
    Ok(())
}
