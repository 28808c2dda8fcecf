//! What the program has named: domains, texts, categories, threads.
//!
//! It outlives windows, and is sent again to each collector. It belongs to the
//! process and not to the agent: the child of a fork has its parent's handles, and
//! its agent, if it gets one, must know their names.

use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
    ptr,
    sync::{
        Mutex, TryLockError,
        atomic::{AtomicPtr, AtomicU32, Ordering},
    },
};

use tracesmith_wire::record::{Category, Text, ThreadName};

use crate::{guard::lock, sink::Sink};

/// Names of threads and of categories that are kept, each. Programs have a few
/// dozen. One that makes them up without end must not make us grow.
const MOST_NAMES: usize = 4096;

static CURRENT: AtomicPtr<Mutex<Registry>> = AtomicPtr::new(ptr::null_mut());

/// Numbers of texts up to this one are given away, by us or by the process that
/// this one is a fork of.
static LAST_TEXT: AtomicU32 = AtomicU32::new(0);

/// Names.
#[derive(Debug, Default)]
pub(super) struct Registry {
    /// Texts up to this number were registered before a fork, and their names lost.
    unknown: u32,
    texts: Vec<Box<[u8]>>,
    numbers: HashMap<Box<[u8]>, u32>,
    /// By domain and number.
    categories: BTreeMap<(u32, u32), Box<[u8]>>,
    threads: BTreeMap<u32, Box<[u8]>>,
}

/// Runs `body` with the names of this process.
pub(super) fn with<T>(body: impl FnOnce(&mut Registry) -> T) -> T {
    body(&mut lock(current()))
}

fn current() -> &'static Mutex<Registry> {
    // SAFETY: null, or a box that was leaked.
    if let Some(known) = unsafe { CURRENT.load(Ordering::Acquire).as_ref() } {
        return known;
    }
    let new = Box::into_raw(Box::new(Mutex::new(Registry {
        unknown: LAST_TEXT.load(Ordering::Relaxed),
        ..Registry::default()
    })));
    match CURRENT.compare_exchange(ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire) {
        // SAFETY: a box that is never freed.
        Ok(_) => unsafe { &*new },
        Err(others) => {
            // SAFETY: made above and known to nobody.
            drop(unsafe { Box::from_raw(new) });
            // SAFETY: not null, and a box that was leaked.
            unsafe { &*others }
        }
    }
}

/// In the child of a fork: names stay, but for those of threads. Where another
/// thread of the parent held the lock just then, it is held for ever, and names
/// that were registered before are not known.
pub(super) fn forked() {
    // SAFETY: null, or a box that was leaked.
    let Some(known) = (unsafe { CURRENT.load(Ordering::Acquire).as_ref() }) else {
        return;
    };
    match known.try_lock() {
        Ok(mut registry) => registry.forget_threads(),
        Err(TryLockError::Poisoned(registry)) => registry.into_inner().forget_threads(),
        Err(TryLockError::WouldBlock) => CURRENT.store(ptr::null_mut(), Ordering::Release),
    }
}

impl Registry {
    /// Leaks them: a fork handler may not free memory, because the allocator may be locked.
    fn forget_threads(&mut self) {
        std::mem::forget(std::mem::take(&mut self.threads));
    }

