//! Progress of restoring and comparing memory.

use crate::run::Replay;

/// Called with the number of finished bytes.
pub type ProgressFn = Box<dyn Fn(u64)>;

impl Replay<'_> {
    /// Calls `progress` for every piece of memory that is restored or compared. A run restores all memory of the
    /// window's start and compares all memory of its end.
    pub fn on_progress(&mut self, progress: ProgressFn) {
        self.progress = Some(progress);
    }

    pub(crate) fn progressed(&self, bytes: u64) {
        if let Some(progress) = &self.progress {
            progress(bytes);
        }
    }
}
