//! The bounds of a thread's stack. All memory between the stack pointer and the upper end can be read safely.

use std::mem::MaybeUninit;

/// The address range of a thread's stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) low: u64,
    pub(crate) high: u64,
}

impl Bounds {
    /// An empty range, for a thread whose stack is unknown.
    pub(crate) const NONE: Self = Self { low: 0, high: 0 };

    /// The bounds of the calling thread. Slow for the main thread, because the C library reads them from a file. Call
    /// it once.
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

    /// Whether a stack pointer is in this stack.
    #[inline]
    pub(crate) fn contains(&self, address: u64) -> bool {
        (self.low..self.high).contains(&address)
    }
}
