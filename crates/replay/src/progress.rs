//! How much memory was restored and compared, for whoever shows it.

use crate::run::Replay;

/// Is told of bytes that are done.
pub type ProgressFn = Box<dyn Fn(u64)>;

impl Replay<'_> {
    /// Tells of every piece of memory that is restored or compared. A run does so for all that the recording holds of its
    /// beginning and of its end.
    pub fn on_progress(&mut self, progress: ProgressFn) {
        self.progress = Some(progress);
    }

    pub(crate) fn progressed(&self, bytes: u64) {
        if let Some(progress) = &self.progress {
            progress(bytes);
        }
    }
}
