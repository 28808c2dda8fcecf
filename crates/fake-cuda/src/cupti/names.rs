//! Kernel names in records: pointers that stay good for the life of the process, one for each name.

use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::sync::{Mutex, PoisonError};

static KEPT: Mutex<Option<HashMap<CString, u64>>> = Mutex::new(None);

/// The address of a copy of `name` that is never freed.
pub(crate) fn kept(name: &CStr) -> u64 {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let kept = kept.get_or_insert_default();
    if let Some(&address) = kept.get(name) {
        return address;
    }
    let address = name.to_owned().into_raw() as u64;
    kept.insert(name.to_owned(), address);
    address
}
