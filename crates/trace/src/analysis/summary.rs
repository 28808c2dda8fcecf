//! The analysis of a trace or of a part of it, and the summary of what it finds.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::cache::Parts;
use super::copies::CopiesReport;
use super::critical_path::CriticalPathReport;
use super::findings::FindingsReport;
use super::host_activity::{HostActivityReport, HostTime};
use super::host_places::HostPlaces;
use super::idle::{IdleReport, IdleSums, StreamIdle};
use super::kernels::{KernelKey, KernelsReport};
use super::launches::LaunchesReport;
use super::memory::MemoryReport;
use super::slack::SlackReport;
use super::steps::StepsReport;
use super::utilization::UtilizationReport;
use super::what_if::{self, Simulation, WhatIf, WhatIfReport};
use crate::error::Error;
use crate::model::trace::Trace;
use crate::reconstruct::{
    Activity, DataQuality, Dependencies, ExecutionGraph, Predicted, States, Steps, Timeline, Watch, Window,
};
use crate::selection::Selection;

/// A time range of a trace with its ops, calls and steps: the input of every analysis.
///
/// It owns its trace, and a clone shares everything with the original. Each result is computed when it is first needed.
/// The trace keeps the results of the last few time ranges, so a second `Analysis` of the same range costs nothing.
#[derive(Clone, Debug)]
pub struct Analysis {
    /// The trace.
    pub trace: Arc<Trace>,
    /// What devices and host did.
    pub activity: Arc<Activity>,
    /// The steps.
    pub steps: Arc<Steps>,
    parts: Arc<Parts>,
}

/// How busy devices were, why they were not, and the steps: all from one pass over the ops.
#[derive(Clone, Debug)]
pub struct Swept {
    /// How busy devices were.
    pub utilization: UtilizationReport,
    /// Why they were not, by device.
    pub idle: IdleReport,
    /// The steps.
    pub steps: StepsReport,
}

/// The answers that a first look wants.
#[derive(Clone, Debug, Serialize)]
pub struct SummaryReport {
    /// First and last moment that was looked at; none in an empty trace.
    pub span_ns: Option<(u64, u64)>,
    /// The analyzed time, which all shares of time refer to: from the first to the last GPU work, or as selected.
    pub analyzed_ns: (u64, u64),
    /// What is doubtful.
    pub doubts: DataQuality,
    /// How busy devices were.
    pub utilization: UtilizationReport,
    /// Why they were not.
    pub idle: IdleReport,
    /// What the CPU did while GPUs waited for it.
    pub host: HostTime,
    /// The steps.
    pub steps: StepsReport,
    /// The kernels.
    pub kernels: KernelsReport,
    /// The copies.
    pub copies: CopiesReport,
    /// The launches.
    pub launches: LaunchesReport,
}

impl Analysis {
    /// Analyzes a time range of a trace.
    pub fn of(trace: &Arc<Trace>, window: Window) -> Result<Self, Error> {
        Self::selected(trace, window, &Selection::default())
    }

    /// Analyzes what a time range has of a selection. Steps are those of the selected processes.
    pub fn selected(trace: &Arc<Trace>, window: Window, selection: &Selection) -> Result<Self, Error> {
        let parts = trace.parts(window, selection)?;
        let steps = parts.steps.get_or_try(|| {
            let whole = parts.activity.selected.whole_processes();
            match whole == *selection {
                true => Ok(Steps::of(trace, &parts.activity)?.within(&window)),
                false => Ok((*Self::selected(trace, window, &whole)?.steps).clone()),
            }
        })?;
        Ok(Self::with(trace, parts, steps))
    }

    /// Forgets the results that a trace keeps and that nobody has asked for since so long. They take more memory than
    /// the trace itself. An analysis that somebody has stays.
    pub fn forget_unused(trace: &Trace, unused: Duration) {
        trace.parts.forget(unused);
    }

    /// Analyzes one step of a trace. Steps are counted from 0.
    pub fn of_step(trace: &Arc<Trace>, number: usize) -> Result<Self, Error> {
        Self::selected_step(trace, number, &Selection::default())
    }

    /// Analyzes what one step has of a selection.
    pub fn selected_step(trace: &Arc<Trace>, number: usize, selection: &Selection) -> Result<Self, Error> {
        let whole = Self::selected(trace, Window::default(), selection)?;
        whole.only_step(number)?.ok_or(Error::NoSuchStep {
            number,
            steps: whole.steps.steps.len(),
        })
    }

