//! Modules: the kernels that an image holds. An image is PTX text, or a cubin that was made of one.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::cubin;
use super::kernels::Body;
use super::ptx::{self, Parameter};
use crate::code::Code;

pub(crate) struct Module {
    /// The number in records and callbacks.
    pub(crate) id: u32,
    /// The module as callbacks see it.
    pub(crate) cubin: Vec<u8>,
    entries: Vec<ptx::Entry>,
    functions: Mutex<BTreeMap<String, Arc<Function>>>,
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
}

impl Module {
    pub(crate) fn load(text: &str) -> Result<Arc<Self>, Code> {
        // The driver loads some of its own first.
        static NEXT: AtomicU32 = AtomicU32::new(23);
        if !text.contains(".version") {
            return Err(Code::INVALID_IMAGE);
        }
        let entries = ptx::entries(text);
        let names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
        let cubin = cubin::wrap(text, &names);
        Ok(Arc::new(Self {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            cubin,
            entries,
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
        let body = Body::by_name(name).ok_or(Code::NOT_FOUND)?;
        let function = Arc::new(Function {
            name: CString::new(name).map_err(|_| Code::INVALID_VALUE)?,
            parameters: entry.parameters.clone(),
            body,
            max_dynamic_shared_bytes: AtomicI32::new(49_152),
            module: Arc::as_ptr(self) as usize,
        });
        functions.insert(name.to_owned(), function.clone());
        Ok(function)
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

impl Function {
    /// Bytes of the whole parameter block.
    pub(crate) fn parameter_bytes(&self) -> usize {
        self.parameters.last().map_or(0, |last| last.offset + last.size)
    }

    /// Registers of a thread: a fixed number for each kernel.
    pub(crate) fn registers(&self) -> u16 {
        16 + 2 * self.parameters.len() as u16
    }
}
