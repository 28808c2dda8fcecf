//! The replay recording of a trace.

use std::path::Path;

use serde_json::{Value, json};
use tracesmith_format::Table;
use tracesmith_format::tables::Command;
use tracesmith_replay::{Plan, Recording};
use tracesmith_trace::{Trace, units};

use crate::commands::replay::plan::buffers_text;
use crate::output::{BAD, FAINT, GOOD, Output};

/// Number of reasons to show. The others are counted.
const SHOWN: usize = 5;

/// The replay recording of a trace.
pub(crate) struct Report {
    calls: usize,
    buffers: usize,
    /// How many of the buffers are module globals.
    globals: usize,
    begin_bytes: u64,
    end_bytes: u64,
    modules: usize,
    code_bytes: u64,
    /// What blocks a replay.
    obstacles: Vec<String>,
}

/// Reads the replay recording of a trace, if there is one. Runs nothing.
pub(crate) fn report(trace: &Trace, file: &Path) -> Option<Report> {
    let has_one = trace
        .blocks()
        .iter()
        .any(|block| block.header.kind == Command::KIND);
    // A pipe cannot be read a second time.
    if !has_one || file.as_os_str() == "-" {
        return None;
    }
    Some(read_report(file).unwrap_or_else(|error| Report {
        calls: 0,
        buffers: 0,
        globals: 0,
        begin_bytes: 0,
        end_bytes: 0,
        modules: 0,
        code_bytes: 0,
        obstacles: vec![error.to_string()],
    }))
}

fn read_report(file: &Path) -> Result<Report, tracesmith_replay::Error> {
    let mut recording = Recording::open(file)?;
    let plan = Plan::of(&mut recording)?;
    let (modules, code_bytes) = recording.code();
    let (buffers, globals) = recording.buffer_counts();
    Ok(Report {
        calls: recording.commands.len(),
        buffers,
        globals,
        begin_bytes: recording.begin_bytes(),
        end_bytes: recording.end_bytes(),
        modules,
        code_bytes,
        obstacles: plan.obstacles.iter().map(ToString::to_string).collect(),
    })
}

impl Report {
    /// In one line.
    pub(crate) fn summary(&self) -> String {
        let is_replayable = match self.obstacles.first() {
            None => "replayable".to_owned(),
            Some(obstacle) => format!("not replayable: {obstacle}"),
        };
        format!(
            "{} calls, {} of memory, {} of device code; {is_replayable}",
            self.calls,
            units::bytes(self.begin_bytes),
            units::bytes(self.code_bytes)
        )
    }

    pub(super) fn show(&self, output: &mut Output) -> anyhow::Result<()> {
        output.line(&format!(
            "{FAINT}recording{FAINT:#}  {} calls on {}; {} before, {} after; {} modules ({})",
            self.calls,
            buffers_text((self.buffers, self.globals)),
            units::bytes(self.begin_bytes),
            units::bytes(self.end_bytes),
            self.modules,
            units::bytes(self.code_bytes)
        ))?;
        if self.obstacles.is_empty() {
            output.line(&format!("           {GOOD}replayable{GOOD:#}"))?;
        }
        for obstacle in self.obstacles.iter().take(SHOWN) {
            output.line(&format!("           {BAD}not replayable:{BAD:#} {obstacle}"))?;
        }
        if self.obstacles.len() > SHOWN {
            output.line(&format!("           and {} more", self.obstacles.len() - SHOWN))?;
        }
        Ok(())
    }

    pub(crate) fn value(&self) -> Value {
        json!({
            "calls": self.calls, "buffers": self.buffers, "module_globals": self.globals, "begin_bytes": self.begin_bytes,
            "end_bytes": self.end_bytes, "modules": self.modules, "code_bytes": self.code_bytes,
            "replayable": self.obstacles.is_empty(), "obstacles": self.obstacles,
        })
    }
}
