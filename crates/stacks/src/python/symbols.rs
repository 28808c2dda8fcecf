//! The interpreter in the process: its functions and types, and its image.
//!
//! All symbols come from the dynamic loader. An interpreter that is linked into the program exports them, too,
//! because extension modules need them.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ops::Range;

use crate::program::program_file;

/// The functions and types of the interpreter.
#[derive(Clone, Debug)]
pub(super) struct Symbols {
    /// Reads a thread-local variable, and takes no lock:
    /// <https://docs.python.org/3/c-api/init.html#c.PyGILState_GetThisThreadState>.
    pub(super) thread_state: unsafe extern "C" fn() -> *mut c_void,
    /// Reads a variable: <https://docs.python.org/3/c-api/init.html#c.Py_IsFinalizing>.
    pub(super) is_finalizing: unsafe extern "C" fn() -> c_int,
    /// Both read a variable: the first interpreter and the last one.
    /// <https://docs.python.org/3/c-api/init.html#c.PyInterpreterState_Main>
    pub(super) first_interpreter: unsafe extern "C" fn() -> *mut c_void,
    pub(super) last_interpreter: unsafe extern "C" fn() -> *mut c_void,
    pub(super) code_type: u64,
    pub(super) text_type: u64,
    pub(super) bytes_type: u64,
    /// Contains the table of offsets, from 3.13 on.
    pub(super) runtime: u64,
    /// The address range of the eval loop's symbol. Compilers put rare parts elsewhere. Empty if the loader does not
    /// know the size.
    pub(super) eval: Range<u64>,
    /// The image of the interpreter, if it contains nothing else. Empty if the interpreter is linked into a program.
    pub(super) own: Range<u64>,
    pub(super) version: Version,
}

/// The version of an interpreter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// 3.
    pub major: u32,
    /// 9 and up.
    pub minor: u32,
}

/// Why symbols are missing.
pub(super) enum Missing {
    /// There is no interpreter.
    All,
    /// The interpreter lacks this symbol.
    One(Version, &'static CStr),
}

impl Symbols {
    /// Finds the interpreter. Takes the loader's lock, so it does not belong on the launch path.
    pub(super) fn find() -> Result<Self, Missing> {
        let scope = Scope::find().ok_or(Missing::All)?;
        let version = scope.version().ok_or(Missing::All)?;
        let missing = |name| Missing::One(version, name);
        let find = |name: &'static CStr| scope.symbol(name).ok_or(missing(name));
        let function = |name| {
            let address = find(name)?;
            // SAFETY: all that are asked for in this way have this type, in every version.
            Ok(unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> *mut c_void>(address) })
        };
        let is_finalizing = scope
            .symbol(c"Py_IsFinalizing")
            .or_else(|| scope.symbol(c"_Py_IsFinalizing"))
            .ok_or(missing(c"Py_IsFinalizing"))?;
        let eval = find(c"_PyEval_EvalFrameDefault")? as u64;
        let symbols = Self {
            thread_state: function(THREAD_STATE)?,
            first_interpreter: function(c"PyInterpreterState_Main")?,
            last_interpreter: function(c"PyInterpreterState_Head")?,
            // SAFETY: this is its type in every version.
            is_finalizing: unsafe {
                std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> c_int>(is_finalizing)
            },
            code_type: find(c"PyCode_Type")? as u64,
            text_type: find(c"PyUnicode_Type")? as u64,
            bytes_type: find(c"PyBytes_Type")? as u64,
            runtime: find(c"_PyRuntime")? as u64,
            eval: eval..eval + size(eval),
            own: own_image(eval),
            version,
        };
        scope.keep(eval);
        Ok(symbols)
    }
}

const THREAD_STATE: &CStr = c"PyGILState_GetThisThreadState";

/// Where symbols are searched.
struct Scope(*mut c_void);

