//! Parts of files, mapped once and for good.
//!
//! A walk may read a mapping at any time, so none is ever taken back. A program that loads and unloads a library again
//! and again, also at other addresses, must not add a mapping each time. So a part of a file that is mapped serves all
//! images of that file.

use std::collections::HashMap;
use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::sync::{Mutex, PoisonError, TryLockError};

use rustix::mm::{MapFlags, ProtFlags};

/// Mappings in the life of a process. The system allows 65,530, of all kinds. Images beyond are walked by their frame
/// pointers.
const MOST: usize = 4096;

const PAGE: u64 = 4096;

static MAPPED: Mutex<Option<HashMap<Part, &'static [u8]>>> = Mutex::new(None);

/// A part of a file as it is now: a file that is written anew is another one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Part {
    device: u64,
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
    offset: u64,
    size: u64,
}

/// So many bytes of a file from an offset on. None when it is not there, not for us, or shorter.
pub(super) fn map(path: &CStr, offset: u64, size: u64) -> Option<&'static [u8]> {
    let file = File::open(OsStr::from_bytes(path.to_bytes())).ok()?;
    let metadata = file.metadata().ok()?;
    if metadata.len() < offset.checked_add(size)? {
        return None;
    }
    let part = Part {
        device: metadata.dev(),
        inode: metadata.ino(),
        bytes: metadata.len(),
        changed: (metadata.mtime(), metadata.mtime_nsec()),
        offset,
        size,
    };
    let mut mapped = match MAPPED.try_lock() {
        Ok(mapped) => mapped,
        Err(TryLockError::Poisoned(mapped)) => PoisonError::into_inner(mapped),
        // A launch does not wait, and in the child of a fork it would wait for ever.
        Err(TryLockError::WouldBlock) => return map_anew(&file, offset, size),
    };
    let mapped = mapped.get_or_insert_default();
    if let Some(known) = mapped.get(&part) {
        return Some(known);
    }
    if mapped.len() >= MOST {
        return None;
    }
    let bytes = map_anew(&file, offset, size)?;
    mapped.insert(part, bytes);
    Some(bytes)
}

fn map_anew(file: &File, offset: u64, size: u64) -> Option<&'static [u8]> {
    let inside_page = offset % PAGE;
    let length = usize::try_from(size + inside_page).ok()?;
    // SAFETY: a new mapping, read-only, at a place of the system's choice.
    let mapped = unsafe {
        rustix::mm::mmap(
            std::ptr::null_mut(),
            length,
            ProtFlags::READ,
            MapFlags::PRIVATE,
            file,
            offset - inside_page,
        )
    };
    let mapped = mapped.ok()?.cast::<u8>();
    // SAFETY: so long is the mapping, and it is never taken back.
    let bytes = unsafe { std::slice::from_raw_parts(mapped, length) };
    bytes.get(inside_page as usize..)
}
