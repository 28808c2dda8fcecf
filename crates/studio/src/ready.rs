//! A trace that can be looked at, and its grids by their generations.

use std::collections::VecDeque;
use std::sync::Arc;

use tracesmith_trace::Trace;
use tracesmith_trace::grid::Grid;

use crate::facts::Facts;
use crate::payload::Keep;

/// A trace that can be looked at.
#[derive(Clone, Debug)]
pub(crate) struct Ready {
    pub(crate) trace: Arc<Trace>,
    pub(crate) facts: Arc<Facts>,
    pub(crate) idle: Idle,
    /// For a file that its writer has not finished.
    pub(crate) live: Option<Live>,
    /// Grids of this trace with their generations, the newest last. An older one has fewer rows, with the same numbers.
    pub(crate) grids: Vec<(Generation, Arc<Grid>)>,
    /// Grids of generations from this one on are gone, but rows and shapes had the numbers that they have now.
    pub(crate) continues: Generation,
}

/// Whether the rows with idle times are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Idle {
    Pending,
    Ready,
    None,
}

/// What pages need to know of a file that its writer has not finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Live {
    pub(crate) state: LiveState,
    /// The last generations. Each has what the one before it had, before a moment relative to the origin.
    changes: VecDeque<(Generation, u64)>,
}

/// Whether a file still grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LiveState {
    Recording,
    /// Nobody writes it any more: the collector was killed, or the file is a copy.
    Stopped,
}

/// The number of a grid of a file. Its text is part of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Generation(pub(crate) u32);

/// Number of generations whose changes are known. A page that is further behind reloads everything.
const KNOWN_CHANGES: usize = 32;

impl Live {
    /// Of the first generation of a file.
    pub(crate) fn new(state: LiveState) -> Self {
        Live {
            state,
            changes: VecDeque::from([(Generation::FIRST, 0)]),
        }
    }

    /// The same with one generation more, which differs from a moment on.
    pub(crate) fn with_change(mut self, generation: Generation, from_nanos: u64) -> Self {
        self.changes.push_back((generation, from_nanos));
        if self.changes.len() > KNOWN_CHANGES {
            self.changes.pop_front();
        }
        self
    }

    /// The last generations, the newest last.
    pub(crate) fn changes(&self) -> impl Iterator<Item = (Generation, u64)> {
        self.changes.iter().copied()
    }
}

impl Ready {
    /// A trace with its first grid.
    pub(crate) fn new(trace: Arc<Trace>, grid: Arc<Grid>, generation: Generation) -> Self {
        Ready {
            trace,
            facts: Arc::new(Facts::default()),
            idle: Idle::Pending,
            live: None,
            grids: vec![(generation, grid)],
            continues: generation,
        }
    }

    /// The same trace with a predicted timeline, which never changes.
    pub(crate) fn predicted(&self, grid: Grid) -> Self {
        Ready {
            trace: Arc::clone(&self.trace),
            facts: Arc::clone(&self.facts),
            idle: Idle::None,
            live: None,
            grids: vec![(Generation::FIRST, Arc::new(grid))],
            continues: Generation::FIRST,
        }
    }

    /// The newest grid.
    pub(crate) fn grid(&self) -> &Arc<Grid> {
        let (_, grid) = self.grids.last().expect("a trace that is ready has a grid");
        grid
    }

    /// The generation of the newest grid.
    pub(crate) fn generation(&self) -> Generation {
        let (generation, _) = self.grids.last().expect("a trace that is ready has a grid");
        *generation
    }

    /// What distinguishes the content of this trace from that of the same file at other times.
    pub(crate) fn content(&self) -> Generation {
        let (generation, _) = self.grids.first().expect("a trace that is ready has a grid");
        *generation
    }

    /// The grid of a generation, and whether it stays what it is. For a generation of a growing file that is gone, the
    /// newest one has all that it had.
    pub(crate) fn grid_of(&self, generation: Generation) -> Option<(&Arc<Grid>, Keep)> {
        let exact = self.grids.iter().find(|(known, _)| *known == generation);
        if let Some((_, grid)) = exact {
            return Some((grid, Keep::Forever));
        }
        let is_older = (self.continues..self.generation()).contains(&generation);
        is_older.then(|| (self.grid(), Keep::No))
    }

    /// The same content as another generation.
    pub(crate) fn again(mut self) -> Self {
        self.grids
            .push((self.generation().next(), Arc::clone(self.grid())));
        self
    }

    /// The same with one grid more, with new rows of idle time from a moment on; or without such rows.
    pub(crate) fn with_idle(mut self, grid: Option<Grid>, from_nanos: u64) -> Self {
        match grid {
            Some(grid) => {
                let next = self.generation().next();
                self.grids.push((next, Arc::new(grid)));
                self.idle = Idle::Ready;
                self.live = self.live.map(|live| live.with_change(next, from_nanos));
            }
            None => self.idle = Idle::None,
        }
        self
    }
}

impl Generation {
    /// What a file has before it is read, and after that.
    pub(crate) const NONE: Self = Generation(0);
    pub(crate) const FIRST: Self = Generation(1);

    pub(crate) fn next(self) -> Self {
        Generation(self.0.saturating_add(1))
    }
}