    /// Analyzes one step, and has this step alone: none are searched for inside it. `None` when there is no such step.
    pub fn only_step(&self, number: usize) -> Result<Option<Self>, Error> {
        let Some(steps) = self.steps.only(number) else {
            return Ok(None);
        };
        let step = &steps.steps[0];
        let window = Window {
            from: Some(step.start_ns),
            to: Some(step.end_ns),
        };
        // Numbers of steps count in the range that was analyzed, which the times of the step make unique.
        let selection = self.activity.selected.selection();
        let parts = self
            .trace
            .parts
            .get_or_try((window, Some(number), selection.clone()), || {
                Ok(Parts::of(Activity::selected(&self.trace, window, selection)?))
            })?;
        let steps = parts.steps.get_or(|| steps);
        Ok(Some(Self::with(&self.trace, parts, steps)))
    }

    fn with(trace: &Arc<Trace>, parts: Arc<Parts>, steps: Arc<Steps>) -> Self {
        Analysis {
            trace: Arc::clone(trace),
            activity: Arc::clone(&parts.activity),
            steps,
            parts,
        }
    }

    /// The summary. Parts that do not depend on each other are computed at the same time.
    pub fn summary(&self) -> Result<SummaryReport, Error> {
        let ((swept, host), (kernels, copies, launches)) = rayon::join(
            || (self.swept(), self.host_in_gaps()),
            || (self.kernels(KernelKey::Name), self.copies(), self.launches()),
        );
        Ok(SummaryReport {
            span_ns: self.activity.span,
            analyzed_ns: self.activity.base,
            doubts: self.activity.doubts.clone(),
            utilization: swept.utilization.clone(),
            idle: swept.idle.clone(),
            host: (*host?).clone(),
            steps: swept.steps.clone(),
            kernels: (*kernels).clone(),
            copies: (*copies?).clone(),
            launches: (*launches).clone(),
        })
    }

    /// How busy devices were, why they were not, and the steps: all from one pass over the ops.
    pub fn swept(&self) -> Arc<Swept> {
        self.parts.swept.get_or(|| {
            let mut sums = IdleSums::default();
            let timeline = Timeline::swept(&self.activity, &self.steps.moments(), |gap| {
                sums.add(&self.activity, gap)
            });
            Swept {
                utilization: UtilizationReport::of(&self.trace, &self.activity, &timeline),
                idle: match self.activity.selected.shared_device() {
                    // Other work ran in the gaps: they are no idle time of the device.
                    Some(_) => IdleReport::default(),
                    None => sums.report(&self.trace, &self.activity, &timeline),
                },
                steps: StepsReport::of(&self.activity, &self.steps, &timeline),
            }
        })
    }

    /// Why devices and streams had nothing to do.
    pub fn idle(&self) -> Arc<IdleReport> {
        self.parts.idle.get_or(|| IdleReport {
            streams: StreamIdle::of(&self.activity, &self.dependencies()),
            ..self.swept().idle.clone()
        })
    }

    /// What the CPU did while GPUs waited for it.
    pub fn host_activity(&self) -> Result<Arc<HostActivityReport>, Error> {
        Ok(Arc::new(HostActivityReport {
            idle: self.host_in_gaps()?,
            critical_path: self.host_on_path()?,
        }))
    }

    /// What the CPU did while GPUs were idle and it was busy between calls.
    pub fn host_in_gaps(&self) -> Result<Arc<HostTime>, Error> {
        self.parts
            .host_in_gaps
            .get_or_try(|| match self.activity.selected.shared_device() {
                Some(_) => Ok(HostTime::default()),
                None => HostTime::of_gaps(&self.trace, &self.activity),
            })
    }

    /// What the CPU did in its part of the critical path.
    pub fn host_on_path(&self) -> Result<Arc<HostTime>, Error> {
        self.parts.host_on_path.get_or_try(|| {
            let whole = self.whole();
            let places = HostPlaces::of(&self.trace, &whole.activity)?;
            let graph = whole.execution_graph();
            let window = self.activity.window;
            Ok(HostTime::of_path(
                &self.trace,
                &whole.activity,
                &*graph,
                window,
                &places,
            ))
        })
    }

    /// The kernel table.
    pub fn kernels(&self, by: KernelKey) -> Arc<KernelsReport> {
        self.parts.kernels[by as usize]
            .get_or(|| KernelsReport::of(&self.trace, &self.activity, by, Some(&self.steps)))
    }

    /// The copies.
    pub fn copies(&self) -> Result<Arc<CopiesReport>, Error> {
        self.parts
            .copies
            .get_or_try(|| CopiesReport::of(&self.trace, &self.activity.window, &self.activity.selected))
    }

