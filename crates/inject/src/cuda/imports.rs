//! Where a loaded library keeps the addresses of functions that it calls in others.

use std::ffi::c_void;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use super::image::{self, Image};

/// `GLOB_DAT` and `JUMP_SLOT`: the loader writes a function's address there.
#[cfg(target_arch = "x86_64")]
const ADDRESSES: [u32; 2] = [6, 7];
#[cfg(target_arch = "aarch64")]
const ADDRESSES: [u32; 2] = [1025, 1026];

/// The word through which a library calls a function.
pub(super) struct Slot {
    word: &'static AtomicU64,
    is_sealed: bool,
    /// The function, or 0 while the library has not called it: then what the word holds looks it up.
    bound: u64,
}

impl Slot {
    /// The function that the library calls, if it has been looked up.
    pub(super) fn bound(&self) -> Option<*const c_void> {
        (self.bound != 0).then_some(self.bound as *const c_void)
    }

    /// Has the library call another function while `act` runs, on all threads. However `act` ends, the library calls its
    /// own again after it.
    pub(super) fn divert<T>(&self, to: *const c_void, act: impl FnOnce() -> T) -> T {
        let _restore = Restore {
            slot: self,
            before: self.word.load(Ordering::Acquire),
        };
        self.write(to as u64);
        act()
    }

    fn write(&self, value: u64) {
        if self.is_sealed {
            // SAFETY: a word of a library that stays loaded, which the loader has sealed.
            unsafe { image::write_sealed(self.word.as_ptr(), value) };
        } else {
            self.word.store(value, Ordering::Release);
        }
    }
}

/// Writes what a word held before.
struct Restore<'s> {
    slot: &'s Slot,
    before: u64,
}

impl Drop for Restore<'_> {
    fn drop(&mut self) {
        self.slot.write(self.before);
    }
}

/// The same, and `R_X86_64_64` or `R_AARCH64_ABS64`: a variable that is initialised with a function's address.
#[cfg(target_arch = "x86_64")]
const ALL_ADDRESSES: [u32; 3] = [1, ADDRESSES[0], ADDRESSES[1]];
#[cfg(target_arch = "aarch64")]
const ALL_ADDRESSES: [u32; 3] = [257, ADDRESSES[0], ADDRESSES[1]];

/// A function of a library, and the one that is to be called instead of it.
pub(super) struct Redirection {
    pub(super) name: &'static str,
    pub(super) from: u64,
    pub(super) to: u64,
}

/// Has all loaded libraries call other functions. A word is written only if it holds the address of the function that
/// its relocation names. Returns where the libraries lie that call any of them, in the one way or the other.
///
/// A word that the loader has not filled yet is left to it: it reads the symbol tables, see [`symbols`](super::symbols).
pub(super) fn redirect(redirections: &[Redirection]) -> Vec<Range<u64>> {
    let mut callers = Vec::new();
    image::each(|image| {
        let exports_them = redirections
            .iter()
            .any(|redirection| image.holds(redirection.from) || image.holds(redirection.to));
        if !exports_them && redirect_in(image, redirections) > 0 {
            callers.push(image.extent());
        }
    });
    callers
}

/// How many words of a library call ours now.
fn redirect_in(image: &Image<'_>, redirections: &[Redirection]) -> usize {
    let mut redirected = 0;
    for relocation in image.relocations() {
        if !ALL_ADDRESSES.contains(&(relocation.info as u32)) {
            continue;
        }
        let address = image.base() + relocation.offset;
        // A word in a segment for code or constants cannot be written to: such a library keeps calling CUPTI itself.
        if !address.is_multiple_of(8) || !image.writable().any(|range| range.contains(&address)) {
            continue;
        }
        // SAFETY: an aligned word of a library that stays loaded. The loader and we write it at once.
        let word = unsafe { AtomicU64::from_ptr(address as *mut u64) };
        let held = word.load(Ordering::Acquire);
        let Some(redirection) = redirections
            .iter()
            .find(|redirection| redirection.from == held || redirection.to == held)
        else {
            continue;
        };
        // SAFETY: the loader looked this symbol up in the table.
        let symbol = unsafe { image.symbol((relocation.info >> 32) as usize).read() };
        if image.name(&symbol).to_bytes() != redirection.name.as_bytes() {
            continue;
        }
        let slot = Slot {
            word,
            is_sealed: image.is_sealed(address),
            bound: held,
        };
        if held == redirection.from {
            slot.write(redirection.to);
        }
        redirected += usize::from(word.load(Ordering::Acquire) == redirection.to);
    }
    redirected
}

/// Through which words the library that holds `function` calls these others; none for what it does not call.
pub(super) fn slots<const N: usize>(function: *const c_void, names: [&str; N]) -> [Option<Slot>; N] {
    let mut found = [const { None }; N];
    image::each(|image| {
        if image.holds(function as u64) {
            for (slot, name) in found.iter_mut().zip(names) {
                *slot = slot_of(image, name);
            }
        }
    });
    found
}

fn slot_of(image: &Image<'_>, name: &str) -> Option<Slot> {
    let relocation = image.relocations().find(|relocation| {
        // SAFETY: the loader looked this symbol up in the table.
        let symbol = || unsafe { image.symbol((relocation.info >> 32) as usize).read() };
        ADDRESSES.contains(&(relocation.info as u32)) && image.name(&symbol()).to_bytes() == name.as_bytes()
    })?;
    let address = image.base() + relocation.offset;
    // SAFETY: an aligned word of a library that stays loaded. The loader and we write it at once.
    let word = unsafe { AtomicU64::from_ptr(address as *mut u64) };
    let held = word.load(Ordering::Acquire);
    Some(Slot {
        word,
        is_sealed: image.is_sealed(address),
        bound: if image.holds(held) { 0 } else { held },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    extern "C" fn none() -> libc::pid_t {
        -7
    }

    /// This test is a program whose slots are sealed.
    #[test]
    fn what_is_diverted_is_called_meanwhile_and_not_after() {
        let here = what_is_diverted_is_called_meanwhile_and_not_after as *const c_void;
        let [slot, absent] = slots(here, ["getppid", "no_such_function"]);
        assert!(absent.is_none());
        let parent = || {
            // SAFETY: asks the system.
            unsafe { libc::getppid() }
        };
        let slot = slot.unwrap();
        assert!(slot.is_sealed && slot.bound().is_some());
        let before = parent();
        assert_eq!(slot.divert(none as *const c_void, parent), -7);
        assert_eq!(parent(), before);
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            slot.divert(none as *const c_void, || panic!("within"));
        }));
        assert!(panicked.is_err());
        assert_eq!(parent(), before, "also after a panic");
    }
}
