//! The answers that a first look wants, made in one go.

use serde::Serialize;

use super::copies::CopiesReport;
use super::critical_path::CriticalPathReport;
use super::findings::FindingsReport;
use super::idle::{IdleReport, IdleSums, StreamIdle};
use super::kernels::{KernelKey, KernelsReport};
use super::launches::LaunchesReport;
use super::memory::MemoryReport;
use super::slack::SlackReport;
use super::steps::StepsReport;
use super::utilization::UtilizationReport;
use super::what_if::{WhatIf, WhatIfReport};
use crate::error::Error;
use crate::model::trace::Trace;
use crate::reconstruct::{Activity, Dependencies, Doubts, Steps, Timeline, Window};

/// A trace with its work rebuilt and its steps found: what all answers start from.
#[derive(Debug)]
pub struct Analysis<'t> {
    /// The trace.
    pub trace: &'t Trace,
    /// What devices and host did.
    pub activity: Activity,
    /// The steps.
    pub steps: Steps,
}

/// The answers that a first look wants.
#[derive(Clone, Debug, Serialize)]
pub struct SummaryReport {
    /// First and last moment that was looked at; none in an empty trace.
    pub span_ns: Option<(u64, u64)>,
    /// What is doubtful.
    pub doubts: Doubts,
    /// How busy devices were.
    pub utilization: UtilizationReport,
    /// Why they were not.
    pub idle: IdleReport,
    /// The steps.
    pub steps: StepsReport,
    /// The kernels.
    pub kernels: KernelsReport,
    /// The copies.
    pub copies: CopiesReport,
    /// The launches.
    pub launches: LaunchesReport,
}

impl<'t> Analysis<'t> {
    /// Rebuilds what a stretch of a trace holds.
    pub fn of(trace: &'t Trace, window: Window) -> Result<Self, Error> {
        let activity = Activity::within(trace, window)?;
        let steps = Steps::of(trace, &activity)?.within(&window);
        Ok(Analysis {
            trace,
            activity,
            steps,
        })
    }

    /// Rebuilds what one step holds, and has this step alone: none are searched for inside it. `None` when there is no
    /// such step.
    pub fn only_step(&self, number: usize) -> Result<Option<Self>, Error> {
        let Some(steps) = self.steps.only(number) else {
            return Ok(None);
        };
        let step = &steps.steps[0];
        let window = Window {
            from: Some(step.start_ns),
            to: Some(step.end_ns),
        };
        Ok(Some(Analysis {
            trace: self.trace,
            activity: Activity::within(self.trace, window)?,
            steps,
        }))
    }

    /// Everything that a first look wants. What is independent of each other is worked out at once.
    pub fn summary(&self) -> Result<SummaryReport, Error> {
        let (swept, (kernels, copies, launches)) = rayon::join(
            || self.swept(),
            || (self.kernels(KernelKey::Name), self.copies(), self.launches()),
        );
        let (utilization, idle, steps) = swept;
        Ok(SummaryReport {
            span_ns: self.activity.span,
            doubts: self.activity.doubts.clone(),
            utilization,
            idle,
            steps,
            kernels,
            copies: copies?,
            launches,
        })
    }

    /// How busy devices were, why they were not, and the steps: all from one sweep.
    pub fn swept(&self) -> (UtilizationReport, IdleReport, StepsReport) {
        let mut sums = IdleSums::default();
        let timeline = Timeline::swept(&self.activity, &self.steps.moments(), |gap| {
            sums.add(&self.activity, gap)
        });
        (
            UtilizationReport::of(self.trace, &self.activity, &timeline),
            sums.report(self.trace, &self.activity, &timeline),
            StepsReport::of(&self.activity, &self.steps, &timeline),
        )
    }

    /// Why devices and streams had nothing to do.
    pub fn idle(&self) -> IdleReport {
        let (_, mut report, _) = self.swept();
        report.streams = StreamIdle::of(&self.activity, &Dependencies::of(&self.activity));
        report
    }

    /// The kernel table.
    pub fn kernels(&self, by: KernelKey) -> KernelsReport {
        KernelsReport::of(self.trace, &self.activity, by, Some(&self.steps))
    }

    /// The copies.
    pub fn copies(&self) -> Result<CopiesReport, Error> {
        CopiesReport::of(self.trace, &self.activity.window)
    }

    /// The critical path.
    pub fn critical_path(&self) -> CriticalPathReport {
        CriticalPathReport::of(self.trace, &self.activity)
    }

    /// How much later each piece of work could have ended.
    pub fn slack(&self) -> SlackReport<'_> {
        SlackReport::of(self.trace, &self.activity)
    }

    /// What the time would have been.
    pub fn what_if(&self, what_if: &WhatIf<'_>) -> WhatIfReport {
        WhatIfReport::of(self.trace, &self.activity, what_if)
    }

    /// What is wrong, by a summary that was made before.
    pub fn findings(&self, summary: &SummaryReport) -> Result<FindingsReport, Error> {
        // Leaks and bad releases are of the whole trace: what a stretch of it holds may be given back behind it.
        let memory = MemoryReport::of(self.trace, Window::default())?;
        Ok(FindingsReport::of(self.trace, &self.activity, summary, &memory))
    }

    /// The launches.
    pub fn launches(&self) -> LaunchesReport {
        LaunchesReport::of(self.trace, &self.activity)
    }
}
