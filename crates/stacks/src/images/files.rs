//! Segments of files, mapped once and never unmapped.
//!
//! An unwind can read a mapping at any time, so none is ever unmapped. A program that repeatedly loads and unloads a
//! library must not add a mapping each time. So all images of a file share its mapping.

use std::collections::HashMap;
use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::sync::{Mutex, PoisonError, TryLockError};

use rustix::mm::{MapFlags, ProtFlags};

/// Maximum number of mappings in a process. The system allows 65,530 of all kinds. Images beyond this limit are
/// unwound by frame pointer.
const MOST: usize = 4096;

const PAGE: u64 = 4096;

static MAPPED: Mutex<Option<HashMap<Part, &'static [u8]>>> = Mutex::new(None);

/// A segment of a file in its current version. A rewritten file has another identity.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Part {
    device: u64,
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
    offset: u64,
    size: u64,
}

/// Maps `size` bytes of a file at an offset. `None` if the file is missing, not readable or too short.
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
        // A launch must not wait. In a forked child it would wait forever.
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
