//! The environment variables that load the library into a program.

use std::{
    env,
    ffi::{OsStr, OsString},
    path::Path,
};

use tracesmith_wire::{control::armed, environment as names};

use crate::{
    error::Error,
    launch::{Injection, Preload},
};

/// How an attachable program prepares CUPTI before it is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CuptiPreinit {
    /// Nothing.
    Nothing,
    /// Initialize CUPTI when CUDA is initialized.
    Ready,
}

/// Variables that make a program attachable. The library is loaded and waits for a collector, at a socket in the
/// runtime directory.
///
/// # Errors
///
/// If the runtime directory cannot be created, or if other users can access it.
pub fn environment(
    library: &Path,
    preload: Preload,
    beforehand: CuptiPreinit,
) -> Result<Vec<(&'static str, OsString)>, Error> {
    let directory = armed::directory()?;
    let value = match beforehand {
        CuptiPreinit::Nothing => names::ATTACHABLE_IDLE,
        CuptiPreinit::Ready => names::ATTACHABLE_READY,
    };
    let mut variables = vec![(names::ATTACHABLE, OsString::from(value))];
    variables.extend(injection(library, preload, &Injection::ByDriver));
    variables.push((names::RUNTIME_DIRECTORY, directory.into()));
    Ok(variables)
}

/// Variables that load the library.
pub(crate) fn injection(
    library: &Path,
    preload: Preload,
    injection: &Injection,
) -> Vec<(&'static str, OsString)> {
    let mut variables = Vec::new();
    if *injection == Injection::ByDriver {
        variables.push((names::CUDA_INJECTION, library.into()));
    }
    variables.push((names::NVTX_INJECTION, library.into()));
    if preload == Preload::Yes {
        let before = env::var_os(names::PRELOAD);
        variables.push((names::PRELOAD, preloaded(library, before.as_deref())));
    }
    variables
}

/// Puts the library in front of the preloaded libraries, once.
fn preloaded(library: &Path, before: Option<&OsStr>) -> OsString {
    let mut value = library.as_os_str().to_owned();
    let Some(before) = before.filter(|before| !before.is_empty()) else {
        return value;
    };
    if env::split_paths(before).any(|path| path == library) {
        return before.to_owned();
    }
    value.push(":");
    value.push(before);
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_preloaded_stays_so() {
        let library = Path::new("/a/lib.so");
        let value = |before: Option<&str>| preloaded(library, before.map(OsStr::new));
        assert_eq!(value(None), "/a/lib.so");
        assert_eq!(value(Some("")), "/a/lib.so");
        assert_eq!(value(Some("/b.so")), "/a/lib.so:/b.so");
        assert_eq!(value(Some("/b.so:/a/lib.so")), "/b.so:/a/lib.so");
    }
}