    /// The number of a text, counted from 1. A new one is told to the collector,
    /// if there is one.
    pub(super) fn text(&mut self, text: &[u8], sink: Option<&Sink>) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        self.texts.push(text.into());
        let number = self.unknown + self.texts.len() as u32;
        self.numbers.insert(text.into(), number);
        LAST_TEXT.store(number, Ordering::Relaxed);
        define(number, text, sink);
        number
    }

    /// The text with this number.
    pub(super) fn get(&self, number: u32) -> Option<&[u8]> {
        let at = number.checked_sub(self.unknown)?.checked_sub(1)?;
        self.texts.get(at as usize).map(AsRef::as_ref)
    }

    pub(super) fn category(&mut self, category: Category, name: &[u8], sink: Option<&Sink>) {
        let key = (category.domain, category.category);
        if self.categories.get(&key).is_some_and(|known| **known == *name) {
            return;
        }
        if let Some(sink) = sink {
            sink.define_with(&category, name);
        }
        if self.categories.len() >= MOST_NAMES && !self.categories.contains_key(&key) {
            // Told in this window, and not in later ones.
            return;
        }
        self.categories.insert(key, name.into());
    }

    pub(super) fn thread(&mut self, thread: u32, name: &[u8], sink: Option<&Sink>) {
        define_thread(thread, name, sink);
        if self.threads.len() >= MOST_NAMES && !self.threads.contains_key(&thread) {
            self.threads.retain(|thread, _| is_alive(*thread));
        }
        self.rename(thread, name);
    }

    /// Keeps the name if there is room for it, or if the thread has an older one.
    fn rename(&mut self, thread: u32, name: &[u8]) {
        if self.threads.len() < MOST_NAMES || self.threads.contains_key(&thread) {
            self.threads.insert(thread, name.into());
        }
    }

    /// Tells all of it to a collector that is new.
    pub(super) fn announce(&self, sink: &Sink) {
        for (number, text) in (self.unknown + 1..).zip(&self.texts) {
            define(number, text, Some(sink));
        }
        for ((domain, category), name) in &self.categories {
            let category = Category {
                domain: *domain,
                category: *category,
            };
            sink.define_with(&category, name);
        }
        for (thread, name) in &self.threads {
            define_thread(*thread, name, Some(sink));
        }
    }
}

/// Whether this process has such a thread.
fn is_alive(thread: u32) -> bool {
    Path::new(&format!("/proc/self/task/{thread}")).exists()
}

fn define(number: u32, text: &[u8], sink: Option<&Sink>) {
    let record = Text {
        id: number,
        reserved: 0,
    };
    if let Some(sink) = sink {
        sink.define_with(&record, text);
    }
}

fn define_thread(thread: u32, name: &[u8], sink: Option<&Sink>) {
    let record = ThreadName { thread, reserved: 0 };
    if let Some(sink) = sink {
        sink.define_with(&record, name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_given_again_and_again_take_no_more_memory_issue_26() {
        let mut registry = Registry::default();
        for round in 0..10_000u32 {
            let category = Category {
                domain: 1,
                category: 7,
            };
            registry.category(category, format!("name {}", round % 2).as_bytes(), None);
            registry.thread(42, b"worker", None);
        }
        assert_eq!(registry.categories.len(), 1);
        assert_eq!(&*registry.categories[&(1, 7)], b"name 1", "the last one counts");
        assert_eq!(registry.threads.len(), 1);
    }

    #[test]
    fn names_without_end_are_not_all_kept_issue_26() {
        let mut registry = Registry::default();
        for number in 0..3 * MOST_NAMES as u32 {
            let category = Category {
                domain: 0,
                category: number,
            };
            registry.category(category, b"one of many", None);
            // Numbers that no thread can have.
            registry.thread(u32::MAX - number, b"ended", None);
        }
        assert!(registry.categories.len() <= MOST_NAMES);
        assert!(registry.threads.len() <= MOST_NAMES);
        let own = crate::threads::thread_id();
        registry.thread(own, b"this one", None);
        assert_eq!(
            registry.threads.get(&own).map(AsRef::as_ref),
            Some(&b"this one"[..])
        );
    }

    #[test]
    fn a_thread_gets_its_new_name_when_no_other_name_fits() {
        let mut registry = Registry::default();
        let own = crate::threads::thread_id();
        registry.threads = (0..MOST_NAMES as u32 - 1)
            .map(|number| (u32::MAX - number, Box::from(&b"alive"[..])))
            .chain([(own, Box::from(&b"old"[..]))])
            .collect();
        registry.rename(own, b"new");
        assert_eq!(registry.threads.len(), MOST_NAMES);
        assert_eq!(&*registry.threads[&own], b"new");
    }

    #[test]
    fn texts_behind_a_fork_get_numbers_that_no_other_text_had_issue_26() {
        let mut registry = Registry {
            unknown: 5,
            ..Registry::default()
        };
        assert_eq!(registry.text(b"domain", None), 6);
        assert_eq!((registry.get(6), registry.get(5)), (Some(&b"domain"[..]), None));
    }
}
