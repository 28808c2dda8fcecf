//! Where a thread's stack is: everything between its stack pointer and its upper end can be read without asking.

use std::mem::MaybeUninit;

/// The part of memory that a thread's stack may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) low: u64,
    pub(crate) high: u64,
}

impl Bounds {
    /// Nothing: for a thread whose stack is not known.
    pub(crate) const NONE: Self = Self { low: 0, high: 0 };

    /// The calling thread's. Slow for the first thread, whose limits the C library reads from a file: ask once.
    pub(crate) fn of_this_thread() -> Self {
        let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
        // SAFETY: it has no conditions.
        let thread = unsafe { libc::pthread_self() };
        // SAFETY: it fills the attributes of the thread that calls.
        let got = unsafe { libc::pthread_getattr_np(thread, attributes.as_mut_ptr()) };
        if got != 0 {
            return Self::NONE;
        }
        let mut address = std::ptr::null_mut();
        let mut size = 0;
        // SAFETY: filled by the call before, which succeeded.
        let got =
            unsafe { libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut address, &raw mut size) };
        // SAFETY: as above; not used any more.
        unsafe { libc::pthread_attr_destroy(attributes.as_mut_ptr()) };
        if got != 0 {
            return Self::NONE;
        }
        let low = address as u64;
        Self {
            low,
            high: low.saturating_add(size as u64),
        }
    }

    /// Whether a stack pointer is one of this stack's.
    #[inline]
    pub(crate) fn contains(&self, address: u64) -> bool {
        (self.low..self.high).contains(&address)
    }
}
