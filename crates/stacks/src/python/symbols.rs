//! The interpreter in the process: its functions and types, and its image.
//!
//! All symbols come from the dynamic loader. An interpreter that is linked into the program exports them, too,
//! because extension modules need them.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ops::{ControlFlow, Range};

use crate::loaded::each_loaded;
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
        // The first library that is named like an interpreter's.
        each_loaded(|object| {
            let path = object.path();
            if !file_name(path.to_bytes()).starts_with(b"libpython3.") {
                return ControlFlow::Continue(());
            }
            // SAFETY: a name of the loader; the library is loaded, so that none of its code runs now. The loader's lock
            // can be taken twice by one thread.
            found = Self(unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) });
            if found.0.is_null() {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        });
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

/// The image that contains an address, if its file name is that of an interpreter. Otherwise other code in the image
/// would count as the interpreter's.
fn own_image(address: u64) -> Range<u64> {
    let mut own = 0..0;
    each_loaded(|object| {
        let loaded = || {
            let headers = object.headers().iter();
            headers.filter(|header| header.p_type == libc::PT_LOAD)
        };
        let start = loaded().map(|header| header.p_vaddr).min().unwrap_or(0);
        let end = loaded()
            .map(|header| header.p_vaddr.saturating_add(header.p_memsz))
            .max()
            .unwrap_or(0);
        let image = object.bias().wrapping_add(start)..object.bias().wrapping_add(end);
        if !image.contains(&address) {
            return ControlFlow::Continue(());
        }
        let is_known = match object.path().to_bytes() {
            [] => is_interpreter(&program_file(address)),
            path => is_interpreter(path),
        };
        if is_known {
            own = image;
        }
        ControlFlow::Break(())
    });
    own
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
