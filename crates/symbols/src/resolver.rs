//! Many addresses of many files, one file after another.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::{Extent, Function, Module, PerfMap, Sources, Unresolved};

/// Names addresses, and keeps count of those that it could not.
///
/// It holds one file at a time, for debug information takes much memory: ask in the order of files.
#[derive(Debug, Default)]
pub struct Resolver {
    sources: Sources,
    current: Option<(File, Result<Module, Unresolved>)>,
    jit: BTreeMap<PathBuf, Option<PerfMap>>,
    counts: BTreeMap<(PathBuf, String), ModuleReport>,
}

/// A program or library of a process.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct File {
    /// Where the process's files are: `/`, or the root of its container as it is seen from here.
    pub root: PathBuf,
    /// Its path there.
    pub path: PathBuf,
    /// Its build id in hexadecimal; empty when it had none.
    pub build_id: String,
}

/// How naming went for one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleReport {
    /// The file as it was recorded.
    pub path: PathBuf,
    /// Its build id in hexadecimal; empty when it had none.
    pub build_id: String,
    /// Addresses that have a name now.
    pub named: u64,
    /// Addresses that have none.
    pub unnamed: u64,
    /// How much the file says, or why nothing is known of it.
    pub extent: Result<Extent, Unresolved>,
}

impl Resolver {
    /// Looks for files there.
    pub fn new(sources: Sources) -> Self {
        Self {
            sources,
            ..Self::default()
        }
    }

    /// The functions at an address of a file: see [`Module::functions`].
    pub fn functions(&mut self, file: &File, address: u64) -> Vec<Function> {
        let is_current = self.current.as_ref().is_some_and(|(current, _)| current == file);
        let File { root, path, build_id } = file;
        if !is_current {
            // The one before is let go first.
            self.current = None;
            let module = Module::open_below(root, path, build_id, &self.sources);
            self.current = Some((file.clone(), module));
        }
        let module = self.current.as_ref().map(|(.., module)| module);
        let (functions, extent) = match module {
            Some(Ok(module)) => (module.functions(address), Ok(module.extent())),
            Some(Err(why)) => (Vec::new(), Err(*why)),
            None => (Vec::new(), Err(Unresolved::Missing)),
        };
        let key = (path.clone(), build_id.clone());
        let count = self.counts.entry(key).or_insert_with(|| ModuleReport {
            path: path.clone(),
            build_id: build_id.clone(),
            named: 0,
            unnamed: 0,
            extent,
        });
        if functions.is_empty() {
            count.unnamed += 1;
        } else {
            count.named += 1;
        }
        functions
    }

    /// The function that a process made at run time at an address; `map` is [`PerfMap::path_of`] it.
    pub fn made_at_run_time(&mut self, map: &Path, address: u64) -> Option<Function> {
        if !self.jit.contains_key(map) {
            // Most processes write none.
            self.jit.insert(map.to_owned(), PerfMap::read(map).ok());
        }
        let map = self.jit.get(map)?;
        Some(Function {
            name: map.as_ref()?.find(address)?.to_owned(),
            ..Function::default()
        })
    }

    /// The files that were asked for, by path.
    pub fn report(self) -> Vec<ModuleReport> {
        self.counts.into_values().collect()
    }
}
