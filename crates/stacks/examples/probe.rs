//! A library for interpreters under test: called from Python by ctypes, it takes the stack that it was called from and
//! writes it down as text. `tests/python.rs` compares that with what Python says itself; the bench of stacks times it.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(
    unsafe_code,
    clippy::missing_panics_doc,
    reason = "called by C with raw pointers; a panic ends the test"
)]

use std::cell::RefCell;
use std::ffi::c_void;
use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use tracesmith_stacks::{
    Images, InterpreterFrames, MixedFrame, NativeStack, Python, PythonFrame, PythonWalk, PythonWalker, Walker,
};

/// More than the deepest test has.
const ROOM: usize = 1 << 15;
/// Between the parts of a frame, and behind a frame: odd file names have neither.
const PART: char = '\u{1f}';
const FRAME: char = '\u{1e}';

static PYTHON: OnceLock<Arc<Python>> = OnceLock::new();

struct Thread {
    python: PythonWalker,
    native: Walker,
    images: Images,
    frames: Vec<PythonFrame>,
}

thread_local! {
    static THREAD: RefCell<Option<Thread>> = const { RefCell::new(None) };
}

/// The interpreter, or words that say why there is none.
fn python() -> Result<Arc<Python>, String> {
    if let Some(python) = PYTHON.get() {
        return Ok(Arc::clone(python));
    }
    let found = Python::detect().map_err(|unknown| unknown.to_string())?;
    let found = Arc::new(found.ok_or("no interpreter")?);
    Ok(Arc::clone(PYTHON.get_or_init(|| found)))
}

fn with_thread(work: impl FnOnce(&mut Thread) -> String) -> String {
    let python = match python() {
        Ok(python) => python,
        Err(words) => return words,
    };
    THREAD.with_borrow_mut(|thread| {
        work(thread.get_or_insert_with(|| Thread {
            python: PythonWalker::of_this_thread(python),
            native: Walker::of_this_thread(),
            images: Images::list(None),
            frames: vec![PythonFrame::default(); ROOM],
        }))
    })
}

/// Copies text out and gives its length; -1 when it does not fit.
///
/// # Safety
///
/// There are `size` bytes at `buffer`.
unsafe fn give(text: &str, buffer: *mut u8, size: usize) -> isize {
    if text.len() > size {
        return -1;
    }
    // SAFETY: there is room, as the caller vouches.
    unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), buffer, text.len()) };
    text.len() as isize
}

/// One frame: name, file, line, first line.
fn describe(python: &Python, frame: &PythonFrame, text: &mut String) {
    let mut room = [0; 4096];
    let Some(names) = python.names(frame, &mut room) else {
        text.push_str("names cannot be read");
        return;
    };
    let line = python.line(frame).unwrap_or(0);
    write!(
        text,
        "{}{PART}{}{PART}{line}{PART}{}",
        names.name, names.file, names.first_line
    )
    .expect("a string takes all");
}

/// The Python frames, the innermost first; behind them how the walk ended.
///
/// # Safety
///
/// There are `size` bytes at `buffer`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn probe_python(most: usize, buffer: *mut u8, size: usize) -> isize {
    let text = with_thread(|thread| {
        let room = thread.frames.len().min(most);
        let PythonWalk { depth, end } = thread.python.walk(&mut thread.frames[..room]);
        let mut text = String::new();
        for frame in &thread.frames[..depth] {
            describe(thread.python.python(), frame, &mut text);
            text.push(FRAME);
        }
        write!(text, "{end:?}").expect("a string takes all");
        if let Some(unknown) = thread.python.python().unknown() {
            write!(text, " {unknown}").expect("a string takes all");
        }
        text
    });
    // SAFETY: as our caller vouches.
    unsafe { give(&text, buffer, size) }
}

