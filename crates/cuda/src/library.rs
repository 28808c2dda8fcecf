//! Libraries that are opened at run time and stay open.
//!
//! They are never closed: a vendor's library leaves threads and handlers behind
//! that would then jump into unmapped memory.

use std::{
    ffi::{CString, OsStr, c_void},
    path::{Path, PathBuf},
};

use libloading::os::unix::{Library as Handle, RTLD_LOCAL, RTLD_NOW};

/// `dlopen` finds only what is loaded already.
const RTLD_NOLOAD: i32 = 4;

/// An open library.
#[derive(Debug)]
pub struct Library {
    handle: std::mem::ManuallyDrop<Handle>,
}

/// The address of a function.
#[derive(Clone, Copy, Debug)]
pub struct Address(*const c_void);

impl Address {
    /// As a pointer, never null.
    pub fn as_ptr(self) -> *const c_void {
        self.0
    }
}

impl Library {
    /// Opens the library, running its initialisers if it is new in this
    /// process.
    ///
    /// # Errors
    ///
    /// The loader's words.
    pub fn open(name: impl AsRef<OsStr>) -> Result<Self, String> {
        Self::open_with(name.as_ref(), RTLD_NOW | RTLD_LOCAL)
    }

    /// The library if this process has it already.
    pub fn loaded(name: impl AsRef<OsStr>) -> Option<Self> {
        // Not being loaded is what None says.
        Self::open_with(name.as_ref(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD).ok()
    }

    fn open_with(name: &OsStr, flags: i32) -> Result<Self, String> {
        // SAFETY: the initialisers are those of libraries that the user's
        // driver or toolkit installed, which every CUDA program runs.
        let handle = unsafe { Handle::open(Some(name), flags) };
        match handle {
            Ok(handle) => Ok(Self {
                handle: std::mem::ManuallyDrop::new(handle),
            }),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Where a function is.
    pub fn address(&self, function: &str) -> Option<Address> {
        let name = CString::new(function).ok()?;
        // SAFETY: only the address is taken; the caller states its type.
        let symbol = unsafe { self.handle.get::<*const c_void>(name.as_bytes_with_nul()) };
        // A missing function is what None says.
        let address = symbol.ok()?.into_raw().cast_const();
        (!address.is_null()).then_some(Address(address))
    }
}

/// The files mapped into this process whose name begins with `prefix`.
pub fn mapped(prefix: &str) -> Vec<PathBuf> {
    let Ok(maps) = std::fs::read_to_string("/proc/self/maps") else {
        return Vec::new();
    };
    let mut found: Vec<PathBuf> = maps
        .lines()
        .filter_map(|line| line.find('/').map(|at| Path::new(&line[at..])))
        .filter(|path| {
            path.file_name()
                .and_then(OsStr::to_str)
                .is_some_and(|name| name.starts_with(prefix))
        })
        .map(Path::to_owned)
        .collect();
    found.dedup();
    found.sort();
    found.dedup();
    found
}