impl Scope {
    /// The global scope of the program. If a plug-in loaded an interpreter privately, that library.
    fn find() -> Option<Self> {
        let everything = Self(libc::RTLD_DEFAULT);
        if everything.symbol(THREAD_STATE).is_some() {
            return Some(everything);
        }
        let mut found = Self(std::ptr::null_mut());
        let data = (&raw mut found).cast();
        // SAFETY: the function gets a pointer to `found`, which lives until the call is over.
        unsafe { libc::dl_iterate_phdr(Some(open_interpreter), data) };
        found.symbol(THREAD_STATE)?;
        Some(found)
    }

    fn symbol(&self, name: &CStr) -> Option<*mut c_void> {
        // SAFETY: a handle of the loader, and a name that ends in a zero.
        let symbol = unsafe { libc::dlsym(self.0, name.as_ptr()) };
        (!symbol.is_null()).then_some(symbol)
    }

    fn version(&self) -> Option<Version> {
        // A constant from 3.11 on.
        if let Some(number) = self.symbol(c"Py_Version") {
            // SAFETY: an `unsigned long` that never changes.
            let number = unsafe { std::ptr::read(number.cast::<u64>()) };
            return Some(Version {
                major: (number >> 24 & 0xff) as u32,
                minor: (number >> 16 & 0xff) as u32,
            });
        }
        let function = self.symbol(c"Py_GetVersion")?;
        // SAFETY: this is its type in every version.
        let function =
            unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> *const c_char>(function) };
        // SAFETY: it needs no interpreter and no lock: it prints constants into a buffer of its own, each time the same.
        let words = unsafe { function() };
        if words.is_null() {
            return None;
        }
        // SAFETY: that buffer is never freed, and ends in a zero.
        Version::from_words(unsafe { CStr::from_ptr(words) }.to_bytes())
    }

    /// Prevents the interpreter's library from being unloaded, because its functions will be called.
    fn keep(&self, address: u64) {
        let mut about = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
        // SAFETY: it fills `about` when it returns other than 0.
        let known = unsafe { libc::dladdr(address as *const c_void, about.as_mut_ptr()) };
        // SAFETY: zeros, or filled.
        let about = unsafe { about.assume_init() };
        if known != 0 && !about.dli_fname.is_null() {
            let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
            // The program itself cannot be unloaded, and is not found by its name: nothing to do then.
            // SAFETY: a name of the loader; what is loaded already runs no code now.
            unsafe { libc::dlopen(about.dli_fname, flags) };
        }
    }
}

