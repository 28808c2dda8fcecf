//! Modules: the kernels that an image holds. An image is PTX text, or a cubin that was made of one.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::cubin;
use super::kernels::Body;
use super::memory::{self, Allocation, MemoryKind, Origin};
use super::ptx::{self, Parameter};
use crate::code::Code;

pub(crate) struct Module {
    /// The number in records and callbacks.
    pub(crate) id: u32,
    /// The module as callbacks see it.
    pub(crate) cubin: Vec<u8>,
    entries: Vec<ptx::Entry>,
    variables: Arc<Vec<Variable>>,
    functions: Mutex<BTreeMap<String, Arc<Function>>>,
}

/// A variable of a module: memory that is there as long as the module is.
pub(crate) struct Variable {
    name: String,
    pub(crate) address: u64,
    pub(crate) size: usize,
}

impl Variable {
    fn new(declared: ptx::Variable, device: u32) -> Result<Self, Code> {
        let address = memory::allocate(Allocation {
            base: 0,
            size: declared.size as u64,
            kind: MemoryKind::Device,
            device,
            context_id: u32::MAX,
            origin: Origin::Variable,
        })?;
        memory::set(address, &[0], declared.size as u64);
        Ok(Self {
            name: declared.name,
            address,
            size: declared.size,
        })
    }
}

impl Drop for Variable {
    fn drop(&mut self) {
        let _ = memory::free(self.address, &[Origin::Variable]);
    }
}

/// A kernel of a module.
pub(crate) struct Function {
    pub(crate) name: CString,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) body: Body,
    /// The largest dynamic shared memory that a launch may ask for.
    pub(crate) max_dynamic_shared_bytes: AtomicI32,
    /// The handle of the module.
    pub(crate) module: usize,
    variables: Arc<Vec<Variable>>,
}

impl Module {
    pub(crate) fn load(text: &str, device: u32) -> Result<Arc<Self>, Code> {
        // The driver loads some of its own first.
        static NEXT: AtomicU32 = AtomicU32::new(23);
        if !text.contains(".version") {
            return Err(Code::INVALID_IMAGE);
        }
        let entries = ptx::entries(text);
        let names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
        let declared = ptx::variables(text);
        let variable_names: Vec<&str> = declared.iter().map(|variable| variable.name.as_str()).collect();
        let cubin = cubin::wrap(text, &names, &variable_names);
        let variables: Result<Vec<Variable>, Code> = declared
            .into_iter()
            .map(|declared| Variable::new(declared, device))
            .collect();
        Ok(Arc::new(Self {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            cubin,
            entries,
            variables: Arc::new(variables?),
            functions: Mutex::default(),
        }))
    }

    /// The kernel of that name: declared in the image, and one whose work is known.
    pub(crate) fn function(self: &Arc<Self>, name: &str) -> Result<Arc<Function>, Code> {
        let mut functions = self.functions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(function) = functions.get(name) {
            return Ok(function.clone());
        }
        let entry = self
            .entries
            .iter()
            .find(|entry| entry.name == name)
            .ok_or(Code::NOT_FOUND)?;
        let body = match Body::by_name(name).ok_or(Code::NOT_FOUND)? {
            _ if entry.is_empty => Body::Noop,
            body => body,
        };
        let function = Arc::new(Function {
            name: CString::new(name).map_err(|_| Code::INVALID_VALUE)?,
            parameters: entry.parameters.clone(),
            body,
            max_dynamic_shared_bytes: AtomicI32::new(49_152),
            module: Arc::as_ptr(self) as usize,
            variables: self.variables.clone(),
        });
        functions.insert(name.to_owned(), function.clone());
        Ok(function)
    }

    /// The variable of that name.
    pub(crate) fn variable(&self, name: &str) -> Result<&Variable, Code> {
        find(&self.variables, name)
    }

    /// The functions that someone has asked for.
    pub(crate) fn functions_in_use(&self) -> Vec<Arc<Function>> {
        let functions = self.functions.lock().unwrap_or_else(PoisonError::into_inner);
        functions.values().cloned().collect()
    }

    /// The names of all kernels that can be launched.
    pub(crate) fn names(&self) -> Vec<&str> {
        let known = self
            .entries
            .iter()
            .filter(|entry| Body::by_name(&entry.name).is_some());
        known.map(|entry| entry.name.as_str()).collect()
    }
}

fn find<'v>(variables: &'v [Variable], name: &str) -> Result<&'v Variable, Code> {
    variables
        .iter()
        .find(|variable| variable.name == name)
        .ok_or(Code::NOT_FOUND)
}

impl Function {
    /// A variable of the kernel's module.
    pub(crate) fn variable(&self, name: &str) -> Result<&Variable, Code> {
        find(&self.variables, name)
    }

    /// Bytes of the whole parameter block.
    pub(crate) fn parameter_bytes(&self) -> usize {
        self.parameters.last().map_or(0, |last| last.offset + last.size)
    }

    /// Registers of a thread: a fixed number for each kernel.
    pub(crate) fn registers(&self) -> u16 {
        16 + 2 * self.parameters.len() as u16
    }
}
