//! Which code each kernel runs.
//!
//! CUPTI reports code by a number of its own (a context and a module), and never by the handle that the program has. A
//! kernel knows its module by that handle, and several modules can have a kernel of the same name. The two are joined in
//! three ways, in this order:
//!
//! 1. A call that loads one module and returns or takes a handle of it.
//! 2. CUPTI reports the module of a kernel within its first launch.
//! 3. Only one module has exactly the kernels that the driver lists for the handle.
//!
//! A handle can be given out again after its module was unloaded. So the capture does not store the handle, but a
//! number that is never given out twice.

use std::{
    cell::RefCell,
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex},
};

use tracesmith_cuda::{cubin, driver::FunctionHandle};
use tracesmith_wire::record::{Code, ModuleHandle};
use xxhash_rust::xxh3::xxh3_64;

use super::{PIECE_BYTES, Since, State};
use crate::guard::lock;

/// Code as CUPTI numbers it: the context and the module.
pub(super) type ModuleKey = (u32, u32);

thread_local! {
    /// The modules that were loaded, or used for the first time, in the call that this thread is in.
    static SEEN_IN_CALL: RefCell<Vec<ModuleKey>> = const { RefCell::new(Vec::new()) };
}

/// A module of the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Module {
    /// The program's handle; 0 when the driver does not say.
    pub(super) handle: u64,
    /// What the capture stores for it; 0 when it has no handle.
    pub(super) id: u64,
}

/// What CUPTI reports of modules. A callback that reports one must not wait for the capture: the driver holds a lock
/// meanwhile, and the thread that has the capture may be in a call of the driver. So it leaves the report here, and the
/// next call takes it.
#[derive(Default)]
pub(super) struct Reports {
    known: HashSet<ModuleKey>,
    waiting: Vec<Report>,
}

enum Report {
    Loaded {
        key: ModuleKey,
        hash: u128,
        code: Vec<u8>,
    },
    Unloaded(ModuleKey),
}

impl Reports {
    pub(super) fn knows(&self, key: ModuleKey) -> bool {
        self.known.contains(&key)
    }

    /// Code was loaded, or is used that was loaded before.
    pub(super) fn loaded(&mut self, key: ModuleKey, hash: u128, code: &[u8]) {
        if self.known.insert(key) {
            self.waiting.push(Report::Loaded {
                key,
                hash,
                code: code.to_owned(),
            });
        }
    }

    pub(super) fn unloaded(&mut self, key: ModuleKey) {
        self.known.remove(&key);
        self.waiting.push(Report::Unloaded(key));
    }
}

/// The call that this thread is in loads a module, or uses it for the first time.
pub(super) fn note_in_call(key: ModuleKey) {
    // A thread that is being torn down makes no more calls.
    let _ = SEEN_IN_CALL.try_with(|seen| {
        if let Ok(mut seen) = seen.try_borrow_mut()
            && !seen.contains(&key)
        {
            seen.push(key);
        }
    });
}

/// A call begins.
pub(super) fn forget_calls_before() {
    let _ = SEEN_IN_CALL.try_with(|seen| seen.try_borrow_mut().map(|mut seen| seen.clear()));
}

/// The only module that was loaded or first used in this call.
fn seen_in_call() -> Option<ModuleKey> {
    let seen = SEEN_IN_CALL.try_with(|seen| seen.try_borrow().map(|seen| seen.clone()));
    match seen.ok()?.ok()?[..] {
        [key] => Some(key),
        _ => None,
    }
}

/// Whether a module was loaded or first used in this call.
pub(super) fn has_seen_any() -> bool {
    SEEN_IN_CALL
        .try_with(|seen| seen.try_borrow().is_ok_and(|seen| !seen.is_empty()))
        .unwrap_or(false)
}

/// Code that is loaded, and the handles that stand for it.
#[derive(Default)]
pub(super) struct Modules {
    loaded: HashMap<ModuleKey, Loaded>,
    handles: HashMap<u64, Bound>,
    /// The id that was given out last.
    last_id: u64,
}

struct Loaded {
    hash: u128,
    /// Hashes of the names of its kernels, in order.
    kernels: Vec<u64>,
}

struct Bound {
    id: u64,
    /// None until it is known.
    code: Option<ModuleKey>,
}

/// What a handle is bound by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Evidence {
    /// The call returned it as the handle of what it loaded: it stands for nothing else any more.
    Returned,
    /// Code was loaded or first used in a call that took it, and maybe other code was.
    Seen,
}

impl Modules {
    /// What the capture stores for a handle.
    pub(super) fn id(&mut self, handle: u64) -> u64 {
        if handle == 0 {
            return 0;
        }
        let last_id = &mut self.last_id;
        let bound = self.handles.entry(handle).or_insert_with(|| {
            *last_id += 1;
            Bound {
                id: *last_id,
                code: None,
            }
        });
        bound.id
    }

    /// The code that a handle stands for, if that is known.
    fn code(&self, handle: u64) -> Option<ModuleKey> {
        self.handles.get(&handle).and_then(|bound| bound.code)
    }

