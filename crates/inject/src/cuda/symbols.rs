//! Redirecting what a loaded library exports.
//!
//! `dlsym` and lazy binding read a library's dynamic symbol table. Writing
//! another address into an entry, in this process's own copy of the page, makes
//! every later lookup find our function. What was bound before stays as it was.

use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The address of one of our functions.
pub(super) struct Address(pub(super) *const c_void);

// SAFETY: the address of code.
unsafe impl Sync for Address {}

/// `Elf64_Dyn`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Dynamic {
    tag: i64,
    value: u64,
}

/// `Elf64_Sym`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Symbol {
    name: u32,
    info: u8,
    other: u8,
    section: u16,
    value: u64,
    size: u64,
}

const _: () = assert!(size_of::<Symbol>() == 24);

const DT_HASH: i64 = 4;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;

/// `STT_FUNC`.
const FUNCTION: u8 = 2;

struct Request<'r> {
    prefix: &'r str,
    functions: &'r [(&'r str, Address)],
}

/// Redirects `functions` in all loaded libraries whose file name begins with
/// `prefix`.
pub(super) fn redirect(prefix: &str, functions: &[(&str, Address)]) {
    let mut request = Request { prefix, functions };
    // SAFETY: the callback gets what it expects, during the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut request).cast()) };
}

unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _size: libc::size_t, data: *mut c_void) -> c_int {
    // SAFETY: the loader's struct, for this call.
    let (Some(info), Some(request)) = (unsafe { info.as_ref() }, unsafe {
        data.cast::<Request<'_>>().as_ref()
    }) else {
        return 0;
    };
    if info.dlpi_name.is_null() {
        return 0;
    }
    // SAFETY: the loader's text.
    let path = unsafe { CStr::from_ptr(info.dlpi_name) };
    let path = Path::new(OsStr::from_bytes(path.to_bytes()));
    let ours = path
        .file_name()
        .and_then(OsStr::to_str)
        .is_some_and(|name| name.starts_with(request.prefix));
    if ours {
        // SAFETY: the loader's struct of a library that is loaded.
        unsafe { redirect_in(info, request.functions) };
    }
    0
}

/// # Safety
///
/// `info` describes a library that is loaded.
unsafe fn redirect_in(info: &libc::dl_phdr_info, functions: &[(&str, Address)]) {
    // SAFETY: the loader's array.
    let segments = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    let Some(dynamic) = segments.iter().find(|segment| segment.p_type == libc::PT_DYNAMIC) else {
        return;
    };
    let mut entry = (info.dlpi_addr + dynamic.p_vaddr) as *const Dynamic;
    let (mut hash, mut strings, mut symbols) = (0, 0, 0);
    loop {
        // SAFETY: the section ends with an entry of tag 0.
        let Dynamic { tag, value } = unsafe { entry.read() };
        match tag {
            0 => break,
            DT_HASH => hash = absolute(info, value),
            DT_STRTAB => strings = absolute(info, value),
            DT_SYMTAB => symbols = absolute(info, value),
            _ => {}
        }
        entry = entry.wrapping_add(1);
    }
    if hash == 0 || strings == 0 || symbols == 0 {
        return;
    }
    // The table's second word is the number of symbols.
    // SAFETY: the loader has read it too.
    let count = unsafe { ((hash as *const u32).wrapping_add(1)).read() } as usize;
    for at in 0..count {
        let symbol = (symbols as *mut Symbol).wrapping_add(at);
        // SAFETY: within the table.
        let Symbol {
            name,
            info: kind,
            value,
            ..
        } = unsafe { symbol.read() };
        if kind & 0xf != FUNCTION || value == 0 {
            continue;
        }
        // SAFETY: a text of the library's string table.
        let name = unsafe { CStr::from_ptr((strings + u64::from(name)) as *const c_char) };
        let Some((_, function)) = functions
            .iter()
            .find(|(wanted, _)| name.to_bytes() == wanted.as_bytes())
        else {
            continue;
        };
        // The loader adds where the library lies; the sum wraps around.
        let value = (function.0 as u64).wrapping_sub(info.dlpi_addr);
        // SAFETY: an entry of the table, of a library that stays loaded.
        unsafe { write_value(symbol, value) };
    }
}

/// glibc relocates these entries in place, other loaders do not.
fn absolute(info: &libc::dl_phdr_info, value: u64) -> u64 {
    if value < info.dlpi_addr {
        value + info.dlpi_addr
    } else {
        value
    }
}

/// # Safety
///
/// `symbol` lies in a mapped page that is private to this process.
unsafe fn write_value(symbol: *mut Symbol, value: u64) {
    const PAGE: usize = 4096;
    let start = (symbol as usize) & !(PAGE - 1);
    let end = (symbol as usize + size_of::<Symbol>()).next_multiple_of(PAGE);
    let protect = |access| {
        // SAFETY: the pages of the symbol; others in them lose nothing.
        unsafe { libc::mprotect(start as *mut c_void, end - start, access) }
    };
    // A system that forbids it leaves the library as it was.
    if protect(libc::PROT_READ | libc::PROT_WRITE) != 0 {
        return;
    }
    let word = symbol
        .wrapping_byte_add(std::mem::offset_of!(Symbol, value))
        .cast::<u64>();
    // SAFETY: writable now; one aligned word, so who looks meanwhile sees the
    // old or the new address.
    unsafe { word.write_volatile(value) };
    // It is still readable if this fails.
    protect(libc::PROT_READ);
}
