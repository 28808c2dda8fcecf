//! Work on traces: on threads that may wait, never on those of the runtime, and ended when nobody waits for it.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tracesmith_trace::tables::Cancel;

use crate::reply::Failure;

/// Tiles and other short work at once.
const QUICK: usize = 8;
/// Analyses and other long work at once. Each may use all cores.
const LONG: usize = 2;

/// How long work takes, so that what is short does not wait behind what is long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    /// Milliseconds.
    Quick,
    /// Up to minutes.
    Long,
}

/// The places for work.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    quick: Arc<Semaphore>,
    long: Arc<Semaphore>,
}

/// Ends work when it is dropped: the client went away.
#[derive(Debug)]
pub(crate) struct EndWithClient(pub(crate) Cancel);

impl Drop for EndWithClient {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl Work {
    pub(crate) fn new() -> Self {
        Work {
            quick: Arc::new(Semaphore::new(QUICK)),
            long: Arc::new(Semaphore::new(LONG)),
        }
    }

    /// Runs work on a thread of its own. If the answer is not waited for any longer, work that looks at its switch ends.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        length: Length,
        work: impl FnOnce(&Cancel) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let cancel = Cancel::default();
        let _end = EndWithClient(cancel.clone());
        self.run_until(length, cancel, work).await
    }

    /// The same with a switch of the caller.
    pub(crate) async fn run_until<T: Send + 'static>(
        &self,
        length: Length,
        cancel: Cancel,
        work: impl FnOnce(&Cancel) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let places = match length {
            Length::Quick => &self.quick,
            Length::Long => &self.long,
        };
        let place = Arc::clone(places).acquire_owned().await;
        let place = place.map_err(|_| Failure::cancelled())?;
        let done = spawn_blocking(move || {
            let _place = place;
            match cancel.is_cancelled() {
                true => Err(Failure::cancelled()),
                false => work(&cancel),
            }
        });
        // A panic has printed its message.
        done.await.unwrap_or_else(|_| Err(Failure::bug()))
    }
}