impl Version {
    /// Parses `3.10.13 (main, …`.
    fn from_words(words: &[u8]) -> Option<Self> {
        let words = std::str::from_utf8(words).ok()?; // not an interpreter's, then
        let mut numbers = words.split(|letter: char| !letter.is_ascii_digit());
        let mut number = || numbers.next()?.parse().ok(); // as above
        Some(Self {
            major: number()?,
            minor: number()?,
        })
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Takes the first library that is called like an interpreter's.
///
/// # Safety
///
/// `info` is what the loader gives, `data` a [`Scope`].
unsafe extern "C" fn open_interpreter(
    info: *mut libc::dl_phdr_info,
    _size: usize,
    data: *mut c_void,
) -> c_int {
    // SAFETY: the loader gives a valid pointer.
    let name = unsafe { (*info).dlpi_name };
    if name.is_null() {
        return 0;
    }
    // SAFETY: a name of the loader ends in a zero.
    let path = unsafe { CStr::from_ptr(name) }.to_bytes();
    if !file_name(path).starts_with(b"libpython3.") {
        return 0;
    }
    // SAFETY: as above; the library is loaded, so that none of its code runs now. The loader's lock can be taken twice
    // by one thread.
    let handle = unsafe { libc::dlopen(name, libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    // SAFETY: the caller of the loader gave it.
    unsafe { *data.cast::<Scope>() = Scope(handle) };
    c_int::from(!handle.is_null())
}

/// The size of a function, from the loader's symbol table. 0 if unknown.
#[cfg(target_env = "gnu")]
fn size(address: u64) -> u64 {
    const SYMBOL: c_int = 1;
    let mut about = std::mem::MaybeUninit::<libc::Dl_info>::uninit();
    let mut symbol: *mut c_void = std::ptr::null_mut();
    // SAFETY: it fills both when it returns other than 0.
    let known = unsafe {
        libc::dladdr1(
            address as *const c_void,
            about.as_mut_ptr(),
            &raw mut symbol,
            SYMBOL,
        )
    };
    if known == 0 || symbol.is_null() {
        return 0;
    }
    // SAFETY: with that flag it points to an entry of the table.
    unsafe { (*symbol.cast::<libc::Elf64_Sym>()).st_size }
}

/// Other C libraries do not report the size of a function.
#[cfg(not(target_env = "gnu"))]
fn size(_address: u64) -> u64 {
    0
}

struct Search {
    address: u64,
    found: Range<u64>,
}

/// The image that contains an address, if its file name is that of an interpreter. Otherwise other code in the image
/// would count as the interpreter's.
fn own_image(address: u64) -> Range<u64> {
    let mut search = Search { address, found: 0..0 };
    let data = (&raw mut search).cast();
    // SAFETY: the function gets a pointer to `search`, which lives until the call is over.
    unsafe { libc::dl_iterate_phdr(Some(find_image), data) };
    search.found
}

/// # Safety
///
/// `info` is what the loader gives, `data` a [`Search`].
unsafe extern "C" fn find_image(info: *mut libc::dl_phdr_info, _size: usize, data: *mut c_void) -> c_int {
    // SAFETY: the loader gives a valid pointer.
    let info = unsafe { &*info };
    // SAFETY: the caller of the loader gave it.
    let search = unsafe { &mut *data.cast::<Search>() };
    if info.dlpi_phdr.is_null() {
        return 0;
    }
    // SAFETY: the loader's table has so many entries.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    let loaded = || headers.iter().filter(|header| header.p_type == libc::PT_LOAD);
    let start = loaded().map(|header| header.p_vaddr).min().unwrap_or(0);
    let end = loaded()
        .map(|header| header.p_vaddr.saturating_add(header.p_memsz))
        .max()
        .unwrap_or(0);
    let image = info.dlpi_addr.wrapping_add(start)..info.dlpi_addr.wrapping_add(end);
    if !image.contains(&search.address) {
        return 0;
    }
    let path = if info.dlpi_name.is_null() {
        &[]
    } else {
        // SAFETY: a name of the loader ends in a zero.
        unsafe { CStr::from_ptr(info.dlpi_name) }.to_bytes()
    };
    let is_known = match path {
        [] => is_interpreter(&program_file(search.address)),
        path => is_interpreter(path),
    };
    if is_known {
        search.found = image;
    }
    1
}

/// Whether a file name is that of an interpreter.
fn is_interpreter(path: &[u8]) -> bool {
    file_name(path).starts_with(b"libpython") || file_name(path).starts_with(b"python")
}

fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_words() {
        let read = |words: &str| Version::from_words(words.as_bytes()).map(|v| (v.major, v.minor));
        assert_eq!(read("3.10.13 (main, Jan 1 2024) [GCC]"), Some((3, 10)));
        assert_eq!(read("3.9.0rc1"), Some((3, 9)));
        assert_eq!(read("three"), None);
        assert_eq!(read(""), None);
        assert_eq!(read("99999999999.1"), None);
    }

    #[test]
    fn interpreters_are_known_by_their_files() {
        assert!(is_interpreter(b"/usr/lib/libpython3.11.so.1.0"));
        assert!(is_interpreter(b"python3.12"));
        assert!(!is_interpreter(b"/opt/blender/blender"));
        assert!(
            !is_interpreter(b""),
            "a program whose file is not told may hold more than an interpreter"
        );
    }
}
