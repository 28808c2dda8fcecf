//! The client's two buffer functions and the thread that hands full buffers back.
//!
//! Registering again replaces the functions silently, also for buffers that the first client lent: that is what the
//! real library does, and why two clients of this interface ruin each other.

#![allow(unsafe_code, reason = "calls the client's functions by address")]

use std::cell::Cell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use super::buffer::{Buffer, Force, Parcel, Place, Stage};
use super::record::{self, Record};
use super::{activity, overhead};
use crate::clock;
use crate::config::config;
use crate::kept::{Kept, KeptKey};
use crate::process;

pub(crate) type RequestFunction = extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
pub(crate) type CompleteFunction = extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);

static REQUEST: AtomicUsize = AtomicUsize::new(0);
static COMPLETE: AtomicUsize = AtomicUsize::new(0);
static DROPPED: AtomicU64 = AtomicU64::new(0);

/// Every buffer that is out: filled by some thread, or waiting for open records.
static LENT: Mutex<Vec<Buffer>> = Mutex::new(Vec::new());
/// The one buffer of all threads, where buffers are not per thread.
static SHARED: Mutex<Option<Buffer>> = Mutex::new(None);

thread_local! {
    static OWN: Kept<Option<Buffer>> = const { Kept::new(None) };
    static IS_DELIVERING: Cell<bool> = const { Cell::new(false) };
}

/// Buffers belong to no stream, and what the real library passes for one is left over from something else.
const NO_STREAM: u32 = 3_508_557_632;

enum Message {
    Parcel(Parcel),
    /// Answered when all before it has been delivered.
    Barrier(Sender<()>),
}

pub(crate) fn register(request: RequestFunction, complete: CompleteFunction) {
    process::watch_for_fork();
    REQUEST.store(request as usize, Ordering::Release);
    COMPLETE.store(complete as usize, Ordering::Release);
}

pub(crate) fn is_registered() -> bool {
    REQUEST.load(Ordering::Acquire) != 0
}

pub(crate) fn forget_registration() {
    REQUEST.store(0, Ordering::Release);
    COMPLETE.store(0, Ordering::Release);
}

/// Records dropped since the last time of asking.
pub(crate) fn take_dropped() -> u64 {
    DROPPED.swap(0, Ordering::AcqRel)
}

pub(crate) fn count_dropped() {
    DROPPED.fetch_add(1, Ordering::AcqRel);
}

/// Finds a place for a record in this thread's buffer, asking the client for a new one where needed.
pub(crate) fn write<R: Record>(record: &R, kind: u32, stage: Stage) -> Option<Place> {
    let length = record::length(kind, config().cupti_version)?;
    let start = clock::now();
    let (place, asked) = if activity::has_buffer_per_thread() {
        OWN.with_borrow_mut(|own| write_to(own, record, length, stage))
    } else {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        write_to(&mut shared, record, length, stage)
    };
    match (&place, asked) {
        (None, _) => count_dropped(),
        (Some(_), Asked::Client) => overhead::record(overhead::BUFFER_REQUEST, start, clock::now()),
        (Some(_), Asked::Nobody) => {}
    }
    place
}

/// Who had to be asked for room.
enum Asked {
    Nobody,
    Client,
}

fn write_to<R: Record>(
    current: &mut Option<Buffer>,
    record: &R,
    length: usize,
    stage: Stage,
) -> (Option<Place>, Asked) {
    let try_write = |buffer: &Option<Buffer>| buffer.as_ref()?.write(record, length, stage);
    if let Some(place) = try_write(current) {
        return (Some(place), Asked::Nobody);
    }
    *current = request();
    (try_write(current), Asked::Client)
}

/// Asks the client for a buffer, on the thread that needs it.
fn request() -> Option<Buffer> {
    let address = REQUEST.load(Ordering::Acquire);
    if address == 0 {
        return None;
    }
    // SAFETY: only `register` stores here, and it stores functions of this type.
    let function = unsafe { std::mem::transmute::<usize, RequestFunction>(address) };
    let (mut base, mut size, mut max_records) = (std::ptr::null_mut(), 0, 0);
    function(&mut base, &mut size, &mut max_records);
    if base.is_null() || size == 0 {
        return None;
    }
    let buffer = Buffer::new(base as u64, size, max_records);
    let mut lent = LENT.lock().unwrap_or_else(PoisonError::into_inner);
    lent.push(buffer.clone());
    Some(buffer)
}

/// Hands buffers back and waits until the client has had them. In a forked child that is for ever: the thread that
/// would deliver them is not there. The real library hangs just so.
pub(crate) fn flush(force: Force) {
    while process::is_forked() {
        std::thread::sleep(Duration::from_secs(1));
    }
    give_back(force);
    // A client that flushes in its own completion function would wait for itself.
    if IS_DELIVERING.get() {
        return;
    }
    wait_for_delivery();
    // Delivering makes records of its own when they are wanted.
    if activity::is_enabled(record::kind::OVERHEAD) {
        give_back(force);
        wait_for_delivery();
    }
}

fn give_back(force: Force) {
    let lent = LENT.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let gone: Vec<Buffer> = lent
        .into_iter()
        .filter(|buffer| buffer.give_back(force))
        .collect();
    let is_gone = |buffer: &Buffer| gone.iter().any(|other| other.is_same(buffer));
    LENT.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .retain(|buffer| !is_gone(buffer));
}

fn wait_for_delivery() {
    let (answer, answered) = channel();
    post(Message::Barrier(answer));
    // The thread lives as long as the process, so the answer comes.
    let _ = answered.recv();
}

/// Leaves a buffer to the delivering thread.
pub(crate) fn send(parcel: Parcel) {
    post(Message::Parcel(parcel));
}

fn post(message: Message) {
    static SENDER: OnceLock<Mutex<Sender<Message>>> = OnceLock::new();
    let sender = SENDER.get_or_init(|| {
        let (sender, receiver) = channel();
        std::thread::Builder::new()
            .name("fake-cupti".to_owned())
            .spawn(move || deliver(&receiver))
            .expect("buffers need the thread that hands them back");
        Mutex::new(sender)
    });
    let sender = sender.lock().unwrap_or_else(PoisonError::into_inner);
    // The receiver is never dropped.
    let _ = sender.send(message);
}

fn deliver(receiver: &Receiver<Message>) {
    IS_DELIVERING.set(true);
    while let Ok(message) = receiver.recv() {
        match message {
            Message::Parcel(parcel) => complete(parcel),
            // Who asked may have stopped waiting only with the process.
            Message::Barrier(answer) => drop(answer.send(())),
        }
    }
}

fn complete(mut parcel: Parcel) {
    if config().slow_flush_millis > 0 {
        std::thread::sleep(Duration::from_millis(config().slow_flush_millis));
    }
    if config().is_shuffled {
        parcel.shuffle();
    }
    let address = COMPLETE.load(Ordering::Acquire);
    if address == 0 {
        return;
    }
    // SAFETY: only `register` stores here, and it stores functions of this type.
    let function = unsafe { std::mem::transmute::<usize, CompleteFunction>(address) };
    let start = clock::now();
    function(
        std::ptr::null_mut(),
        NO_STREAM,
        parcel.base as *mut u8,
        parcel.size,
        parcel.valid,
    );
    overhead::record(overhead::BUFFER_FLUSH, start, clock::now());
}