    /// The launches.
    pub fn launches(&self) -> Arc<LaunchesReport> {
        self.parts
            .launches
            .get_or(|| LaunchesReport::of(&self.trace, &self.activity, Some(&self.steps)))
    }

    /// The allocations and frees of the time range.
    pub fn memory(&self) -> Result<Arc<MemoryReport>, Error> {
        self.parts
            .memory
            .get_or_try(|| MemoryReport::selected(&self.trace, self.activity.window, &self.activity.selected))
    }

    /// What had to be over before something could start.
    pub fn dependencies(&self) -> Arc<Dependencies> {
        self.parts
            .dependencies
            .get_or(|| Dependencies::of(&self.activity))
    }

    /// The dependency graph of host and devices.
    pub fn execution_graph(&self) -> Arc<ExecutionGraph> {
        self.parts
            .execution_graph
            .get_or(|| ExecutionGraph::of(&self.activity, &self.dependencies()))
    }

    /// What every stream, context and device did at every time.
    pub fn states(&self) -> Arc<States> {
        self.parts
            .states
            .get_or(|| States::of(&self.activity, &self.dependencies()))
    }

    /// The analysis of the same selection over the whole time. What held up a step may lie before it, and what the step
    /// holds up may lie after it.
    fn whole(&self) -> Self {
        match self.activity.window == Window::default() {
            true => self.clone(),
            // A trace that is too large as a whole is analyzed in part.
            false => Self::selected(&self.trace, Window::default(), self.activity.selected.selection())
                .unwrap_or_else(|_| self.clone()),
        }
    }

    /// The critical path: of a time range the part of the whole trace's path that lies in it.
    pub fn critical_path(&self) -> Arc<CriticalPathReport> {
        self.parts.critical_path.get_or(|| {
            let whole = self.whole();
            CriticalPathReport::of(
                &self.trace,
                &whole.activity,
                &whole.dependencies(),
                &whole.execution_graph(),
                self.activity.window,
            )
        })
    }

    /// How much later each op could have ended without delaying the end of the trace.
    pub fn slack(&self) -> Arc<SlackReport> {
        self.parts.slack.get_or(|| {
            let whole = self.whole();
            let graph = whole.execution_graph();
            SlackReport::of(&self.trace, &whole.activity, &graph, self.activity.window)
        })
    }

    /// What the time would have been.
    pub fn what_if(&self, what_if: &WhatIf) -> Result<WhatIfReport, Error> {
        let whole = self.whole();
        // A simulation is often followed by others.
        let places = whole
            .parts
            .host_places
            .get_or_try(|| HostPlaces::of(&self.trace, &whole.activity))?;
        let simulation = Simulation {
            trace: &self.trace,
            graph: &whole.execution_graph(),
            dependencies: &whole.dependencies(),
            steps: &self.steps,
            places: &places,
        };
        WhatIfReport::of(&simulation, what_if, self.activity.window)
    }

    /// When every op and call of the whole trace would have been. `watch` is called now and then, and can end the work.
    pub fn predicted(&self, what_if: &WhatIf, watch: &Watch<'_>) -> Result<Predicted, Error> {
        let graph = self.whole().execution_graph();
        let (predicted, _) = what_if::predicted(&self.trace, &graph, (what_if, Window::default()), watch)?;
        Ok(predicted)
    }

    /// What is wrong, by a summary that was made before.
    pub fn findings(&self, summary: &SummaryReport) -> Result<FindingsReport, Error> {
        // Leaks and bad frees are those of the whole trace: an allocation of a part may be freed after it.
        let memory = match self.activity.window == Window::default() {
            true => self.memory()?,
            false => {
                let selected = &self.activity.selected;
                Arc::new(MemoryReport::selected(&self.trace, Window::default(), selected)?)
            }
        };
        Ok(FindingsReport::of(&self.trace, &self.activity, summary, &memory))
    }
}

impl Trace {
    /// What the devices and the host did, of the whole trace; computed once.
    pub fn activity(&self) -> Result<Arc<Activity>, Error> {
        let parts = self.parts(Window::default(), &Selection::default())?;
        Ok(Arc::clone(&parts.activity))
    }

    fn parts(&self, window: Window, selection: &Selection) -> Result<Arc<Parts>, Error> {
        self.parts.get_or_try((window, None, selection.clone()), || {
            Ok(Parts::of(Activity::selected(self, window, selection)?))
        })
    }
}
