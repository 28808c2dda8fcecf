//! The conversation of `record --control` with the program that started it: orders on standard input, and answers on
//! standard output, one JSON object per line.

use std::io::{self, Write};
use std::os::fd::AsFd;

use anyhow::Context;
use serde_json::{Value, json};
use tracesmith_collect::{Error, Event, Loss, Operator, Refusal, Report, RowCounts};

use crate::output;

/// Writes the answers.
pub(crate) struct ControlLines {
    out: io::Stdout,
}

impl ControlLines {
    pub(crate) fn new() -> Self {
        Self { out: io::stdout() }
    }

    /// Reads the orders.
    pub(crate) fn operator() -> anyhow::Result<Operator> {
        let input = io::stdin().as_fd().try_clone_to_owned();
        Ok(Operator::new(
            input.context("reading orders from standard input")?,
        ))
    }

    /// Something happened.
    pub(crate) fn event(&mut self, event: &Event) {
        match event {
            Event::Open => self.send(&json!({ "event": "open" })),
            Event::Closed { missing } => self.send(&json!({ "event": "closed", "missing": missing })),
            Event::Dumped(Ok(path)) => {
                self.send(&json!({ "event": "dumped", "file": path.display().to_string() }))
            }
            Event::Dumped(Err(why)) => self.send(&json!({ "event": "dumped", "file": null, "message": why })),
            Event::Rejected { order, why } => {
                self.send(&json!({ "event": "rejected", "order": order, "message": why }));
            }
            _ => {}
        }
    }

    /// The trace is complete.
    pub(crate) fn done(&mut self, report: &Report) {
        self.send(&json!({ "event": "done", "report": report_as_json(report) }));
    }

    /// Nothing was recorded.
    pub(crate) fn error(&mut self, error: &anyhow::Error) {
        let reason = error.chain().find_map(|cause| cause.downcast_ref::<Error>());
        self.send(&json!({
            "event": "error",
            "reason": reason.map_or("other", word_of),
            "message": format!("{error:#}"),
            "hint": output::hint(error),
        }));
    }

    fn send(&mut self, line: &Value) {
        // A program that has gone needs no answer. The end of its orders stops the recording.
        let _ = writeln!(self.out, "{line}").and_then(|()| self.out.flush());
    }
}

/// The reason for an error, as a word that stays the same.
fn word_of(error: &Error) -> &'static str {
    match error {
        Error::Refused {
            reason: Refusal::Busy,
            ..
        } => "busy",
        Error::Refused {
            reason: Refusal::Conflict,
            ..
        } => "conflict",
        Error::Refused { .. } => "refused",
        Error::NotArmed { .. } => "not-armed",
        Error::Exists { .. } => "exists",
        Error::BeingWritten { .. } | Error::Create { .. } | Error::Write { .. } => "unwritable",
        _ => "other",
    }
}

fn report_as_json(report: &Report) -> Value {
    let files: Vec<Value> = report
        .files
        .iter()
        .map(|(path, bytes)| json!({ "path": path.display().to_string(), "bytes": bytes }))
        .collect();
    let losses: Vec<Value> = report.losses.iter().map(loss_as_json).collect();
    let modules: Vec<Value> = report
        .modules
        .iter()
        .filter_map(|module| {
            let why = module.extent.err()?;
            let path = module.path.display().to_string();
            Some(json!({ "path": path, "frames": module.unnamed, "message": why.to_string() }))
        })
        .collect();
    json!({
        "files": files,
        "failure": report.failure.as_ref().map(|failure| in_words(failure)),
        "whole": report.is_whole(),
        "processes": report.processes,
        "rows": rows_as_json(&report.rows),
        "losses": losses,
        "not_symbolized": modules,
    })
}

/// An error and its causes in one line.
fn in_words(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        words += &format!(": {error}");
        cause = error.source();
    }
    words
}

fn loss_as_json(loss: &Loss) -> Value {
    json!({
        "cause": loss.cause.name().unwrap_or("other"),
        "count": loss.count,
        "bytes": loss.bytes,
        "detail": loss.detail,
        "missing": loss.is_missing_data(),
    })
}

fn rows_as_json(rows: &RowCounts) -> Value {
    let RowCounts {
        kernels,
        copies,
        api_calls,
        syncs,
        allocations,
        markers,
        graph_launches,
        host_calls,
        counters,
        recorded_calls,
        recorded_bytes,
        recorded_nanos,
    } = rows;
    json!({
        "kernels": kernels,
        "copies": copies,
        "api_calls": api_calls,
        "syncs": syncs,
        "allocations": allocations,
        "markers": markers,
        "graph_launches": graph_launches,
        "host_calls": host_calls,
        "counters": counters,
        "recorded_calls": recorded_calls,
        "recorded_bytes": recorded_bytes,
        "recorded_ns": recorded_nanos,
    })
}
