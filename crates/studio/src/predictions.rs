//! Predicted timelines: traces that are in no file.
//!
//! Each belongs to an open trace and to the changes that it is predicted with. It has a number of its own, a layout, shapes,
//! tiles and slices as other traces have. A simulation goes on as long as somebody asks how far it is. The last few
//! predictions are kept.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use tracesmith_trace::analysis::WhatIf;
use tracesmith_trace::reconstruct::Predicted;
use tracesmith_trace::tables::Cancel;

use crate::events::{Change, Hub};
use crate::opened::Opened;
use crate::ready::{Generation, Ready};
use crate::reply::Failure;

/// The first number. Those of files are below.
pub(crate) const FIRST: usize = 1 << 20;
/// Predictions that are kept.
const KEPT: usize = 3;
/// Memory of all that are kept. The newest one is kept in any case.
const KEPT_BYTES: usize = 1 << 30;
/// A simulation that nobody has asked about for so long is ended. Pages ask several times a second.
const LEASE: Duration = Duration::from_secs(5);
/// Share of the work that the rest of a prediction begins at: before it, dependencies; after it, rows.
const SIMULATED: (f64, f64) = (0.2, 0.5);
/// Number of progress messages to the pages.
const STEPS: f64 = 50.0;

/// The predictions that are kept.
#[derive(Debug)]
pub(crate) struct Predictions {
    known: Mutex<Known>,
    hub: Hub,
}

#[derive(Debug)]
struct Known {
    /// The one that was used least lately first.
    entries: Vec<Arc<Prediction>>,
    next: usize,
}

/// A predicted timeline.
#[derive(Debug)]
pub(crate) struct Prediction {
    pub(crate) id: usize,
    /// The trace that it is of.
    pub(crate) base: Arc<Opened>,
    /// What was measured.
    pub(crate) measured: Ready,
    what_if: WhatIf,
    hub: Hub,
    cancel: Cancel,
    asked: Mutex<Instant>,
    /// The share that is done, as the bits of a number.
    share: AtomicU64,
    state: RwLock<State>,
}

/// How far a prediction is.
#[derive(Clone, Debug)]
pub(crate) enum State {
    Working,
    Ready(Done),
    Failed(Failure),
}

/// A prediction that can be looked at.
#[derive(Clone, Debug)]
pub(crate) struct Done {
    pub(crate) ready: Ready,
    pub(crate) predicted: Arc<Predicted>,
    bytes: usize,
}

impl Predictions {
    pub(crate) fn new(hub: Hub) -> Self {
        let known = Known {
            entries: Vec::new(),
            next: FIRST,
        };
        Predictions {
            known: Mutex::new(known),
            hub,
        }
    }

    /// The prediction with these changes, and whether it is new: then its work has to be started.
    pub(crate) fn ask(&self, base: Arc<Opened>, measured: Ready, what_if: WhatIf) -> (Arc<Prediction>, bool) {
        let mut known = self.lock();
        let is_same = |one: &Arc<Prediction>| {
            one.what_if == what_if
                && one.base.text_of(one.measured.content()) == base.text_of(measured.content())
                && !one.cancel.is_cancelled()
                && !matches!(one.state(), State::Failed(_))
        };
        if let Some(at) = known.entries.iter().position(is_same) {
            let prediction = known.touch(at);
            return (prediction, false);
        }
        let prediction = Arc::new(Prediction {
            id: known.next,
            base,
            measured,
            what_if,
            hub: self.hub.clone(),
            cancel: Cancel::default(),
            asked: Mutex::new(Instant::now()),
            share: AtomicU64::new(0),
            state: RwLock::new(State::Working),
        });
        known.next += 1;
        known.entries.push(Arc::clone(&prediction));
        known.shrink();
        (prediction, true)
    }

    /// The prediction with this number. Somebody wants it.
    pub(crate) fn get(&self, id: usize) -> Result<Arc<Prediction>, Failure> {
        let mut known = self.lock();
        let is_meant = |one: &Arc<Prediction>| one.id == id && !one.cancel.is_cancelled();
        let found = known.entries.iter().position(is_meant);
        found.map(|at| known.touch(at)).ok_or_else(|| {
            Failure::missing(format!("no prediction with number {id} is kept"))
                .with_hint("ask for it again: only the last few are kept")
        })
    }

    /// Forgets what takes too much memory, now that this one is ready.
    pub(crate) fn settle(&self) {
        self.lock().shrink();
    }

