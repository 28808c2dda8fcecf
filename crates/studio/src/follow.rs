//! Follows a trace that is being written: reads it again when it has grown, and notifies the pages.
//!
//! The slices of a track are put in lanes by their starts, and a range that lasted long is written when it ends. So
//! rows cannot just be continued, and each time all blocks are read. One thread does this, and takes a part of its
//! time only: the program that is being recorded needs the cores.

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rayon::{ThreadPool, ThreadPoolBuilder};
use rustix::time::{ClockId, clock_gettime};
use tracesmith_trace::Trace;
use tracesmith_trace::grid::{Grid, GridOptions};

use crate::facts::Facts;
use crate::identity::{Identity, Known};
use crate::idle::{IdleTrack, first_difference, idle_tracks, with_tracks};
use crate::opened::{Opened, State};
use crate::reading::{checked, unreadable};
use crate::ready::{Idle, LiveState, Ready};
use crate::reply::Failure;
use crate::writer::Writer;

/// Time between two looks at the file. A look asks the file system a few questions.
const LOOK_PERIOD: Duration = Duration::from_millis(200);
/// The least time between two readings. A collector writes once a second.
const READ_PERIOD: Duration = Duration::from_millis(400);
/// The same for causes of idle time, which take longer to find.
const IDLE_PERIOD: Duration = Duration::from_secs(1);
/// The part of one core that readings take is one in so many, and that of causes of idle time: 20 % together.
const READ_SHARE: u32 = 7;
const IDLE_SHARE: u32 = 18;
/// Rows do not wait for causes of idle time that take longer to find.
const QUICK: Duration = Duration::from_millis(100);
/// Nothing is read after this time without a request.
const WATCHED_FOR: Duration = Duration::from_secs(10);

/// Follows one file.
pub(crate) struct Follower<'a> {
    opened: &'a Arc<Opened>,
    ready: Ready,
    /// The random number of the trace.
    number: [u8; 16],
    /// The size of the file when it was last looked at, and when it was last read.
    seen_bytes: u64,
    read_bytes: u64,
    /// The end was seen, but the writer may not be done.
    may_be_finished: bool,
    writer: Writer,
    pool: ThreadPool,
    reading: Pace,
    idle: Pace,
    gaps: Vec<IdleTrack>,
}

/// Whether to look at a file again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Course {
    Continue,
    End,
}

impl<'a> Follower<'a> {
    /// Nothing if the file cannot grow.
    pub(crate) fn of(opened: &'a Arc<Opened>, ready: Ready, gaps: Vec<IdleTrack>) -> Option<Self> {
        let Known::Growing(_, number) = opened.known() else {
            return None;
        };
        let pool = ThreadPoolBuilder::new()
            .num_threads(1)
            .thread_name(|_| "studio-follow".to_owned());
        let bytes = ready.trace.file_bytes();
        Some(Follower {
            opened,
            ready,
            number,
            seen_bytes: bytes,
            read_bytes: bytes,
            may_be_finished: false,
            writer: Writer::new(),
            // Without another thread, the page shows what there is.
            pool: pool.build().ok()?,
            reading: Pace::new(READ_PERIOD, READ_SHARE),
            idle: Pace::new(IDLE_PERIOD, IDLE_SHARE),
            gaps,
        })
    }

    /// Follows the file until it is finished or lost, or is not open any longer.
    pub(crate) fn run(mut self) {
        while !self.opened.cancel.is_cancelled() {
            thread::sleep(LOOK_PERIOD);
            match self.look() {
                Ok(Course::Continue) => {}
                Ok(Course::End) => return,
                Err(failure) => return self.opened.set(State::Failed(failure)),
            }
        }
    }

