//! Redirecting what a loaded library exports.
//!
//! `dlsym` and lazy binding read a library's dynamic symbol table. Writing
//! another address into an entry, in this process's own copy of the page, makes
//! every later lookup find our function. What was bound before stays as it was.

use std::ffi::{CStr, OsStr, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::image::{self, Image, Symbol};

/// The address of one of our functions.
pub(super) struct Address(pub(super) *const c_void);

// SAFETY: the address of code.
unsafe impl Sync for Address {}

/// `STT_FUNC`.
const FUNCTION: u8 = 2;

/// Redirects `functions` in all loaded libraries whose file name begins with
/// `prefix`.
pub(super) fn redirect(prefix: &str, functions: &[(&str, Address)]) {
    image::each(|image| {
        if is_named(image.path(), prefix) {
            redirect_in(image, functions);
        }
    });
}

fn is_named(path: &CStr, prefix: &str) -> bool {
    let path = Path::new(OsStr::from_bytes(path.to_bytes()));
    let name = path.file_name().and_then(OsStr::to_str);
    name.is_some_and(|name| name.starts_with(prefix))
}

fn redirect_in(image: &Image<'_>, functions: &[(&str, Address)]) {
    for at in 0..image.symbol_count() {
        let entry = image.symbol(at);
        // SAFETY: within the table.
        let symbol = unsafe { entry.read() };
        if symbol.info & 0xf != FUNCTION || symbol.value == 0 {
            continue;
        }
        let name = image.name(&symbol);
        let Some((_, function)) = functions
            .iter()
            .find(|(wanted, _)| name.to_bytes() == wanted.as_bytes())
        else {
            continue;
        };
        // The loader adds where the library lies; the sum wraps around.
        let value = (function.0 as u64).wrapping_sub(image.base());
        let word = entry.wrapping_byte_add(std::mem::offset_of!(Symbol, value));
        // SAFETY: an aligned word of the table, of a library that stays loaded.
        unsafe { image::write_sealed(word.cast(), value) };
    }
}
