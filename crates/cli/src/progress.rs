//! A progress bar on standard error for work that takes longer than half a second.

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tracesmith_trace::ProgressFn;

/// Shorter work shows no bar.
const PATIENCE: Duration = Duration::from_millis(500);

/// Whether a bar is wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bar {
    /// If there is a terminal.
    Shown,
    /// Never.
    Hidden,
}

/// Counts bytes of work done.
pub(crate) struct Progress {
    bar: ProgressBar,
    started: Instant,
    enabled: bool,
}

impl Progress {
    /// A bar for this many bytes. It is hidden without a terminal.
    pub(crate) fn new(what: &'static str, total_bytes: u64, wanted: Bar) -> Self {
        let bar = ProgressBar::with_draw_target(Some(total_bytes), ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template("{msg} {wide_bar} {bytes}/{total_bytes} {eta}");
        bar.set_style(style.expect("the template is a constant and was tried"));
        bar.set_message(what);
        Progress {
            bar,
            started: Instant::now(),
            enabled: wanted == Bar::Shown && std::io::stderr().is_terminal(),
        }
    }

    /// The bar as a function for any thread. The bar disappears when it is dropped.
    pub(crate) fn into_fn(self) -> ProgressFn {
        Arc::new(move |progress| match progress {
            tracesmith_trace::Progress::Read(bytes) => self.add(bytes),
            tracesmith_trace::Progress::Done => self.bar.finish_and_clear(),
        })
    }

    /// Adds finished bytes.
    pub(crate) fn add(&self, bytes: u64) {
        self.bar.inc(bytes);
        if self.enabled && self.bar.is_hidden() && self.started.elapsed() >= PATIENCE {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