    /// How all of them are.
    pub(crate) fn changes(&self) -> Vec<Change> {
        self.lock().entries.iter().map(|one| one.change()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn touch(&mut self, at: usize) -> Arc<Prediction> {
        let prediction = self.entries.remove(at);
        prediction.renew();
        self.entries.push(Arc::clone(&prediction));
        prediction
    }

    fn shrink(&mut self) {
        self.entries.retain(|one| !one.cancel.is_cancelled());
        let bytes = |entries: &[Arc<Prediction>]| entries.iter().map(|one| one.bytes()).sum::<usize>();
        while self.entries.len() > KEPT || self.entries.len() > 1 && bytes(&self.entries) > KEPT_BYTES {
            self.entries.remove(0).cancel.cancel();
        }
    }
}

impl Prediction {
    /// Simulates, and makes the rows. Ends when nobody waits.
    pub(crate) fn work(&self) {
        // Nobody asks for a while where much else is simulated before.
        let state = match self.is_wanted().and_then(|()| self.done()) {
            Ok(done) => State::Ready(done),
            Err(failure) => State::Failed(failure),
        };
        self.set(state);
    }

    /// The work failed in a way that it should not.
    pub(crate) fn fail(&self, failure: Failure) {
        if matches!(self.state(), State::Working) {
            self.set(State::Failed(failure));
        }
    }

    fn done(&self) -> Result<Done, Failure> {
        let measured = &self.measured;
        let whole = measured.facts.whole(&measured.trace)?;
        let (first, second) = SIMULATED;
        let watch = |from: f64, to: f64| {
            move |share: f64| match self.is_wanted() {
                Ok(()) => {
                    self.note(from + share * (to - from));
                    Ok(())
                }
                Err(_) => Err(tracesmith_trace::Error::Cancelled),
            }
        };
        let predicted = whole.analysis.predicted(&self.what_if, &watch(first, second))?;
        let grid = measured.grid().predicted(&predicted, &watch(second, 1.0))?;
        self.base.unchanged()?;
        let bytes = grid.memory_bytes() + predicted.memory_bytes();
        Ok(Done {
            ready: measured.predicted(grid),
            predicted: Arc::new(predicted),
            bytes,
        })
    }

    /// How far it is.
    pub(crate) fn state(&self) -> State {
        self.state.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What can be looked at, if it is ready.
    pub(crate) fn ready(&self) -> Result<Done, Failure> {
        match self.state() {
            State::Ready(done) => Ok(done),
            State::Failed(failure) => Err(failure),
            State::Working => Err(Failure::new(
                axum::http::StatusCode::SERVICE_UNAVAILABLE,
                "the prediction is still being computed",
            )),
        }
    }

    /// How it is, for pages.
    pub(crate) fn change(&self) -> Change {
        let (state, progress) = match self.state() {
            State::Working => ("reading", f64::from_bits(self.share.load(Ordering::Relaxed))),
            State::Ready(_) => ("ready", 1.0),
            State::Failed(_) => ("failed", 0.0),
        };
        Change {
            trace: self.id,
            generation: self.generation(),
            state,
            progress,
        }
    }

    fn generation(&self) -> String {
        self.base.text_of(Generation::FIRST)
    }

    fn bytes(&self) -> usize {
        match &*self.state.read().unwrap_or_else(PoisonError::into_inner) {
            State::Ready(done) => done.bytes,
            State::Working | State::Failed(_) => 0,
        }
    }

    fn renew(&self) {
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Fails if nobody waits any longer.
    fn is_wanted(&self) -> Result<(), Failure> {
        let asked = *self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if asked.elapsed() > LEASE {
            self.cancel.cancel();
        }
        match self.cancel.is_cancelled() {
            true => Err(Failure::cancelled()),
            false => Ok(()),
        }
    }

    fn note(&self, share: f64) {
        let before = f64::from_bits(self.share.load(Ordering::Relaxed));
        // Rows are made by several threads. Nothing goes back.
        if share > before {
            self.share.store(share.to_bits(), Ordering::Relaxed);
        }
        if (share * STEPS).floor() > (before * STEPS).floor() {
            self.hub.tell(self.change());
        }
    }

    fn set(&self, state: State) {
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = state;
        self.hub.tell(self.change());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    use crate::tabs::Tabs;

    fn opened() -> (Arc<Opened>, Ready) {
        let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/train-h200.sbt");
        let opened = Opened::begin(0, file, Hub::new(), Arc::new(Tabs::new()));
        let begin = Instant::now();
        loop {
            match opened.ready() {
                Ok(ready) => return (opened, ready),
                Err(failure) => assert!(begin.elapsed() < Duration::from_secs(60), "{failure:?}"),
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn changes(factor: f64) -> WhatIf {
        let text = format!(r#"{{"scales": [{{"name": "*", "factor": {factor}}}]}}"#);
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_question_has_one_number_and_the_oldest_go() {
        let (base, measured) = opened();
        let predictions = Predictions::new(Hub::new());
        let ask = |factor| predictions.ask(Arc::clone(&base), measured.clone(), changes(factor));
        let (first, is_new) = ask(0.5);
        assert!(is_new && first.id == FIRST);
        assert!(matches!(ask(0.5), (same, false) if same.id == FIRST));
        first.work();
        assert!(first.ready().is_ok() && first.bytes() > 1_000);
        for factor in [0.6, 0.7, 0.8] {
            ask(factor);
        }
        assert_eq!(
            predictions.get(FIRST).unwrap_err().error(),
            "no prediction with number 1048576 is kept"
        );
        assert!(ask(0.5).0.id > FIRST, "it is computed again");
    }

    #[test]
    fn a_simulation_ends_when_nobody_asks_about_it() {
        let (base, measured) = opened();
        let predictions = Predictions::new(Hub::new());
        let (prediction, _) = predictions.ask(Arc::clone(&base), measured.clone(), changes(0.5));
        *prediction.asked.lock().unwrap() = Instant::now().checked_sub(2 * LEASE).unwrap();
        prediction.work();
        assert_eq!(prediction.ready().unwrap_err(), Failure::cancelled());
        assert!(predictions.get(FIRST).is_err());
        let (again, is_new) = predictions.ask(base, measured, changes(0.5));
        assert!(is_new && again.id > FIRST);
    }
}
