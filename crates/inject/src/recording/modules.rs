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
//! A handle can be given out again after its module was unloaded. Then it counts as another one: the upper bits of what
//! the recording stores say how often it was given out before.

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

/// Handles are addresses, which leave the upper bits free.
const GENERATION_SHIFT: u32 = 57;

thread_local! {
    /// The modules that were loaded, or used for the first time, in the call that this thread is in.
    static SEEN_IN_CALL: RefCell<Vec<ModuleKey>> = const { RefCell::new(Vec::new()) };
}

/// A module of the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Module {
    /// The program's handle; 0 when the driver does not say.
    pub(super) handle: u64,
    /// What the recording stores for it: the handle, and how often it was given out before.
    pub(super) id: u64,
}

/// What CUPTI reports of modules. A callback that reports one must not wait for the recording: the driver holds a lock
/// meanwhile, and the thread that has the recording may be in a call of the driver. So it leaves the report here, and the
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
    /// How often each handle was given out before.
    generations: HashMap<u64, u64>,
}

struct Loaded {
    hash: u128,
    /// Hashes of the names of its kernels, in order.
    kernels: Vec<u64>,
}

#[derive(Default)]
struct Bound {
    /// None until it is known.
    code: Option<ModuleKey>,
}

impl Modules {
    /// What the recording stores for a handle.
    pub(super) fn id(&mut self, handle: u64) -> u64 {
        if handle == 0 {
            return 0;
        }
        self.handles.entry(handle).or_default();
        let generation = self.generations.get(&handle).copied().unwrap_or(0);
        handle | generation << GENERATION_SHIFT
    }

    /// Whether it is known which code a handle stands for.
    fn is_bound(&self, handle: u64) -> bool {
        self.handles
            .get(&handle)
            .is_some_and(|bound| bound.code.is_some())
    }

    /// A handle stands for this code; its id if that is news.
    fn bind(&mut self, handle: u64, key: ModuleKey) -> Option<u64> {
        let bound = self.handles.entry(handle).or_default();
        match bound.code {
            Some(code) if code == key => return None,
            // It was unloaded, which we were not told.
            Some(_) => *self.generations.entry(handle).or_default() += 1,
            None => {}
        }
        self.handles.insert(handle, Bound { code: Some(key) });
        Some(self.id(handle))
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
            *self.generations.entry(*handle).or_default() += 1;
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
            self.tell(&record, &[piece]);
        }
    }

    /// Functions of code that is gone are not known any more: their handles may come back for others.
    fn module_unloaded(&mut self, key: ModuleKey) {
        let gone = self.modules.unloaded(key);
        self.functions
            .retain(|_, function| !gone.contains(&function.module.handle));
        self.memory.variables.unloaded(&gone);
    }

    /// The module of a function, or of what stands for one until it is loaded.
    pub(super) fn module_of(&mut self, function: FunctionHandle, context: u32) -> Module {
        let handle = self.peek.module(function).unwrap_or(0);
        // Asking may have loaded it.
        self.take_reports();
        let module = Module {
            handle,
            id: self.modules.id(handle),
        };
        // Code that was loaded before anyone watched is not known, and may have the same kernels.
        if handle != 0 && self.since == Since::Start && !self.modules.is_bound(handle) {
            self.bind_by_kernels(handle, context);
        }
        module
    }

    fn bind_by_kernels(&mut self, handle: u64, context: u32) {
        let Some(functions) = self.peek.functions(handle) else {
            return;
        };
        let names: Vec<Vec<u8>> = functions
            .into_iter()
            .filter_map(|function| self.peek.name(function))
            .collect();
        let kernels = name_hashes(names.iter().map(Vec::as_slice));
        if let Some(key) = self.modules.with_kernels(context, &kernels) {
            self.bind(handle, key);
        }
    }

    /// A call has ended that loaded a module or used it for the first time, and this is its handle.
    pub(super) fn learn_module(&mut self, handle: Option<u64>) {
        if let (Some(key), Some(handle)) = (seen_in_call(), handle.filter(|handle| *handle != 0)) {
            self.bind(handle, key);
        }
    }

    /// The same, by a function of the module.
    pub(super) fn learn_module_of(&mut self, function: Option<FunctionHandle>) {
        let module = function.and_then(|function| self.peek.module(function));
        self.learn_module(module);
    }

    fn bind(&mut self, handle: u64, key: ModuleKey) {
        let Some(id) = self.modules.bind(handle, key) else {
            return;
        };
        let (context, module) = key;
        let record = ModuleHandle {
            handle: id,
            context,
            module,
        };
        self.tell(&record, &[]);
    }
}

fn name_hashes<'n>(names: impl Iterator<Item = &'n [u8]>) -> Vec<u64> {
    let mut hashes: Vec<u64> = names.map(xxh3_64).collect();
    hashes.sort_unstable();
    hashes.dedup();
    hashes
}

/// Reports that callbacks and the recording share.
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
        let mut modules = with(&[((1, 7), 70, &[1]), ((1, 8), 80, &[1])]);
        let first = modules.id(HANDLE);
        assert_eq!(modules.bind(HANDLE, (1, 7)), Some(first));
        assert_eq!(modules.bind(HANDLE, (1, 7)), None, "that is no news");
        assert_eq!(modules.unloaded((1, 7)), [HANDLE]);
        let second = modules.bind(HANDLE, (1, 8)).unwrap();
        assert_eq!((first, second), (HANDLE, HANDLE | 1 << GENERATION_SHIFT));
        assert_eq!(modules.id(HANDLE), second);
    }

    #[test]
    fn a_handle_that_stands_for_other_code_was_given_out_again_unseen() {
        let mut modules = with(&[]);
        let first = modules.bind(HANDLE, (1, 7)).unwrap();
        assert_ne!(modules.bind(HANDLE, (1, 8)), Some(first));
    }

    #[test]
    fn handles_of_unknown_code_do_not_outlive_unknown_code() {
        let mut modules = with(&[]);
        let first = modules.id(HANDLE);
        modules.bind(2 * HANDLE, (1, 3));
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
        modules.bind(HANDLE, (1, 1));
        assert_eq!(modules.with_kernels(1, &[1, 2]), None, "it has a handle");
        let twice = with(&[((1, 1), 10, &[1]), ((1, 2), 20, &[1])]);
        assert_eq!(twice.with_kernels(1, &[1]), None, "either may be it");
        let same = with(&[((1, 1), 10, &[1]), ((1, 2), 10, &[1])]);
        assert!(same.with_kernels(1, &[1]).is_some(), "either will do");
    }
}
