//! How many pages are open, so that a server that opened a browser ends some time after the last page went.
//!
//! A page keeps a stream of events open while it is shown. A hidden page closes its stream and asks something once a minute,
//! so recent requests count as well.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tempfile::TempPath;

/// The open pages.
#[derive(Debug)]
pub(crate) struct Tabs {
    begin: Instant,
    streams: AtomicUsize,
    /// Milliseconds from `begin` to the last request with the key, or to the end of the last stream.
    last: AtomicU64,
    /// The file that opens the browser. It has the key in it, so it goes once a page has it.
    opener: Mutex<Option<TempPath>>,
}

/// An open page. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Tab(Arc<Tabs>);

impl Tabs {
    pub(crate) fn new() -> Self {
        Tabs {
            begin: Instant::now(),
            streams: AtomicUsize::new(0),
            last: AtomicU64::new(0),
            opener: Mutex::new(None),
        }
    }

    /// A page has opened its stream.
    pub(crate) fn open(self: &Arc<Self>) -> Tab {
        self.streams.fetch_add(1, Ordering::SeqCst);
        Tab(Arc::clone(self))
    }

    /// Somebody with the key asked something.
    pub(crate) fn note_request(&self) {
        let now = u64::try_from(self.begin.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last.fetch_max(now, Ordering::SeqCst);
        self.remove_opener();
    }

    /// Keeps the file that opens the browser until a page has the key.
    pub(crate) fn keep_opener(&self, file: TempPath) {
        *self.opener.lock().unwrap_or_else(PoisonError::into_inner) = Some(file);
    }

    /// Removes the file that opens the browser.
    pub(crate) fn remove_opener(&self) {
        drop(self.opener.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// For how long no page has been open.
    pub(crate) fn idle(&self) -> Duration {
        if self.streams.load(Ordering::SeqCst) > 0 {
            return Duration::ZERO;
        }
        let last = Duration::from_millis(self.last.load(Ordering::SeqCst));
        self.begin.elapsed().saturating_sub(last)
    }
}

impl Drop for Tab {
    fn drop(&mut self) {
        self.0.note_request();
        self.0.streams.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_counts_from_the_end_of_the_last_page() {
        let tabs = Arc::new(Tabs::new());
        let (one, other) = (tabs.open(), tabs.open());
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(tabs.idle(), Duration::ZERO);
        drop(one);
        assert_eq!(tabs.idle(), Duration::ZERO);
        drop(other);
        assert!(tabs.idle() < Duration::from_millis(15));
        std::thread::sleep(Duration::from_millis(20));
        assert!(tabs.idle() >= Duration::from_millis(20));
    }

    #[test]
    fn the_file_that_opens_the_browser_goes_with_the_first_request() {
        let tabs = Tabs::new();
        let file = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        let path = file.to_path_buf();
        tabs.keep_opener(file);
        assert!(path.exists());
        tabs.note_request();
        assert!(!path.exists());
    }
}
