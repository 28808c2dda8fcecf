//! The functions by which a program leaves, as it finds them where we are preloaded.
//!
//! Each hands over and goes on to the next library's function of its name, which is
//! looked up when this library is loaded: here there may be no time for a lookup. What
//! the C library itself does within `exit`, `posix_spawn`, `system` or an assertion does
//! not come this way.

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    ptr,
    sync::atomic::{AtomicPtr, Ordering},
};

use super::{Leaving, flush_and_wait};

/// A function of another library.
struct Next {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

impl Next {
    const fn new(name: &'static CStr) -> Self {
        Self {
            name,
            address: AtomicPtr::new(ptr::null_mut()),
        }
    }

    fn find(&self) {
        // SAFETY: a text that ends with a zero byte.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        self.address.store(found, Ordering::Relaxed);
    }

    /// Looked up now if nobody has: a constructor of another library may run before ours, and nothing is recorded then.
    fn get(&self) -> Option<*mut c_void> {
        let mut address = self.address.load(Ordering::Relaxed);
        if address.is_null() {
            self.find();
            address = self.address.load(Ordering::Relaxed);
        }
        (!address.is_null()).then_some(address)
    }
}

/// Looks the functions up.
pub(crate) fn find() {
    for next in NEXT {
        next.find();
    }
}

/// Names a function's text.
macro_rules! text {
    ($name:ident) => {
        // SAFETY: a name and one zero byte.
        unsafe { CStr::from_bytes_with_nul_unchecked(concat!(stringify!($name), "\0").as_bytes()) }
    };
}

macro_rules! next {
    ($($place:ident $name:ident)*) => {
        $(static $place: Next = Next::new(text!($name));)*

        static NEXT: &[&Next] = &[$(&$place),*];
    };
}

next! {
    LEAVE _exit
    LEAVE_TOO _Exit
    ABORT abort
    EXECVE execve
    EXECV execv
    EXECVP execvp
    EXECVPE execvpe
    FEXECVE fexecve
    EXECVEAT execveat
    EXECL execl
    EXECLP execlp
    EXECLE execle
}

type Texts = *const *const c_char;

/// Functions that have the caller become another program.
macro_rules! become_another {
    ($($name:ident $next:ident ($($argument:ident: $type:ty),*);)*) => { $(
        /// As the C library's.
        ///
        /// # Safety
        ///
        /// As the C library's.
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($argument: $type),*) -> c_int {
            flush_and_wait(Leaving::Exec);
            let Some(next) = $next.get() else {
                return refuse();
            };
            // SAFETY: a function of this name has this type.
            let next = unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($type),*) -> c_int>(next) };
            // SAFETY: called as the program called us.
            unsafe { next($($argument),*) }
        }
    )* };
}

become_another! {
    execve EXECVE (path: *const c_char, arguments: Texts, environment: Texts);
    execv EXECV (path: *const c_char, arguments: Texts);
    execvp EXECVP (file: *const c_char, arguments: Texts);
    execvpe EXECVPE (file: *const c_char, arguments: Texts, environment: Texts);
    fexecve FEXECVE (descriptor: c_int, arguments: Texts, environment: Texts);
    execveat EXECVEAT (folder: c_int, path: *const c_char, arguments: Texts, environment: Texts, flags: c_int);
}

/// What a function does that was not found: no version of glibc lacks one, but for
/// `execveat` before 2.34, which is then no function that a program can call.
extern "C" fn refuse() -> c_int {
    // SAFETY: asks for the calling thread's word.
    let error = unsafe { libc::__errno_location() };
    // SAFETY: that word.
    unsafe { error.write(libc::ENOSYS) };
    -1
}

/// The same with arguments that nobody has counted: they are left where they are, and
/// the next function is jumped to.
#[cfg(target_arch = "x86_64")]
macro_rules! become_another_by_list {
    ($($name:ident $prepare:ident $next:ident)*) => { $(
        /// As the C library's.
        ///
        /// # Safety
        ///
        /// As the C library's.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            std::arch::naked_asm!(
                "push rdi",
                "push rsi",
                "push rdx",
                "push rcx",
                "push r8",
                "push r9",
                "push rax",
                "call {prepare}",
                "mov r11, rax",
                "pop rax",
                "pop r9",
                "pop r8",
                "pop rcx",
                "pop rdx",
                "pop rsi",
                "pop rdi",
                "jmp r11",
                prepare = sym $prepare,
            )
        }

        extern "C" fn $prepare() -> *mut c_void {
            flush_and_wait(Leaving::Exec);
            $next.get().unwrap_or(refuse as *mut c_void)
        }
    )* };
}

#[cfg(target_arch = "x86_64")]
become_another_by_list! {
    execl before_execl EXECL
    execlp before_execlp EXECLP
    execle before_execle EXECLE
}

/// As the C library's.
#[unsafe(no_mangle)]
extern "C" fn _exit(status: c_int) -> ! {
    flush_and_wait(Leaving::Exit);
    leave(&LEAVE, status)
}

/// As the C library's.
#[unsafe(no_mangle)]
extern "C" fn _Exit(status: c_int) -> ! {
    flush_and_wait(Leaving::Exit);
    leave(&LEAVE_TOO, status)
}

fn leave(next: &Next, status: c_int) -> ! {
    if let Some(next) = next.get() {
        // SAFETY: a function of this name has this type.
        let next = unsafe { std::mem::transmute::<*mut c_void, extern "C" fn(c_int)>(next) };
        next(status);
    }
    loop {
        // SAFETY: ends the process.
        unsafe { libc::syscall(libc::SYS_exit_group, status) };
    }
}

/// As the C library's.
#[unsafe(no_mangle)]
extern "C" fn abort() -> ! {
    flush_and_wait(Leaving::Abort);
    if let Some(next) = ABORT.get() {
        // SAFETY: a function of this name has this type.
        let next = unsafe { std::mem::transmute::<*mut c_void, extern "C" fn()>(next) };
        next();
    }
    loop {
        // SAFETY: sends a signal that nobody handles here.
        unsafe { libc::signal(libc::SIGABRT, libc::SIG_DFL) };
        // SAFETY: as above.
        unsafe { libc::raise(libc::SIGABRT) };
    }
}
