//! Analyses: what `tracesmith analyze --only NAME --format json` prints.

use std::str::FromStr;
use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use serde::Deserialize;
use serde_json::Value;
use tracesmith_trace::analysis::{Analysis, AnalysisOptions, Analyzer, KernelKey, WhatIf};
use tracesmith_trace::reconstruct::Window;
use tracesmith_trace::{TimeArg, TimeRange, Trace, Wanted, time_range};

use super::Subject;
use crate::payload::{Keep, Payload};
use crate::reply::{Asked, Failure, Named};
use crate::studio::Studio;

/// The name of the summary, which is what `analyze` prints without `--only`.
const SUMMARY: &str = "summary";

/// A part of a trace, and how it is looked at. Lists are separated by commas, as on the command line.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Chosen {
    from: Option<u64>,
    to: Option<u64>,
    step: Option<usize>,
    device: String,
    stream: String,
    process: String,
    rank: String,
    by: String,
    limit: Option<usize>,
    what_if: String,
}

pub(super) async fn analysis(
    State(studio): State<Arc<Studio>>,
    Named((id, name)): Named<(usize, String)>,
    uri: Uri,
    Asked(chosen): Asked<Chosen>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let subject = Subject::of(&studio, id).await?;
    let question = subject.question(&format!("analysis {name} {}", uri.query().unwrap_or_default()));
    let answer = studio.answers.get(&studio.work, question, move |_| {
        let trace = &subject.ready.trace;
        let analysis = {
            let _alone = subject.ready.facts.build_alone();
            chosen.analysis(trace, subject.origin())?
        };
        let options = chosen.options()?;
        if name == SUMMARY {
            return summary(&analysis, &options);
        }
        let analyzer =
            Analyzer::find(&name).ok_or_else(|| Failure::missing(format!("there is no analysis {name}")))?;
        let answer = analyzer.run(&analysis, &options)?;
        let mut text = Vec::new();
        let written = answer.write_json(&analysis.activity.doubts, &mut text);
        written.map_err(|_| Failure::bug())?;
        Ok(Payload::json_text(text))
    });
    Ok(answer.await?.response(&headers, Keep::No))
}

impl Chosen {
    fn analysis(&self, trace: &Arc<Trace>, origin: u64) -> Result<Analysis, Failure> {
        let wanted = Wanted {
            processes: texts(&self.process),
            ranks: numbers("rank", &self.rank)?,
            devices: texts(&self.device),
            streams: numbers("stream", &self.stream)?,
        };
        let selection = wanted.in_trace(trace)?;
        if let Some(step) = self.step {
            return Ok(Analysis::selected_step(trace, step, &selection)?);
        }
        let range = range_of(trace, origin, self.from, self.to)?;
        let window = Window {
            from: range.from.map(|time| time.0),
            to: range.to.map(|time| time.0),
        };
        Ok(Analysis::selected(trace, window, &selection)?)
    }

    fn options(&self) -> Result<AnalysisOptions, Failure> {
        let what_if = match self.what_if.as_str() {
            "" => WhatIf::default(),
            text => serde_json::from_str(text).map_err(|error| Failure::bad(format!("what_if: {error}")))?,
        };
        Ok(AnalysisOptions {
            by: key(&self.by)?,
            limit: Some(self.limit.filter(|limit| *limit > 0).unwrap_or(usize::MAX)),
            what_if,
        })
    }
}

/// The time range between two times that count from the origin, checked as on the command line.
pub(super) fn range_of(
    trace: &Trace,
    origin: u64,
    from: Option<u64>,
    to: Option<u64>,
) -> Result<TimeRange, Failure> {
    let span = trace.span();
    let first = span.map_or(0, |(first, _)| first.0);
    let time = |nanos: u64| match origin.saturating_add(nanos).checked_sub(first) {
        Some(offset) => TimeArg::Offset(offset),
        None => TimeArg::Absolute(origin.saturating_add(nanos)),
    };
    Ok(time_range(from.map(time), to.map(time), span)?)
}

/// What groups kernels, as on the command line, or as in its JSON.
fn key(text: &str) -> Result<KernelKey, Failure> {
    Ok(match text {
        "" | "name" => KernelKey::Name,
        "short" | "short_name" => KernelKey::ShortName,
        "shape" => KernelKey::Shape,
        "line" | "stack" => KernelKey::Stack,
        "nvtx" | "ranges" => KernelKey::Ranges,
        "operator" => KernelKey::Operator,
        "process" => KernelKey::Process,
        "rank" => KernelKey::Rank,
        "step" => KernelKey::Step,
        other => return Err(Failure::bad(format!("kernels cannot be grouped by {other}"))),
    })
}

fn texts(list: &str) -> Vec<String> {
    let parts = list.split(',').filter(|part| !part.is_empty());
    parts.map(str::to_owned).collect()
}

fn numbers<T: FromStr>(what: &str, list: &str) -> Result<Vec<T>, Failure> {
    let number = |text: String| {
        text.parse()
            .map_err(|_| Failure::bad(format!("'{text}' is not a {what}")))
    };
    texts(list).into_iter().map(number).collect()
}

/// The summary with the findings.
fn summary(analysis: &Analysis, options: &AnalysisOptions) -> Result<Payload, Failure> {
    let mut report = analysis.summary()?;
    // On a GPU with work that is not selected, nobody can tell idle time from the time of that work.
    let findings = match analysis.activity.selected.shared_device() {
        None => Some(analysis.findings(&report)?),
        Some(_) => None,
    };
    if options.by != KernelKey::Name {
        report.kernels = (*analysis.kernels(options.by)).clone();
    }
    let value = |part: Result<Value, serde_json::Error>| part.map_err(|_| Failure::bug());
    let mut answer = value(serde_json::to_value(&report))?;
    let list = findings.as_ref().map(|report| &report.findings);
    answer["findings"] = value(serde_json::to_value(list))?;
    let bound = findings.as_ref().and_then(|report| report.gpu_bound.as_deref());
    answer["gpu_bound"] = value(serde_json::to_value(bound))?;
    if findings.is_none() {
        answer["idle"] = Value::Null;
        answer["host"] = Value::Null;
    }
    Payload::json(&answer)
}