    fn path(&self) -> &'a Path {
        &self.opened.path
    }

    fn look(&mut self) -> Result<Course, Failure> {
        let now = Identity::of(self.path()).ok().flatten();
        let now = now.filter(|_| !self.opened.known().differs_from(self.path()));
        let Some(now) = now else {
            return Ok(self.lose());
        };
        if now.bytes() > self.seen_bytes {
            self.seen_bytes = now.bytes();
            self.writer.note_growth();
        }
        let state = match self.writer.is_there(self.path()) {
            true => LiveState::Recording,
            false => LiveState::Stopped,
        };
        if self.seen_bytes > self.read_bytes || self.may_be_finished {
            let is_watched = self.opened.tabs.idle() < WATCHED_FOR;
            return match is_watched && self.reading.is_due() {
                true => self.read(now, state),
                false => Ok(Course::Continue),
            };
        }
        if self.ready.live.as_ref().is_some_and(|live| live.state != state) {
            self.show_state(state);
        }
        Ok(Course::Continue)
    }

    /// The file is not the one that was read.
    fn lose(&self) -> Course {
        self.opened.lose();
        Course::End
    }

    /// The same content, with or without somebody who adds to it.
    fn show_state(&mut self, state: LiveState) {
        let mut ready = self.ready.clone().again();
        let generation = ready.generation();
        ready.live = ready.live.map(|live| {
            let mut live = live.with_change(generation, u64::MAX);
            live.state = state;
            live
        });
        self.show(ready);
    }

    fn read(&mut self, now: Identity, state: LiveState) -> Result<Course, Failure> {
        let began = Instant::now();
        let path = self.path();
        let (earlier, like) = (Arc::clone(&self.ready.trace), Arc::clone(self.ready.grid()));
        let cancel = self.opened.cancel.clone();
        let (read, cost) = on_thread(&self.pool, || {
            let trace = Arc::new(Trace::open_grown(path, &earlier)?);
            let options = GridOptions {
                like: Some(like),
                cancel,
                ..GridOptions::default()
            };
            let grid = Grid::new(&trace, options)?;
            Ok::<_, tracesmith_trace::Error>((trace, grid))
        });
        self.reading.note(began, cost);
        let (trace, grid) = read.map_err(|error| unreadable(self.opened, &error))?;
        let Some(header) = trace.header() else {
            // It is being written again, at the end of the recording.
            return Ok(Course::Continue);
        };
        if header.id != self.number || has_new_damage(&earlier, &trace) {
            return Ok(self.lose());
        }
        let has_end = !trace.is_unfinished();
        let is_written = header.file_length != 0 || state == LiveState::Stopped;
        let is_finished = has_end && is_written && Identity::of(path).ok().flatten() == Some(now);
        self.may_be_finished = has_end && !is_finished;
        self.read_bytes = trace.file_bytes();
        self.opened.know(match is_finished {
            true => Known::Whole(now),
            false => Known::Growing(now, self.number),
        });
        let next = self.next(trace, grid, (!is_finished).then_some(state));
        if is_finished {
            self.show(next.clone());
            // Nobody else needs the cores now.
            let gaps = idle_tracks(&next.trace, &next.facts);
            self.show_idle(checked(self.opened, next), gaps.unwrap_or_default());
        } else if self.idle.is_due() {
            self.find_idle(next);
        } else {
            self.show(next);
        }
        Ok(match is_finished {
            true => Course::End,
            false => Course::Continue,
        })
    }

    /// What was read, after what was read before.
    fn next(&self, trace: Arc<Trace>, grid: Grid, state: Option<LiveState>) -> Ready {
        let before = &self.ready;
        let generation = before.generation().next();
        let is_continued = grid.continues(before.grid());
        let changed_from = match is_continued {
            true => first_change(&before.trace, &trace).saturating_sub(grid.origin()),
            false => 0,
        };
        let mut ready = Ready::new(trace, Arc::new(grid), generation);
        if is_continued {
            ready.continues = before.continues;
            ready.idle = match state {
                // They may be a little behind while the trace grows.
                Some(_) => before.idle,
                None => Idle::Pending,
            };
        }
        let live = before.live.clone().zip(state);
        ready.live = live.map(|(live, state)| {
            let mut live = live.with_change(generation, changed_from);
            live.state = state;
            live
        });
        ready
    }

    fn show(&mut self, ready: Ready) {
        self.ready = ready;
        self.opened.set(State::Ready(self.ready.clone()));
    }

    /// Finds out again why devices were idle. Rows wait for it if it is quick.
    fn find_idle(&mut self, next: Ready) {
        if self.idle.cost > QUICK {
            self.show(next.clone());
        }
        let began = Instant::now();
        // What was rebuilt is not kept: it takes more memory than the rows.
        let (gaps, cost) = on_thread(&self.pool, || idle_tracks(&next.trace, &Facts::default()));
        self.idle.note(began, cost);
        self.show_idle(next, gaps.unwrap_or_default());
    }

    fn show_idle(&mut self, next: Ready, gaps: Vec<IdleTrack>) {
        let grid = next.grid();
        let from = first_difference(&self.gaps, &gaps).saturating_sub(grid.origin());
        let with_idle = with_tracks(grid, &gaps);
        self.gaps = gaps;
        self.show(next.with_idle(with_idle, from));
    }
}

/// When something may be done again that takes time.
struct Pace {
    least: Duration,
    /// It takes one part in so many of a core.
    share: u32,
    next: Instant,
    /// What it took the last time.
    cost: Duration,
}

impl Pace {
    fn new(least: Duration, share: u32) -> Self {
        Pace {
            least,
            share,
            next: Instant::now(),
            cost: Duration::ZERO,
        }
    }

    fn is_due(&self) -> bool {
        Instant::now() >= self.next
    }

    /// It began at a moment and took so much time of a core.
    fn note(&mut self, began: Instant, cost: Duration) {
        self.next = began + self.least.max(cost * self.share);
        self.cost = cost;
    }
}

/// Runs work on the only thread of a pool, and tells how much time of a core it took.
fn on_thread<T: Send>(pool: &ThreadPool, work: impl FnOnce() -> T + Send) -> (T, Duration) {
    let spent = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        Duration::try_from(time).unwrap_or_default()
    };
    pool.install(|| {
        let before = spent();
        let result = work();
        (result, spent().saturating_sub(before))
    })
}

/// Whether blocks that could be read before cannot be read now.
fn has_new_damage(earlier: &Trace, now: &Trace) -> bool {
    let last = earlier.blocks().last();
    let end = last.map_or(0, |block| block.offset + block.header.total_length());
    let known = earlier.health().damage;
    let damage = now.health().damage;
    damage.iter().any(|one| one.offset < end && !known.contains(one))
}

/// The first moment at which a trace differs from what it was before: of new events, or of times that are converted in
/// another way because more is known of their clock.
fn first_change(before: &Trace, now: &Trace) -> u64 {
    let (old, new) = now
        .blocks()
        .split_at(before.blocks().len().min(now.blocks().len()));
    let new = new.iter().map(|block| now.block_span(block).0);
    let moved = old.iter().filter_map(|block| {
        let spans = [before.block_span(block), now.block_span(block)];
        (spans[0] != spans[1]).then(|| spans[0].0.min(spans[1].0))
    });
    let is_known = |moment: &tracesmith_format::Timestamp| moment.is_some();
    new.chain(moved)
        .filter(is_known)
        .map(|moment| moment.0)
        .min()
        .unwrap_or(u64::MAX)
}