/// The mixed stack, the innermost first: Python frames as above, native frames as the file name of their image; behind
/// them how it fitted.
///
/// # Safety
///
/// There are `size` bytes at `buffer`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn probe_mixed(kept: u32, buffer: *mut u8, size: usize) -> isize {
    let interpreter = match kept {
        0 => InterpreterFrames::LeftOut,
        _ => InterpreterFrames::Kept,
    };
    let text = with_thread(|thread| {
        thread.images = Images::list(Some(&thread.images));
        let mut places = [0; 1024];
        let mut addresses = [0; 1024];
        let walk = thread
            .native
            .walk_placed(&thread.images, &mut addresses, &mut places);
        let PythonWalk { depth, .. } = thread.python.walk(&mut thread.frames);
        let mut run_places = [0; 1024];
        let runs = thread.python.run_places(&mut run_places);
        let native = NativeStack {
            frames: &addresses[..walk.depth],
            places: &places[..walk.depth],
        };
        let mut mixed = [MixedFrame::Native(0); 4096];
        let found = thread.python.python().mix(
            native,
            &thread.frames[..depth],
            &run_places[..runs],
            interpreter,
            &mut mixed,
        );
        let mut text = String::new();
        for frame in &mixed[..found.depth] {
            match frame {
                MixedFrame::Python(frame) => describe(thread.python.python(), frame, &mut text),
                MixedFrame::Native(address) => {
                    let image = thread.images.find(*address);
                    let path = image.map_or("?".into(), |image| image.path.to_string_lossy());
                    text.push_str(path.rsplit('/').next().unwrap_or_default());
                }
            }
            text.push(FRAME);
        }
        write!(text, "{:?} {:?}", found.fit, walk.end).expect("a string takes all");
        text
    });
    // SAFETY: as our caller vouches.
    unsafe { give(&text, buffer, size) }
}

/// What identifies the innermost frame: address, version and instruction of its code.
///
/// # Safety
///
/// There are three words at `identity`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn probe_identity(identity: *mut [u64; 3]) {
    with_thread(|thread| {
        let mut frames = [PythonFrame::default()];
        thread.python.walk(&mut frames);
        let code = frames[0].code_id();
        let words = [
            code.address,
            u64::from(code.version),
            u64::from(frames[0].instruction),
        ];
        // SAFETY: there is room, as our caller vouches.
        unsafe { identity.write(words) };
        String::new()
    });
}

/// Nanoseconds for each of so many walks; how many frames a walk had goes to `depth`.
///
/// # Safety
///
/// There is a word at `depth`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn probe_time(walks: u64, depth: *mut u64) -> f64 {
    let mut nanos = 0.0;
    with_thread(|thread| {
        let mut frames = [PythonFrame::default(); 128];
        let mut walk = thread.python.walk(&mut frames);
        let start = Instant::now();
        for _ in 0..walks {
            walk = thread.python.walk(std::hint::black_box(&mut frames));
        }
        nanos = start.elapsed().as_nanos() as f64 / walks as f64;
        // SAFETY: there is room, as our caller vouches.
        unsafe { depth.write(walk.depth as u64) };
        String::new()
    });
    nanos
}

/// Takes the stack of a thread that Python did not make, then calls back from it.
///
/// # Safety
///
/// The function can be called with nothing; there are `size` bytes at `buffer`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn probe_thread(
    function: unsafe extern "C" fn(*mut c_void),
    buffer: *mut u8,
    size: usize,
) -> isize {
    let thread = std::thread::spawn(move || {
        let text = with_thread(|thread| format!("{:?}", thread.python.walk(&mut thread.frames).end));
        // SAFETY: as our caller vouches.
        unsafe { function(std::ptr::null_mut()) };
        text
    });
    let text = thread.join().expect("it does not panic");
    // SAFETY: as our caller vouches.
    unsafe { give(&text, buffer, size) }
}

/// Calls back, as C code does that was given a function.
///
/// # Safety
///
/// The function can be called with that argument.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn probe_call(function: unsafe extern "C" fn(*mut c_void), argument: *mut c_void) {
    // SAFETY: as our caller vouches.
    unsafe { function(argument) };
    std::hint::black_box(argument);
}
