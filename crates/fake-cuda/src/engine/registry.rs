//! Handles: what C holds is the address of the object, and a stale or made-up handle is found out instead of followed.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use crate::code::Code;

/// A handle in C: an opaque pointer.
pub(crate) type Handle = usize;

pub(crate) struct Registry<T> {
    objects: RwLock<Option<HashMap<Handle, Arc<T>>>>,
}

impl<T> Registry<T> {
    pub(crate) const fn new() -> Self {
        Self {
            objects: RwLock::new(None),
        }
    }

    pub(crate) fn handle_of(object: &Arc<T>) -> Handle {
        Arc::as_ptr(object) as Handle
    }

    pub(crate) fn add(&self, object: Arc<T>) -> Handle {
        let handle = Self::handle_of(&object);
        let mut objects = self.objects.write().unwrap_or_else(PoisonError::into_inner);
        objects.get_or_insert_default().insert(handle, object);
        handle
    }

    pub(crate) fn get(&self, handle: Handle) -> Result<Arc<T>, Code> {
        let objects = self.objects.read().unwrap_or_else(PoisonError::into_inner);
        objects
            .as_ref()
            .and_then(|map| map.get(&handle))
            .cloned()
            .ok_or(Code::INVALID_HANDLE)
    }

    pub(crate) fn remove(&self, handle: Handle) -> Result<Arc<T>, Code> {
        let mut objects = self.objects.write().unwrap_or_else(PoisonError::into_inner);
        objects
            .as_mut()
            .and_then(|map| map.remove(&handle))
            .ok_or(Code::INVALID_HANDLE)
    }

    pub(crate) fn find(&self, is_wanted: impl Fn(&T) -> bool) -> Option<Arc<T>> {
        let objects = self.objects.read().unwrap_or_else(PoisonError::into_inner);
        let mut all = objects.as_ref()?.values();
        all.find(|object| is_wanted(object)).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Arc<T>> {
        let objects = self.objects.read().unwrap_or_else(PoisonError::into_inner);
        objects
            .as_ref()
            .map(|map| map.values().cloned().collect())
            .unwrap_or_default()
    }
}