    /// A handle stands for this code; its id if that is news. A handle of code that is still loaded keeps it, unless the
    /// driver has just given the handle out.
    fn bind(&mut self, handle: u64, key: ModuleKey, evidence: Evidence) -> Option<u64> {
        match self.code(handle) {
            Some(code) if code == key => return None,
            Some(code) if evidence == Evidence::Seen && self.loaded.contains_key(&code) => return None,
            // It was unloaded, which nobody reported.
            Some(_) => drop(self.handles.remove(&handle)),
            None => {}
        }
        let id = self.id(handle);
        self.handles.insert(handle, Bound { id, code: Some(key) });
        Some(id)
    }

    /// Code is gone. Gives the handles that do not stand for anything any more: those of this code, or, when that has
    /// none, all whose code is not known.
    fn unloaded(&mut self, key: ModuleKey) -> Vec<u64> {
        self.loaded.remove(&key);
        let own = |bound: &Bound| bound.code == Some(key);
        let has_own = self.handles.values().any(own);
        let is_gone = |bound: &Bound| {
            if has_own { own(bound) } else { bound.code.is_none() }
        };
        let gone: Vec<u64> = self
            .handles
            .iter()
            .filter(|(_, bound)| is_gone(bound))
            .map(|(handle, _)| *handle)
            .collect();
        for handle in &gone {
            self.handles.remove(handle);
        }
        gone
    }

    /// The only code of a context with exactly these kernels, by the hashes of their names. Several with the same code
    /// are told apart by none having a handle yet.
    fn with_kernels(&self, context: u32, kernels: &[u64]) -> Option<ModuleKey> {
        let taken: HashSet<ModuleKey> = self.handles.values().filter_map(|bound| bound.code).collect();
        let mut fitting = self
            .loaded
            .iter()
            .filter(|(key, loaded)| key.0 == context && !taken.contains(*key) && loaded.kernels == kernels);
        let (key, first) = fitting.next()?;
        fitting
            .all(|(_, loaded)| loaded.hash == first.hash)
            .then_some(*key)
    }
}

impl State {
    /// Takes what CUPTI has reported of modules since it was asked last.
    pub(super) fn take_reports(&mut self) {
        loop {
            let waiting = std::mem::take(&mut lock(&self.reports).waiting);
            if waiting.is_empty() {
                return;
            }
            for report in waiting {
                match report {
                    Report::Loaded { key, hash, code } => self.module_loaded(key, hash, &code),
                    Report::Unloaded(key) => self.module_unloaded(key),
                }
            }
        }
    }

    fn module_loaded(&mut self, key: ModuleKey, hash: u128, code: &[u8]) {
        self.memory.variables.loaded(code);
        let names = cubin::names(code);
        let names = if names.kernels.is_empty() {
            &names.functions
        } else {
            &names.kernels
        };
        let kernels = name_hashes(names.iter().copied());
        self.modules.loaded.insert(key, Loaded { hash, kernels });
        for (index, piece) in code.chunks(PIECE_BYTES).enumerate() {
            let record = Code {
                hash_high: (hash >> 64) as u64,
                hash_low: hash as u64,
                offset: (index * PIECE_BYTES) as u64,
                size: code.len() as u64,
                context: key.0,
                module: key.1,
            };
            self.send(&record, &[piece]);
        }
    }

    fn module_unloaded(&mut self, key: ModuleKey) {
        let gone = self.modules.unloaded(key);
        self.forget_modules(&gone);
    }

    /// Functions of code that is gone are not known any more: their handles may come back for others. Nor are those whose
    /// module the driver does not tell.
    fn forget_modules(&mut self, gone: &[u64]) {
        let is_gone = |handle: u64| handle == 0 || gone.contains(&handle);
        self.functions
            .retain(|_, function| !is_gone(function.module.handle));
        self.memory.variables.unloaded(gone);
    }

    /// The module of a function, or of what stands for one until it is loaded.
    pub(super) fn module_of(&mut self, function: FunctionHandle, context: u32) -> Module {
        forget_calls_before();
        let handle = self.driver.module(function).unwrap_or(0);
        // Asking may have loaded it.
        self.take_reports();
        if handle == 0 {
            return Module::default();
        }
        if self
            .modules
            .code(handle)
            .is_some_and(|(other, _)| other != context)
        {
            // Of a context that is gone.
            self.modules.handles.remove(&handle);
            self.forget_modules(&[handle]);
        }
        if self.modules.code(handle).is_none() {
            // Code that was loaded before anyone watched is not known, and may have the same kernels.
            match seen_in_call() {
                Some(key) => self.bind(handle, key, Evidence::Seen),
                None if self.since == Since::Start => self.bind_by_kernels(handle, context),
                None => {}
            }
        }
        Module {
            handle,
            id: self.modules.id(handle),
        }
    }

