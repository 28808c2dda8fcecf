//! Finds the image at an address without the loader's lock.
//!
//! <https://www.gnu.org/software/libc/manual/html_node/Dynamic-Linker-Introspection.html> describes
//! `_dl_find_object`. The unwinder for C++ exceptions uses it for the same reason. It is looked up at run time,
//! because older C libraries lack it.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::{MaybeUninit, transmute};
use std::sync::OnceLock;

use super::ListedImage;

/// `struct dl_find_object`.
#[repr(C)]
struct Object {
    flags: u64,
    map_start: *const u8,
    map_end: *const u8,
    link_map: *const LinkMap,
    eh_frame: *const c_void,
    reserved: [u64; 7],
}

const _: () = assert!(size_of::<Object>() == 96);

/// The beginning of `struct link_map`.
#[repr(C)]
struct LinkMap {
    bias: u64,
    name: *const c_char,
}

type FindObject = unsafe extern "C" fn(address: *const c_void, result: *mut Object) -> c_int;

fn find_object() -> Option<FindObject> {
    static FUNCTION: OnceLock<Option<FindObject>> = OnceLock::new();
    *FUNCTION.get_or_init(|| {
        // SAFETY: a name that ends in a zero.
        let symbol = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_dl_find_object".as_ptr()) };
        // SAFETY: the C library's function of this name has this type.
        (!symbol.is_null()).then(|| unsafe { transmute::<*mut c_void, FindObject>(symbol) })
    })
}

/// The image that contains an address on the calling thread's stack.
pub(super) fn find(address: u64) -> Option<ListedImage> {
    let find = find_object()?;
    let mut object = MaybeUninit::<Object>::zeroed();
    // SAFETY: it fills the result, and looks at nothing at the address.
    if unsafe { find(address as *const c_void, object.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: filled by the call, and any bytes would do.
    let object = unsafe { object.assume_init() };
    // SAFETY: a function of the image is on our stack: the loader's entry for it is alive.
    let map = unsafe { object.link_map.as_ref() }?;
    let path = if map.name.is_null() {
        CString::default()
    } else {
        // SAFETY: a name of the loader ends in a zero.
        unsafe { CStr::from_ptr(map.name) }.to_owned()
    };
    // SAFETY: the image begins with its file's header, which the loader mapped to read it.
    let header = unsafe { object.map_start.cast::<libc::Elf64_Ehdr>().as_ref() }?;
    if header.e_ident.get(..4) != Some(b"\x7fELF")
        || usize::from(header.e_phentsize) != size_of::<libc::Elf64_Phdr>()
    {
        return None;
    }
    // SAFETY: the table stands where the header says, in the image's first segment.
    let table = unsafe { object.map_start.add(usize::try_from(header.e_phoff).ok()?) };
    // SAFETY: as above; it has so many entries.
    let headers = unsafe { std::slice::from_raw_parts(table.cast(), usize::from(header.e_phnum)) };
    // SAFETY: the image is mapped as long as the function on our stack has not returned.
    unsafe { ListedImage::read(map.bias, path, headers) }
}
