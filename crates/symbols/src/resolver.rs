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
    current: Option<(PathBuf, String, Result<Module, Unresolved>)>,
    jit: BTreeMap<u32, Option<PerfMap>>,
    counts: BTreeMap<(PathBuf, String), ModuleReport>,
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
    pub fn functions(&mut self, path: &Path, build_id: &str, address: u64) -> Vec<Function> {
        let is_current = self
            .current
            .as_ref()
            .is_some_and(|(file, id, _)| file == path && id == build_id);
        if !is_current {
            // The one before is let go first.
            self.current = None;
            let module = Module::open(path, build_id, &self.sources);
            self.current = Some((path.to_owned(), build_id.to_owned(), module));
        }
        let module = self.current.as_ref().map(|(.., module)| module);
        let (functions, extent) = match module {
            Some(Ok(module)) => (module.functions(address), Ok(module.extent())),
            Some(Err(why)) => (Vec::new(), Err(*why)),
            None => (Vec::new(), Err(Unresolved::Missing)),
        };
        let key = (path.to_owned(), build_id.to_owned());
        let count = self.counts.entry(key).or_insert_with(|| ModuleReport {
            path: path.to_owned(),
            build_id: build_id.to_owned(),
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

    /// The function that a process made at run time at an address.
    pub fn made_at_run_time(&mut self, pid: u32, address: u64) -> Option<Function> {
        let map = self.jit.entry(pid).or_insert_with(|| {
            // Most processes write none.
            PerfMap::read(&PerfMap::path_of(pid)).ok()
        });
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
