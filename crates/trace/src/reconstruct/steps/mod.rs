//! The iterations of a program: marked by itself or by its framework, or seen in the kernels that repeat.
//!
//! Steps are found in each process. Steps of several ranks that run at the same time are then joined to one.

mod joined;
mod layers;
mod marked;
mod pattern;
mod warm_up;

use serde::Serialize;
use tracesmith_format::ProcessId;

use super::activity::{Activity, Window};
use super::ops::OpId;
use crate::error::Error;
use crate::model::trace::Trace;

use joined::Names;
pub(super) use marked::Range;

/// How steps were found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum StepSource {
    /// Ranges of this name, which the program or its framework marked.
    Markers {
        /// What their names have in common.
        name: String,
        /// Whether they are NVTX ranges, not ranges of another profiler.
        is_nvtx: bool,
    },
    /// Calls of the optimizer, each of which ends a step.
    Optimizer {
        /// The name of the calls.
        name: String,
    },
    /// Calls that load a batch, each of which begins a step.
    DataLoader {
        /// The name of the calls.
        name: String,
    },
    /// A kernel that comes once in each repetition of the others.
    Pattern {
        /// Its name.
        anchor: String,
        /// GPU operations of a repetition: kernels, memcpys and memsets.
        kernels: usize,
    },
    /// None were found.
    None,
}

/// One iteration, of all ranks that took part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// Its name.
    pub name: String,
    /// Its place among all steps of the trace.
    #[serde(skip)]
    pub number: usize,
    /// When its first part began.
    pub start_ns: u64,
    /// When its last part ended.
    pub end_ns: u64,
    /// Whether the program was still warming up.
    pub is_warm_up: bool,
    /// Whether the trace does not show where it ends. Statistics leave it out.
    pub is_cut_off: bool,
    /// What each process did of it, by process.
    pub parts: Vec<StepPart>,
}

impl Step {
    /// How long it took.
    pub fn duration(&self) -> u64 {
        self.end_ns - self.start_ns
    }

    /// Whether it counts in statistics.
    pub fn is_settled(&self) -> bool {
        !self.is_warm_up && !self.is_cut_off
    }

    /// Whether a process took part.
    pub fn has(&self, process: ProcessId) -> bool {
        self.parts.iter().any(|part| part.process == process.0)
    }
}

/// A step as one process saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct StepPart {
    /// The process.
    pub process: u32,
    /// Its rank in a distributed job.
    pub rank: Option<u32>,
    /// When it began.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
}

/// The iterations of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steps {
    /// How they were found.
    pub source: StepSource,
    /// All of them, by time. Steps of a process do not overlap.
    pub steps: Vec<Step>,
    settled: Vec<u32>,
    belongs: Belongs,
    /// Process, start, end and step of every part, sorted: the index for look-ups by time.
    parts: Vec<(ProcessId, u64, u64, u32)>,
}

/// What decides which step an op belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Belongs {
    /// When it was launched.
    Asked,
    /// When it began: for steps whose calls are not all known.
    Begun,
}

/// An iteration of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Found {
    process: ProcessId,
    name: String,
    start: u64,
    end: u64,
    /// Whether the trace does not show where it ends.
    is_cut_off: bool,
}

impl Steps {
    /// Finds them: by markers, else by pattern.
    pub fn of(trace: &Trace, activity: &Activity) -> Result<Self, Error> {
        let ranges = marked::ranges(trace, &activity.selected)?;
        if let Some((source, found)) = marked::find(trace, activity, &ranges) {
            let mut steps = Self::new(trace, source, found, Belongs::Asked);
            steps.cut_off_empty_end(activity);
            return Ok(steps);
        }
        Ok(match pattern::find(trace, activity, &ranges) {
            Some((source, found, belongs)) => Self::new(trace, source, found, belongs),
            None => Self::of_marked(StepSource::None, Vec::new(), Belongs::Asked),
        })
    }

    /// A profiler that stops within a step leaves a range in which nothing is launched.
    fn cut_off_empty_end(&mut self, activity: &Activity) {
        let Some((last, others)) = self.steps.split_last_mut() else {
            return;
        };
        let launched = |step: &Step| {
            let ops = &activity.ops;
            // What a step launches starts in it or after it.
            let first = ops.start.partition_point(|start| *start < step.start_ns);
            ops.ids().skip(first).any(|op| {
                let time = activity.asked(op);
                let process = activity.lane(ops.lane[op.index()]).process;
                (step.start_ns..step.end_ns).contains(&time) && step.has(process)
            })
        };
        if others.last().is_some_and(launched) && !launched(last) {
            last.is_cut_off = true;
            let last = others.len() as u32;
            self.settled.retain(|step| *step != last);
        }
    }

