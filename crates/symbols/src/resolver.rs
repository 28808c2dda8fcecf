//! Resolves many addresses in many files, one file after another.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::cache::{
    Cache,
    entry::{Entry, Identity},
};
use crate::{Extent, Function, Module, PerfMap, Sources, Unresolved};

/// Resolves addresses, and counts those that it could not resolve.
///
/// It keeps one file open at a time, because debug information needs much memory. So resolve addresses file by file.
#[derive(Debug, Default)]
pub struct Resolver {
    sources: Sources,
    cache: Option<Cache>,
    current: Option<Current>,
    jit: BTreeMap<PathBuf, Option<PerfMap>>,
    counts: BTreeMap<(PathBuf, String), ModuleReport>,
}

/// The file whose addresses are resolved.
#[derive(Debug)]
struct Current {
    file: File,
    /// What the cache is asked by. None for a file that is not cached.
    identity: Option<Identity>,
    cached: Option<Entry<fs::File>>,
    /// Opened if the cache does not have an address.
    module: Option<Result<Module, Unresolved>>,
    /// Resolved by the file.
    resolved: BTreeMap<u64, Vec<Function>>,
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

    /// Looks files up in this cache, and keeps there what it reads. Names are the same as without it.
    #[must_use]
    pub fn with_cache(mut self, cache: Option<Cache>) -> Self {
        self.cache = cache;
        self
    }

    /// The functions at an address of a file: see [`Module::functions`].
    pub fn functions(&mut self, file: &File, address: u64) -> Vec<Function> {
        if self.current.as_ref().is_none_or(|current| current.file != *file) {
            // Close the previous file first.
            self.finish();
            self.current = Some(Current::new(file, &self.sources, self.cache.as_ref()));
        }
        let found = self.current.as_mut().map(|current| {
            let known = current.known(address);
            known.unwrap_or_else(|| current.resolve(address, &self.sources, self.cache.as_ref()))
        });
        let (functions, extent) = found.unwrap_or((Vec::new(), Err(Unresolved::Missing)));
        let File { path, build_id, .. } = file;
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

    /// Closes the file, and keeps what was resolved.
    fn finish(&mut self) {
        let Some(current) = self.current.take() else {
            return;
        };
        if let (Some(cache), Some(identity), Some(Ok(module))) =
            (&self.cache, &current.identity, &current.module)
            && module.extent() == Extent::Lines
            && !current.resolved.is_empty()
        {
            cache.keep_resolved(identity, module, current.resolved);
        }
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
    pub fn report(mut self) -> Vec<ModuleReport> {
        self.finish();
        self.counts.into_values().collect()
    }
}

/// The functions at an address, and how much their file reveals.
type Found = (Vec<Function>, Result<Extent, Unresolved>);

impl Current {
    fn new(file: &File, sources: &Sources, cache: Option<&Cache>) -> Self {
        let File { root, path, build_id } = file;
        let identity = cache.filter(|_| !build_id.is_empty()).map(|_| Identity {
            build_id: build_id.clone(),
            key: sources.key(root, path, build_id),
        });
        Self {
            file: file.clone(),
            cached: cache
                .zip(identity.as_ref())
                .and_then(|(cache, identity)| cache.load(identity)),
            identity,
            module: None,
            resolved: BTreeMap::new(),
        }
    }

    /// What the cache has.
    fn known(&mut self, address: u64) -> Option<Found> {
        let cached = self.cached.as_mut()?;
        let functions = cached.functions(address)?;
        Some((functions, Ok(cached.extent())))
    }

    /// What the file has.
    fn resolve(&mut self, address: u64, sources: &Sources, cache: Option<&Cache>) -> Found {
        let File { root, path, build_id } = &self.file;
        if self.module.is_none() {
            let module = Module::open_below(root, path, build_id, sources);
            if module.as_ref().is_ok_and(|module| !module.is_cacheable()) {
                self.identity = None;
            }
            if let (Ok(module), Some(cache), Some(identity)) = (&module, cache, &self.identity) {
                cache.keep_table(identity, module);
            }
            self.module = Some(module);
        }
        match &self.module {
            Some(Ok(module)) => {
                let functions = module.functions(address);
                if self.identity.is_some() && module.extent() == Extent::Lines {
                    self.resolved.insert(address, functions.clone());
                }
                (functions, Ok(module.extent()))
            }
            Some(Err(why)) => (Vec::new(), Err(*why)),
            None => (Vec::new(), Err(Unresolved::Missing)),
        }
    }
}
