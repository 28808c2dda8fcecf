//! NVTX: ranges and marks of the program's own.
//!
//! NVTX hands us the slots of its functions and we put ours into them. Nothing
//! of CUPTI is needed, so programs that never touch CUDA are served too, and a
//! range's time is our own reading of the host's clock.
//!
//! While nothing is recorded a call costs a load of one word, apart from what
//! must be right for a window that opens later: numbers of texts and domains,
//! and depths of nested ranges.

mod abi;
mod depth;
mod functions;
mod registry;
mod text;

use std::{
    collections::HashSet,
    sync::{
        Mutex,
        atomic::{AtomicU8, AtomicU64, Ordering},
    },
};

pub(crate) use abi::GetExportTable;
use abi::{CallbackTables, EXPORT_CALLBACKS};
use text::{Cut, Message};
use tracesmith_wire::{
    control::Kinds,
    record::{self, Marker},
};

use crate::{
    agent::Agent,
    clock,
    guard::lock,
    range::{MarkerName, Range, RangeEdge},
    sink::Sink,
    threads,
};

/// Markers are recorded.
const RECORDING: u8 = 1;
/// A range is looked for that opens the window.
const WATCHING: u8 = 2;

/// Numbers ranges that are started, also across a fork: a child may end those of its
/// parent.
static LAST_RANGE: AtomicU64 = AtomicU64::new(0);

/// What is known of the program's marks.
#[derive(Default)]
pub(crate) struct State {
    flags: AtomicU8,
    watched: Mutex<Watched>,
}

#[derive(Default)]
struct Watched {
    name: Option<MarkerName>,
    /// Open ranges that have been started, not pushed.
    started: HashSet<u64>,
}

/// In the child of a fork.
pub(crate) fn forked() {
    registry::forked();
}

/// Puts our functions into NVTX's slots. Whether that was possible.
///
/// # Safety
///
/// `get_export_table` is NVTX's.
pub(crate) unsafe fn attach(get_export_table: GetExportTable) -> bool {
    // SAFETY: NVTX's function takes any number.
    let table = unsafe { get_export_table(EXPORT_CALLBACKS) }.cast::<CallbackTables>();
    // SAFETY: null or NVTX's table.
    let Some(table) = (unsafe { table.as_ref() }) else {
        return false;
    };
    let Some(get_module) = table
        .get_module
        .filter(|_| table.size >= size_of::<CallbackTables>())
    else {
        return false;
    };
    for (module, functions) in functions::MODULES {
        // SAFETY: NVTX's own function for its own modules.
        unsafe { fill(get_module, *module, functions) };
    }
    true
}

/// # Safety
///
/// `get_module` is NVTX's, and each function has the type of its slot.
unsafe fn fill(get_module: abi::GetModule, module: u32, functions: &[(usize, functions::Function)]) {
    let mut slots = std::ptr::null_mut();
    let mut size = 0;
    // SAFETY: writes the two words.
    let found = unsafe { get_module(module, &raw mut slots, &raw mut size) };
    if found == 0 || slots.is_null() {
        return;
    }
    for (at, function) in functions {
        // The size leaves out the slot of no function.
        if *at > size as usize {
            continue;
        }
        // SAFETY: within the array.
        let slot = unsafe { slots.wrapping_add(*at).read() };
        if !slot.is_null() {
            // SAFETY: NVTX's slot for this function.
            unsafe { slot.write(function.0) };
        }
    }
}

impl State {
    /// Tells a new collector all names.
    pub(crate) fn announce(&self, sink: &Sink) {
        registry::with(|registry| registry.announce(sink));
    }

    /// Looks for a range that opens the window.
    pub(crate) fn watch(&self, range: &Range) {
        if let Some(name) = range.marker() {
            *lock(&self.watched) = Watched {
                name: Some(name),
                started: HashSet::new(),
            };
            self.flags.fetch_or(WATCHING, Ordering::Release);
        }
    }

    pub(crate) fn unwatch(&self) {
        self.flags.fetch_and(!WATCHING, Ordering::Release);
        *lock(&self.watched) = Watched::default();
    }

    pub(crate) fn begin(&self, kinds: Kinds) {
        if kinds.contains(Kinds::MARKERS) {
            self.flags.fetch_or(RECORDING, Ordering::Release);
        }
    }

    pub(crate) fn end(&self) {
        self.flags.fetch_and(!RECORDING, Ordering::Release);
    }

    /// One mark, or one end of a range.
    fn event(&self, agent: &Agent, mut marker: Marker, message: &Message<'_>) {
        let flags = self.flags.load(Ordering::Acquire);
        if flags == 0 {
            return;
        }
        // The range that opens the window is part of what is recorded, and so
        // is its end.
        let begins = matches!(marker.phase, record::PUSH | record::START);
        if flags & WATCHING != 0 && begins && self.is_watched(marker.domain, message) {
            self.open_watched(agent, &marker);
        }
        if self.flags.load(Ordering::Acquire) & RECORDING != 0 {
            marker.time = clock::now();
            marker.thread = threads::thread_id();
            let text = match message {
                Message::Registered(number) => {
                    marker.name = *number;
                    &[][..]
                }
                Message::Text(text, cut) => {
                    if *cut == Cut::Cut {
                        marker.flags |= record::TEXT_CUT;
                    }
                    text
                }
            };
            agent.threads.push(&marker, text);
        }
        if flags & WATCHING != 0 && !begins {
            self.close_watched(agent, &marker);
        }
    }

    fn is_watched(&self, domain: u32, message: &Message<'_>) -> bool {
        let watched = lock(&self.watched);
        let Some(wanted) = &watched.name else {
            return false;
        };
        registry::with(|registry| {
            let same_domain = match &wanted.domain {
                None => true,
                Some(name) => registry.get(domain).unwrap_or(b"") == name.as_slice(),
            };
            let name = match message {
                Message::Text(text, _) => Some(*text),
                Message::Registered(number) => registry.get(*number),
            };
            same_domain && name == Some(wanted.name.as_slice())
        })
    }

    fn open_watched(&self, agent: &Agent, marker: &Marker) {
        if marker.phase == record::PUSH {
            depth::watch(marker.domain);
        } else {
            lock(&self.watched).started.insert(marker.range);
        }
        agent.range_edge(RangeEdge::Begin);
    }

    fn close_watched(&self, agent: &Agent, marker: &Marker) {
        let ends = match marker.phase {
            record::POP => depth::was_watched(marker.domain),
            record::END => lock(&self.watched).started.remove(&marker.range),
            _ => false,
        };
        if ends {
            agent.range_edge(RangeEdge::End);
        }
    }
}
