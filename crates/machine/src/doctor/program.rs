//! Checks whether the library can be loaded into a program.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::getxattr;

use super::Check;

/// The program header of the dynamic loader.
const PT_INTERP: u32 = 3;

/// The kind of a program file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Dynamically linked: the loader loads libraries into it.
    Dynamic,
    /// Statically linked.
    Static,
    /// A 32-bit program.
    Narrow,
    /// A script.
    Script,
    /// Something else.
    Other,
}

/// Finds a program as a shell does.
pub fn find(name: &Path, path_variable: Option<&OsStr>) -> Option<PathBuf> {
    if name.components().count() > 1 {
        return name.exists().then(|| name.to_owned());
    }
    std::env::split_paths(path_variable?)
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}

pub(super) fn checks(program: &Path) -> Vec<Check> {
    let mut checks = vec![linking(program)];
    checks.extend(privileges(program));
    checks
}

fn linking(program: &Path) -> Check {
    let (name, what) = ("program.linking", "the program");
    let found = |kind: &str| format!("{}, {kind}", program.display());
    match kind_of(program) {
        Err(error) => Check::no(
            name,
            what,
            format!("{}: {error}", program.display()),
            "name an existing program that you can read",
        ),
        Ok(Kind::Dynamic) => Check::ok(name, what, found("dynamically linked")),
        Ok(Kind::Script) => Check::ok(
            name,
            what,
            found("a script; the programs that it starts are recorded"),
        ),
        Ok(Kind::Static) => Check::warning(
            name,
            what,
            found("statically linked"),
            "link it dynamically: a static program cannot load the CUDA driver library",
        ),
        Ok(Kind::Narrow) => Check::no(
            name,
            what,
            found("32-bit"),
            "build it for 64 bits: CUDA no longer supports 32-bit programs",
        ),
        Ok(Kind::Other) => Check::warning(
            name,
            what,
            found("not a Linux executable"),
            "name the interpreter that runs it",
        ),
    }
}

/// The loader ignores libraries from the environment in a program with elevated privileges.
fn privileges(program: &Path) -> Option<Check> {
    let metadata = fs::metadata(program).ok()?;
    let by_mode = metadata.mode() & 0o6000 != 0;
    let mut nothing = [0u8; 0];
    // Most files have no capabilities, and some file systems do not support them.
    let by_capability = getxattr(program, "security.capability", &mut nothing).is_ok_and(|length| length > 0);
    (by_mode || by_capability).then(|| {
        let how = if by_mode {
            "setuid or setgid"
        } else {
            "file capabilities"
        };
        Check::warning(
            "program.privileges",
            "program privileges",
            format!("elevated ({how}): the loader ignores LD_PRELOAD"),
            "record a copy, which has normal privileges (cp drops setuid and capabilities)",
        )
    })
}

/// Reads the kind from the file header.
fn kind_of(program: &Path) -> std::io::Result<Kind> {
    let mut file = File::open(program)?;
    let mut head = Vec::new();
    Read::by_ref(&mut file).take(64).read_to_end(&mut head)?;
    if head.starts_with(b"#!") {
        return Ok(Kind::Script);
    }
    if !head.starts_with(b"\x7fELF") || head.len() < 64 {
        return Ok(Kind::Other);
    }
    if head[4] == 1 {
        return Ok(Kind::Narrow);
    }
    let u16_at = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
    let table = u64::from_le_bytes(head[32..40].try_into().expect("eight bytes"));
    let (size, count) = (u64::from(u16_at(54)), u64::from(u16_at(56)));
    for number in 0..count {
        let mut kind = [0; 4];
        file.read_exact_at(&mut kind, table.saturating_add(number * size))?;
        if u32::from_le_bytes(kind) == PT_INTERP {
            return Ok(Kind::Dynamic);
        }
    }
    Ok(Kind::Static)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::State;

    #[test]
    fn programs_are_told_by_their_head() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            fs::write(&path, bytes).unwrap();
            path
        };
        let own = std::env::current_exe().unwrap();
        assert_eq!(kind_of(&own).unwrap(), Kind::Dynamic);
        assert_eq!(kind_of(&file("s", b"#!/bin/sh\n")).unwrap(), Kind::Script);
        assert_eq!(kind_of(&file("t", b"hello")).unwrap(), Kind::Other);
        let mut narrow = [0u8; 64];
        narrow[..5].copy_from_slice(b"\x7fELF\x01");
        assert_eq!(kind_of(&file("n", &narrow)).unwrap(), Kind::Narrow);
        let mut alone = [0u8; 64];
        alone[..5].copy_from_slice(b"\x7fELF\x02");
        assert_eq!(kind_of(&file("a", &alone)).unwrap(), Kind::Static);
        assert_eq!(linking(&folder.path().join("none")).state, State::No);
    }

    #[test]
    fn programs_are_found_as_a_shell_does() {
        let path = std::env::join_paths(["/nonexistent", "/bin"]).unwrap();
        assert_eq!(find(Path::new("sh"), Some(&path)), Some(PathBuf::from("/bin/sh")));
        assert_eq!(find(Path::new("no-such-program"), Some(&path)), None);
        assert_eq!(find(Path::new("/bin/sh"), None), Some(PathBuf::from("/bin/sh")));
    }
}