    fn bind_by_kernels(&mut self, handle: u64, context: u32) {
        let Some(functions) = self.driver.functions(handle) else {
            return;
        };
        let names: Option<Vec<Vec<u8>>> = functions
            .into_iter()
            .map(|function| self.driver.name(function))
            .collect();
        // A list with holes may be that of other code.
        let Some(names) = names.filter(|names| !names.is_empty()) else {
            return;
        };
        let kernels = name_hashes(names.iter().map(Vec::as_slice));
        if let Some(key) = self.modules.with_kernels(context, &kernels) {
            self.bind(handle, key, Evidence::Seen);
        }
    }

    /// A call has ended that loaded a module or used it for the first time, and this is its handle.
    pub(super) fn learn_module(&mut self, handle: Option<u64>, evidence: Evidence) {
        // Its code is told first.
        self.take_reports();
        if let (Some(key), Some(handle)) = (seen_in_call(), handle.filter(|handle| *handle != 0)) {
            self.bind(handle, key, evidence);
        }
    }

    /// The same, by a function of the module.
    pub(super) fn learn_module_of(&mut self, function: Option<FunctionHandle>) {
        let module = function.and_then(|function| self.driver.module(function));
        self.learn_module(module, Evidence::Seen);
    }

    fn bind(&mut self, handle: u64, key: ModuleKey, evidence: Evidence) {
        let before = self.modules.code(handle);
        let Some(id) = self.modules.bind(handle, key, evidence) else {
            return;
        };
        if before.is_some() {
            self.forget_modules(&[handle]);
        }
        let (context, module) = key;
        let record = ModuleHandle {
            handle: id,
            context,
            module,
        };
        self.send(&record, &[]);
    }
}

fn name_hashes<'n>(names: impl Iterator<Item = &'n [u8]>) -> Vec<u64> {
    let mut hashes: Vec<u64> = names.map(xxh3_64).collect();
    hashes.sort_unstable();
    hashes.dedup();
    hashes
}

/// Reports that callbacks and the capture share.
pub(super) type SharedReports = Arc<Mutex<Reports>>;

#[cfg(test)]
mod tests {
    use super::*;

    const HANDLE: u64 = 0x7f00_1000;

    fn with(codes: &[(ModuleKey, u128, &[u64])]) -> Modules {
        let mut modules = Modules::default();
        for (key, hash, kernels) in codes {
            let kernels = kernels.to_vec();
            modules.loaded.insert(*key, Loaded { hash: *hash, kernels });
        }
        modules
    }

    #[test]
    fn a_handle_that_is_given_out_again_is_another_one() {
        let mut modules = with(&[]);
        let mut ids = HashSet::new();
        for round in 0..1000 {
            let key = (1, round);
            let kernels = vec![1];
            modules.loaded.insert(key, Loaded { hash: 1, kernels });
            let id = modules.id(HANDLE);
            assert_eq!(modules.bind(HANDLE, key, Evidence::Returned), Some(id));
            assert_eq!(
                modules.bind(HANDLE, key, Evidence::Returned),
                None,
                "that is no news"
            );
            assert!(ids.insert(id), "{id} was given out before");
            assert_eq!(modules.unloaded(key), [HANDLE]);
        }
    }

    #[test]
    fn a_handle_that_the_driver_returns_for_other_code_was_given_out_again_unseen() {
        let mut modules = with(&[((1, 7), 70, &[1]), ((1, 8), 80, &[1])]);
        let first = modules.bind(HANDLE, (1, 7), Evidence::Returned).unwrap();
        assert_eq!(
            modules.bind(HANDLE, (1, 8), Evidence::Seen),
            None,
            "it is still loaded"
        );
        assert_eq!(modules.id(HANDLE), first);
        let second = modules.bind(HANDLE, (1, 8), Evidence::Returned);
        assert!(second.is_some() && second != Some(first));
    }

    #[test]
    fn handles_of_unknown_code_do_not_outlive_unknown_code() {
        let mut modules = with(&[]);
        let first = modules.id(HANDLE);
        modules.bind(2 * HANDLE, (1, 3), Evidence::Returned);
        assert_eq!(modules.unloaded((1, 9)), [HANDLE]);
        assert_ne!(modules.id(HANDLE), first);
    }

    #[test]
    fn code_is_found_by_its_kernels_if_only_one_has_them() {
        let mut modules = with(&[
            ((1, 1), 10, &[1, 2]),
            ((1, 2), 20, &[1, 3]),
            ((2, 3), 30, &[1, 2]),
        ]);
        assert_eq!(modules.with_kernels(1, &[1, 2]), Some((1, 1)));
        assert_eq!(modules.with_kernels(1, &[1]), None);
        modules.bind(HANDLE, (1, 1), Evidence::Returned);
        assert_eq!(modules.with_kernels(1, &[1, 2]), None, "it has a handle");
        let twice = with(&[((1, 1), 10, &[1]), ((1, 2), 20, &[1])]);
        assert_eq!(twice.with_kernels(1, &[1]), None, "either may be it");
        let same = with(&[((1, 1), 10, &[1]), ((1, 2), 10, &[1])]);
        assert!(same.with_kernels(1, &[1]).is_some(), "either will do");
    }
}
