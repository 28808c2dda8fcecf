//! Knowing, without a system call, that this process is a fork's child.
//!
//! A child without `exec` (PyTorch's data loaders are such) inherits the
//! mapping and a copy of the producer: two producers on a ring for one. So a
//! producer keeps a page that the kernel wipes on fork (`MADV_WIPEONFORK`,
//! Linux 4.14) and looks at it with every push: one load of a line that nobody
//! else writes. In the child the producer then does nothing at all.
#![allow(unsafe_code, reason = "maps one page and reads one word of it")]

use std::{
    ptr::{self, NonNull},
    sync::atomic::{AtomicU32, Ordering},
};

use rustix::mm::{self, Advice, MapFlags, ProtFlags};

use crate::error::Error;

const PAGE_BYTES: usize = 4096;
const ORIGINAL: u32 = 1;

/// Tells the process that made it from its children.
pub(crate) enum ForkGuard {
    /// The ring's memory is not shared with children: they get copies.
    Unneeded,
    /// A page that reads as zeros in a child.
    Watching(NonNull<AtomicU32>),
}

// SAFETY: the page is ours until drop, and its one word is an atomic.
unsafe impl Send for ForkGuard {}

impl ForkGuard {
    /// A guard for this process.
    pub(crate) fn new() -> Result<Self, Error> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice touches no
        // memory that exists.
        let page = unsafe { mm::mmap_anonymous(ptr::null_mut(), PAGE_BYTES, access, MapFlags::PRIVATE) }
            .map_err(Error::system("mapping the fork guard"))?;
        let Some(word) = NonNull::new(page.cast::<AtomicU32>()) else {
            return Err(Error::NotAsAnnounced {
                what: "the fork guard was mapped at address zero",
            });
        };
        let guard = Self::Watching(word);
        // SAFETY: the page was mapped above and holds nothing yet.
        unsafe { mm::madvise(page, PAGE_BYTES, Advice::LinuxWipeOnFork) }
            .map_err(Error::system("arming the fork guard"))?;
        if let Some(word) = guard.word() {
            word.store(ORIGINAL, Ordering::Relaxed);
        }
        Ok(guard)
    }

    /// Whether this is still the process that made the guard.
    #[inline]
    pub(crate) fn is_original(&self) -> bool {
        self.word()
            .is_none_or(|word| word.load(Ordering::Relaxed) == ORIGINAL)
    }

    #[inline]
    fn word(&self) -> Option<&AtomicU32> {
        match self {
            Self::Unneeded => None,
            // SAFETY: the page is aligned, holds an atomic, and is unmapped only
            // when self is dropped.
            Self::Watching(word) => Some(unsafe { word.as_ref() }),
        }
    }
}

impl Drop for ForkGuard {
    fn drop(&mut self) {
        if let Self::Watching(word) = self {
            // SAFETY: mapped in `new`, and no reference outlives self.
            let unmapped = unsafe { mm::munmap(word.as_ptr().cast(), PAGE_BYTES) };
            // It fails only for arguments that mmap would have refused.
            debug_assert!(unmapped.is_ok());
        }
    }
}
