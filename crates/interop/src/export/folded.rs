//! Folded stacks for flame graph tools: `main;work;leaf 42`, the outermost frame first.

use std::collections::BTreeMap;

use tracesmith_trace::Trace;

use crate::error::Error;
use crate::export::weights::{FrameText, Weights};
use crate::export::{ExportOptions, ExportReport, Exporter, Out, Way};

pub(super) const EXPORTER: Exporter = Exporter {
    name: "folded",
    aliases: &["collapsed"],
    title: "folded stacks, for flame graph tools",
    extension: "folded",
    way: Way::Stream(write),
};

fn write(trace: &Trace, options: &ExportOptions, out: &mut Out<'_>) -> Result<ExportReport, Error> {
    let weights = Weights::of(trace, options)?;
    if weights.sums.is_empty() {
        return Err(Error::Export {
            format: "folded",
            problem: "no event has such a weight".to_owned(),
        });
    }
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    for (weighed, weight) in &weights.sums {
        let line = lines.entry(folded(&weights.frames(weighed))).or_default();
        *line = line.saturating_add(*weight);
    }
    for (line, weight) in lines {
        out.put(format!("{line} {weight}\n").as_bytes())?;
    }
    Ok(weights.report)
}

/// A stack as a line. A semicolon would end a frame and a line break the line: both are replaced.
fn folded(frames: &[FrameText]) -> String {
    let names: Vec<String> = frames
        .iter()
        .map(|frame| frame.name.replace([';', '\n', '\r'], ":"))
        .collect();
    names.join(";")
}