    fn new(trace: &Trace, source: StepSource, found: Vec<Found>, belongs: Belongs) -> Self {
        let rank_of = |process: ProcessId| trace.process(process).and_then(|process| process.rank.get());
        let names = match source {
            StepSource::Markers { .. } => Names::Marked,
            _ => Names::Counted,
        };
        let mut steps = joined::join(found, names, rank_of);
        warm_up::mark(&mut steps);
        for (number, step) in steps.iter_mut().enumerate() {
            step.number = number;
        }
        Self::of_marked(source, steps, belongs)
    }

    /// Of steps that are in order, numbered, and known to be of the warm-up or cut off or not.
    fn of_marked(source: StepSource, steps: Vec<Step>, belongs: Belongs) -> Self {
        let settled = (0..steps.len() as u32)
            .filter(|at| steps[*at as usize].is_settled())
            .collect();
        let mut parts: Vec<_> = (0u32..)
            .zip(&steps)
            .flat_map(|(at, step)| {
                let part = move |part: &StepPart| (ProcessId(part.process), part.start_ns, part.end_ns, at);
                step.parts.iter().map(part)
            })
            .collect();
        parts.sort_unstable();
        Steps {
            source,
            steps,
            settled,
            belongs,
            parts,
        }
    }

    /// The steps that are in a window as a whole. Of any other, only a part of the work is in the activity.
    pub fn within(self, window: &Window) -> Self {
        let is_inside = |step: &Step| {
            window.from.is_none_or(|from| from <= step.start_ns)
                && window.to.is_none_or(|to| step.end_ns <= to)
        };
        let steps = self.steps.into_iter().filter(is_inside).collect();
        Self::of_marked(self.source, steps, self.belongs)
    }

    /// One step alone: its place in `steps`.
    pub fn only(&self, place: usize) -> Option<Self> {
        let step = self.steps.get(place)?.clone();
        Some(Self::of_marked(self.source.clone(), vec![step], self.belongs))
    }

    /// Those after the warm-up that are not cut off: places in `steps`.
    pub fn settled(&self) -> &[u32] {
        &self.settled
    }

    /// The time of a process in the steps that count in statistics.
    pub fn settled_nanos(&self, process: ProcessId) -> u64 {
        let settled = self.settled.iter().map(|at| &self.steps[*at as usize]);
        let parts = settled.flat_map(|step| &step.parts);
        let parts = parts.filter(|part| part.process == process.0);
        parts.map(|part| part.end_ns - part.start_ns).sum()
    }

    /// The processes that have steps.
    pub fn processes(&self) -> usize {
        self.parts.chunk_by(|a, b| a.0 == b.0).count()
    }

    /// The step in which a process was at a moment: a place in `steps`.
    pub fn at(&self, process: ProcessId, time: u64) -> Option<u32> {
        let after = self
            .parts
            .partition_point(|(of, start, ..)| (*of, *start) <= (process, time));
        let (of, _, end, step) = *self.parts.get(after.checked_sub(1)?)?;
        (of == process && time < end).then_some(step)
    }

    /// The steps that a time range of a process reaches into, each with the part of the range that is in it.
    pub(crate) fn during(
        &self,
        process: ProcessId,
        from: u64,
        to: u64,
    ) -> impl Iterator<Item = (u32, u64, u64)> + '_ {
        let first = self
            .parts
            .partition_point(|(of, _, end, _)| (*of, *end) <= (process, from));
        self.parts[first..]
            .iter()
            .take_while(move |(of, start, ..)| *of == process && *start < to)
            .map(move |(_, start, end, step)| (*step, from.max(*start), to.min(*end)))
    }

    /// The step that launched an op, or in which it ran when the call is not known.
    pub fn of_op(&self, activity: &Activity, op: OpId) -> Option<u32> {
        let at = op.index();
        let call = activity.ops.call[at];
        let time = match call.is_some() && self.belongs == Belongs::Asked {
            true => activity.calls.start[call.index()],
            false => activity.ops.start[at],
        };
        self.at(activity.lane(activity.ops.lane[at]).process, time)
    }

    /// The same, unless the program was still warming up or the step is cut off.
    pub fn settled_of(&self, activity: &Activity, op: OpId) -> Option<u32> {
        self.of_op(activity, op)
            .filter(|step| self.steps[*step as usize].is_settled())
    }

    /// Starts and ends of all, sorted: the moments between which a timeline is to be counted apart.
    pub fn moments(&self) -> Vec<u64> {
        let mut moments: Vec<u64> = self
            .steps
            .iter()
            .flat_map(|step| [step.start_ns, step.end_ns])
            .collect();
        moments.sort_unstable();
        moments.dedup();
        moments
    }
}
