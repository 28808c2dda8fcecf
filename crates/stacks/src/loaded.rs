//! The program and its libraries, as the dynamic loader lists them.
//!
//! The only reader of `dl_iterate_phdr`. It takes the loader's lock: not for the launch path.

use std::ffi::{CStr, c_int, c_void};
use std::ops::ControlFlow;

/// One loaded program or library. It stays loaded while [`each_loaded`] visits it.
pub struct LoadedObject<'l> {
    info: &'l libc::dl_phdr_info,
}

impl LoadedObject<'_> {
    /// What the loader adds to the addresses in the file.
    pub fn bias(&self) -> u64 {
        self.info.dlpi_addr
    }

    /// Its file, under the name that was passed to the loader; empty for the program itself.
    pub fn path(&self) -> &CStr {
        if self.info.dlpi_name.is_null() {
            return c"";
        }
        // SAFETY: a name of the loader ends in a zero.
        unsafe { CStr::from_ptr(self.info.dlpi_name) }
    }

    /// Its program headers.
    pub fn headers(&self) -> &[libc::Elf64_Phdr] {
        if self.info.dlpi_phdr.is_null() {
            return &[];
        }
        // SAFETY: the loader's table has so many entries.
        unsafe { std::slice::from_raw_parts(self.info.dlpi_phdr, usize::from(self.info.dlpi_phnum)) }
    }
}

type Visit<'f> = dyn FnMut(&LoadedObject<'_>) -> ControlFlow<()> + 'f;

/// Calls `visit` for each loaded program and library, until it breaks off.
pub fn each_loaded(mut visit: impl FnMut(&LoadedObject<'_>) -> ControlFlow<()>) {
    let mut visit: &mut Visit<'_> = &mut visit;
    // SAFETY: the function gets a pointer to `visit`, which lives until the call is over.
    unsafe { libc::dl_iterate_phdr(Some(visit_one), (&raw mut visit).cast()) };
}

/// # Safety
///
/// `info` is what the loader gives, `data` a `&mut Visit`.
unsafe extern "C" fn visit_one(info: *mut libc::dl_phdr_info, _size: usize, data: *mut c_void) -> c_int {
    // SAFETY: the loader gives a valid pointer, for this call.
    let info = unsafe { info.as_ref() };
    // SAFETY: the caller of the loader gave it.
    let visit = unsafe { data.cast::<&mut Visit<'_>>().as_mut() };
    let (Some(info), Some(visit)) = (info, visit) else {
        return 0;
    };
    c_int::from(visit(&LoadedObject { info }).is_break())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_comes_first_and_a_visit_can_be_ended() {
        let mut paths = Vec::new();
        each_loaded(|object| {
            paths.push((object.path().to_owned(), object.headers().len()));
            ControlFlow::Continue(())
        });
        assert!(paths.len() > 1 && paths[0].0.is_empty() && paths[0].1 > 0);
        let mut visits = 0;
        each_loaded(|_| {
            visits += 1;
            ControlFlow::Break(())
        });
        assert_eq!(visits, 1);
    }
}
