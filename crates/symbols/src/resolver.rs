//! Resolves many addresses in many files, one file after another.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::{Extent, Function, Module, PerfMap, Sources, Unresolved};

/// Resolves addresses, and counts those that it could not resolve.
///
/// It keeps one file open at a time, because debug information needs much memory. So resolve addresses file by file.
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
    /// The root of the process's files: `/`, or the root of its container as seen from here.
    pub root: PathBuf,
    /// The path below the root.
    pub path: PathBuf,
    /// The build ID in hexadecimal. Empty if there is none.
    pub build_id: String,
}

/// The result for one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleReport {
    /// The recorded path.
    pub path: PathBuf,
    /// The build ID in hexadecimal. Empty if there is none.
    pub build_id: String,
    /// Number of resolved addresses.
    pub named: u64,
    /// Number of unresolved addresses.
    pub unnamed: u64,
    /// How much the file reveals, or why it could not be resolved.
    pub extent: Result<Extent, Unresolved>,
}

impl Resolver {
    /// Searches files in these sources.
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
            // Close the previous file first.
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

    /// The JIT-compiled function at an address. `map` is the path from [`PerfMap::path_of`].
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

    /// The results of all files, by path.
    pub fn report(self) -> Vec<ModuleReport> {
        self.counts.into_values().collect()
    }
}
