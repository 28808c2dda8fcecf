//! Symbols of files that were read before.
//!
//! To read the symbols of a large library takes seconds, and a program is recorded again and again. So what was read is
//! kept in the user's cache folder, by build ID:
//!
//! - of a file without debug information, the whole symbol table
//! - of a file with debug information, the addresses that were resolved
//!
//! A lookup gives the same names with and without the cache. An entry is about a build ID and about the files from which
//! it was read, with their sizes and times: it is ignored if one of them has changed or if there are others now.
//!
//! - [`entry`]: what one file of the cache contains.
//! - [`folder`]: where they are.

pub(crate) mod entry;
mod folder;

use std::{collections::BTreeMap, env, ffi::OsStr, fs::File, path::PathBuf};

use entry::{Entry, Form, Identity, Row, encode};
use folder::Folder;

use crate::{Extent, Function, Module};

/// The variable that turns it off.
const VARIABLE: &str = "TRACESMITH_CACHE";

/// The sum of all entries.
const LIMIT_BYTES: u64 = 512 << 20;

/// Resolved addresses of one file. A file with more of them keeps the newest.
const MAX_RESOLVED: usize = 1 << 18;

/// The cache of a user.
#[derive(Clone, Debug)]
pub struct Cache(Folder);

impl Cache {
    /// A cache in a folder, with a limit for the sum of its files. The folder need not exist.
    pub fn new(folder: PathBuf, limit_bytes: u64) -> Self {
        Self(Folder::new(folder, limit_bytes))
    }

    /// The one of this user: below `XDG_CACHE_HOME` or `~/.cache`. None with `TRACESMITH_CACHE=off`, or without a home.
    pub fn of_user() -> Option<Self> {
        let variable = |name| env::var_os(name).filter(|value| !value.is_empty());
        if variable(VARIABLE).as_deref() == Some(OsStr::new("off")) {
            return None;
        }
        let folder = variable("XDG_CACHE_HOME")
            .map(PathBuf::from)
            .filter(|folder| folder.is_absolute())
            .or_else(|| Some(PathBuf::from(variable("HOME")?).join(".cache")))
            .filter(|folder| folder.is_absolute())?;
        Some(Self::new(folder.join("tracesmith/symbols"), LIMIT_BYTES))
    }

    pub(crate) fn load(&self, identity: &Identity) -> Option<Entry<File>> {
        Entry::open(self.0.open(&identity.build_id)?, identity)
    }

    /// Keeps a whole file that was opened. Nothing of one with debug information, which is resolved address by address.
    pub(crate) fn keep_table(&self, identity: &Identity, module: &Module) {
        if module.extent() == Extent::Lines {
            return;
        }
        let rows = module.symbols().rows().map(|(start, size, name)| Row {
            start,
            size,
            functions: vec![Function {
                name: name.to_owned(),
                ..Function::default()
            }],
        });
        if let Some(entry) = encode(identity, Form::Table, module.extent(), module.code(), rows) {
            // It is read again the next time.
            let _ = self.0.write(&identity.build_id, &entry);
        }
    }

    /// Keeps addresses that were resolved, beside those that were resolved earlier.
    pub(crate) fn keep_resolved(
        &self,
        identity: &Identity,
        module: &Module,
        mut resolved: BTreeMap<u64, Vec<Function>>,
    ) {
        let earlier = self.load(identity).map(Entry::into_rows).unwrap_or_default();
        for row in earlier {
            if resolved.len() >= MAX_RESOLVED {
                break;
            }
            resolved.entry(row.start).or_insert(row.functions);
        }
        // An entry knows of addresses outside of the code that they have no function.
        let code = module.code();
        let is_code = |address: &u64| code.is_empty() || code.iter().any(|code| code.contains(address));
        let in_code = resolved.into_iter().filter(|(address, _)| is_code(address));
        let rows = in_code.map(|(start, functions)| Row {
            start,
            size: 1,
            functions,
        });
        if let Some(entry) = encode(identity, Form::Resolved, module.extent(), module.code(), rows) {
            // They are resolved again the next time.
            let _ = self.0.write(&identity.build_id, &entry);
        }
    }
}
