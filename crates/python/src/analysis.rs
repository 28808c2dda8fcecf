//! Analyses. Results travel as JSON, the same that the command prints; the package makes typed objects of it.

use pyo3::prelude::*;
use serde::Serialize;
use tracesmith_trace::analysis::{
    self, AnalysisOptions, Analyzer, CopiesReport, DiffKey, DiffReport, Finding, HostTime, IdleReport,
    KernelsReport, LaunchesReport, PatternTarget, StepsReport, UnmatchedPattern, UtilizationReport, WhatIf,
};
use tracesmith_trace::reconstruct::{DataQuality, Window};
use tracesmith_trace::{Error, Wanted};

use crate::error::{NativeError, UsageError, sentence, trace_error};
use crate::job;
use crate::trace::Trace;

/// A part of a trace that is analyzed: a time range or a step, of some processes, GPUs and streams.
#[pyclass(frozen, module = "tracesmith._native")]
pub(crate) struct Analysis {
    analysis: analysis::Analysis,
}

#[pymethods]
impl Analysis {
    /// Prepares the analysis of a part of a trace.
    #[new]
    #[pyo3(signature = (trace, *, step=None, start=None, end=None, processes=Vec::new(), ranks=Vec::new(), devices=Vec::new(), streams=Vec::new()))]
    #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn new(
        py: Python<'_>,
        trace: &Trace,
        step: Option<usize>,
        start: Option<u64>,
        end: Option<u64>,
        processes: Vec<String>,
        ranks: Vec<u32>,
        devices: Vec<String>,
        streams: Vec<u64>,
    ) -> PyResult<Self> {
        let trace = std::sync::Arc::clone(&trace.trace);
        let wanted = Wanted {
            processes,
            ranks,
            devices,
            streams,
        };
        let window = Window { from: start, to: end };
        let analysis = job::run(py, None, move |_| {
            let selection = wanted.in_trace(&trace)?;
            match step {
                Some(number) => analysis::Analysis::selected_step(&trace, number, &selection),
                None => analysis::Analysis::selected(&trace, window, &selection),
            }
        })?;
        Ok(Analysis {
            analysis: analysis.map_err(|error| trace_error(&error))?,
        })
    }

    /// The time range that is analyzed; `None` where it has no limit.
    #[getter]
    fn window(&self) -> (Option<u64>, Option<u64>) {
        let window = self.analysis.activity.window;
        (window.from, window.to)
    }

    /// The summary and the findings, as JSON.
    fn summary(&self, py: Python<'_>) -> PyResult<String> {
        #[derive(Serialize)]
        struct Whole<'a> {
            span_ns: Option<(u64, u64)>,
            analyzed_ns: (u64, u64),
            doubts: &'a DataQuality,
            utilization: &'a UtilizationReport,
            idle: Option<&'a IdleReport>,
            host: Option<&'a HostTime>,
            steps: &'a StepsReport,
            kernels: &'a KernelsReport,
            copies: &'a CopiesReport,
            launches: &'a LaunchesReport,
            findings: Option<&'a [Finding]>,
            gpu_bound: Option<&'a str>,
        }
        let analysis = self.analysis.clone();
        let text = job::run(py, None, move |_| -> Result<String, Failed> {
            let summary = analysis.summary()?;
            // On a GPU with work that is not selected, nobody can tell idle time from the time of that work.
            let findings = match analysis.activity.selected.shared_device() {
                None => Some(analysis.findings(&summary)?),
                Some(_) => None,
            };
            let found = findings.as_ref();
            Ok(serde_json::to_string(&Whole {
                span_ns: summary.span_ns,
                analyzed_ns: summary.analyzed_ns,
                doubts: &summary.doubts,
                utilization: &summary.utilization,
                idle: found.map(|_| &summary.idle),
                host: found.map(|_| &summary.host),
                steps: &summary.steps,
                kernels: &summary.kernels,
                copies: &summary.copies,
                launches: &summary.launches,
                findings: found.map(|report| report.findings.as_slice()),
                gpu_bound: found.and_then(|report| report.gpu_bound.as_deref()),
            })?)
        })?;
        text.map_err(PyErr::from)
    }

    /// Patterns of a what-if that match nothing: `work` or `waits`, the pattern, and a suggestion.
    fn unmatched_patterns(
        &self,
        what_if: &str,
        left_waits: u64,
    ) -> PyResult<Vec<(&'static str, String, String)>> {
        let what_if: WhatIf =
            serde_json::from_str(what_if).map_err(|error| UsageError::new_err(sentence(&error)))?;
        let unmatched = what_if.unmatched_patterns(&self.analysis, left_waits);
        let row = |unmatched: UnmatchedPattern| {
            let target = match unmatched.target {
                PatternTarget::Work => "work",
                PatternTarget::Waits => "waits",
            };
            (target, unmatched.pattern, unmatched.suggestion)
        };
        Ok(unmatched.into_iter().map(row).collect())
    }

    /// The result of one analysis, as JSON. `options` are those of the analysis, as JSON.
    fn report(&self, py: Python<'_>, name: &str, options: &str) -> PyResult<String> {
        let analyzer = Analyzer::find(name)
            .ok_or_else(|| UsageError::new_err(format!("there is no analysis {name}")))?;
        let options: AnalysisOptions =
            serde_json::from_str(options).map_err(|error| UsageError::new_err(sentence(&error)))?;
        let analysis = self.analysis.clone();
        let text = job::run(py, None, move |_| -> Result<String, Failed> {
            let answer = analyzer.run(&analysis, &options)?;
            let mut text = Vec::new();
            answer.write_json(&analysis.activity.doubts, &mut text)?;
            Ok(String::from_utf8_lossy(&text).into_owned())
        })?;
        text.map_err(PyErr::from)
    }
}

/// Compares two analyses, as JSON.
#[pyfunction]
pub(crate) fn diff(py: Python<'_>, before: &Analysis, after: &Analysis, by: &str) -> PyResult<String> {
    #[derive(Serialize)]
    struct Whole<'a> {
        #[serde(flatten)]
        report: &'a DiffReport,
        doubts_a: &'a DataQuality,
        doubts_b: &'a DataQuality,
    }
    let by = match by {
        "name" => DiffKey::Name,
        "short" => DiffKey::Short,
        other => {
            return Err(UsageError::new_err(format!(
                "by is 'name' or 'short', not '{other}'"
            )));
        }
    };
    let (a, b) = (before.analysis.clone(), after.analysis.clone());
    let text = job::run(py, None, move |_| -> Result<String, Failed> {
        let report = DiffReport::of(&a, &b, by)?;
        Ok(serde_json::to_string(&Whole {
            report: &report,
            doubts_a: &a.activity.doubts,
            doubts_b: &b.activity.doubts,
        })?)
    })?;
    text.map_err(PyErr::from)
}

/// Why a report could not be made.
enum Failed {
    Trace(Error),
    Json(serde_json::Error),
    Write(std::io::Error),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Failed::Trace(error)
    }
}

impl From<serde_json::Error> for Failed {
    fn from(error: serde_json::Error) -> Self {
        Failed::Json(error)
    }
}

impl From<std::io::Error> for Failed {
    fn from(error: std::io::Error) -> Self {
        Failed::Write(error)
    }
}

impl From<Failed> for PyErr {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Trace(error) => trace_error(&error),
            Failed::Json(error) => NativeError::new_err(sentence(&error)),
            Failed::Write(error) => NativeError::new_err(sentence(&error)),
        }
    }
}
