//! The list of analyses. A new analysis is a file in this folder and a line in [`ANALYZERS`].
//!
//! An analyzer names an analysis, describes it and runs it. Its result can be printed without knowing what it is: as a
//! JSON object, as rows of CSV, or as a plain table of those rows. A command that has a better table for people gets the
//! report itself with [`Answer::report`].

use std::any::Any;
use std::io::{self, Write};
use std::sync::Arc;

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

use super::kernels::KernelKey;
use super::summary::Analysis;
use super::what_if::WhatIf;
use super::{
    copies, critical_path, findings, host_activity, idle, kernels, launches, memory, slack, steps,
    utilization, what_if,
};
use crate::error::Error;
use crate::reconstruct::DataQuality;
use crate::selection::Selected;

/// All analyses, in the order in which they are listed.
pub static ANALYZERS: &[Analyzer] = &[
    utilization::ANALYZER,
    utilization::STREAMS,
    idle::ANALYZER,
    host_activity::ANALYZER,
    steps::ANALYZER,
    kernels::ANALYZER,
    copies::ANALYZER,
    launches::ANALYZER,
    memory::ANALYZER,
    critical_path::ANALYZER,
    slack::ANALYZER,
    what_if::ANALYZER,
    findings::ANALYZER,
];

/// An analysis that can be chosen by name.
pub struct Analyzer {
    /// Its name on the command line.
    pub name: &'static str,
    /// Other names for it.
    pub aliases: &'static [&'static str],
    /// What it shows, in one line.
    pub description: &'static str,
    /// What a trace must have, or its result is empty.
    pub needs: Need,
    /// Runs it.
    pub(super) run: fn(&Analysis, &AnalysisOptions) -> Result<Answer, Error>,
}

/// What an analysis needs of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// GPU ops.
    Ops,
    /// GPU ops, or calls that wait for some.
    OpsOrCalls,
    /// Allocations and frees.
    Allocations,
    /// Steps: ranges that mark them, or kernels that repeat.
    Steps,
    /// Nothing: it has a result for every trace.
    Nothing,
}

/// What can be chosen. Each analysis uses the options that concern it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AnalysisOptions {
    /// What makes two kernels the same.
    pub by: KernelKey,
    /// At most this many rows of the kernel table.
    pub limit: Option<usize>,
    /// What is different in the simulation.
    pub what_if: WhatIf,
}

impl Analyzer {
    /// The analysis of this name.
    pub fn find(name: &str) -> Option<&'static Self> {
        ANALYZERS
            .iter()
            .find(|analyzer| analyzer.name == name || analyzer.aliases.contains(&name))
    }

    /// Runs the analysis.
    pub fn run(&self, analysis: &Analysis, options: &AnalysisOptions) -> Result<Answer, Error> {
        self.check(&analysis.activity.selected)?;
        (self.run)(analysis, options)
    }

    /// Fails if a selection leaves out work without which the result would be wrong: who kept a GPU busy in the gaps
    /// between selected work, or what a thread waited for.
    pub fn check(&self, selected: &Selected) -> Result<(), Error> {
        let needs = match self.name {
            "memory" if selected.selection().streams.is_some() => {
                return Err(Error::NotByStream { analysis: self.name });
            }
            "idle" | "host" | "critical-path" | "slack" | "what-if" | "findings"
                if selected.shared_device().is_some() =>
            {
                "all work of a GPU"
            }
            "host" | "critical-path" | "slack" | "what-if" if selected.shared_process().is_some() => {
                "all work of a process"
            }
            _ => return Ok(()),
        };
        Err(Error::SelectionTooNarrow {
            analysis: self.name,
            needs,
        })
    }
}

impl std::fmt::Debug for Analyzer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// The result of an analysis.
pub struct Answer(Box<dyn AnyReport>);

/// The rows of a result, each as a JSON object.
pub type Rows<'a> = Box<dyn Iterator<Item = Value> + 'a>;

impl Answer {
    /// A report whose JSON has the report's own fields, and the rows of its CSV form.
    pub(super) fn whole<R: Report>(report: Arc<R>, rows: fn(&R) -> Rows<'_>) -> Self {
        let rows = Some(rows);
        Answer(Box::new(Whole { report, rows }))
    }

    /// The same for a report that is several tables, and has no CSV form.
    pub(super) fn several_tables<R: Report>(report: Arc<R>) -> Self {
        Answer(Box::new(Whole { report, rows: None }))
    }

    /// A report whose JSON has one list of rows, under a name.
    pub(super) fn list<R: Report, T: Serialize + 'static>(
        name: &'static str,
        report: Arc<R>,
        list: fn(&R) -> &[T],
    ) -> Self {
        Answer(Box::new(List { name, report, list }))
    }

    /// Writes it as JSON, with the data-quality warnings as its last field. A long result is written row by row.
    pub fn write_json(&self, doubts: &DataQuality, out: &mut dyn Write) -> io::Result<()> {
        self.0.write_json(doubts, out)
    }

    /// Its rows; `None` when it is several tables.
    pub fn rows(&self) -> Option<Rows<'_>> {
        self.0.rows()
    }

    /// The report, if it is of this type.
    pub fn report<R: 'static>(&self) -> Option<&R> {
        self.0.as_any().downcast_ref()
    }
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Answer")
    }
}

/// What every report is.
pub(super) trait Report: Serialize + Send + Sync + 'static {}

impl<R: Serialize + Send + Sync + 'static> Report for R {}

/// A report of a type that is not known.
trait AnyReport: Send + Sync {
    fn write_json(&self, doubts: &DataQuality, out: &mut dyn Write) -> io::Result<()>;
    fn rows(&self) -> Option<Rows<'_>>;
    fn as_any(&self) -> &dyn Any;
}

struct Whole<R> {
    report: Arc<R>,
    rows: Option<fn(&R) -> Rows<'_>>,
}

impl<R: Report> AnyReport for Whole<R> {
    fn write_json(&self, doubts: &DataQuality, out: &mut dyn Write) -> io::Result<()> {
        #[derive(Serialize)]
        struct WithDoubts<'a, R> {
            #[serde(flatten)]
            report: &'a R,
            doubts: &'a DataQuality,
        }
        let report = &*self.report;
        Ok(serde_json::to_writer_pretty(out, &WithDoubts { report, doubts })?)
    }

    fn rows(&self) -> Option<Rows<'_>> {
        self.rows.map(|rows| rows(&self.report))
    }

    fn as_any(&self) -> &dyn Any {
        &*self.report
    }
}

struct List<R, T> {
    name: &'static str,
    report: Arc<R>,
    list: fn(&R) -> &[T],
}

impl<R: Report, T: Serialize + 'static> AnyReport for List<R, T> {
    fn write_json(&self, doubts: &DataQuality, out: &mut dyn Write) -> io::Result<()> {
        let mut serializer = serde_json::Serializer::pretty(out);
        let mut fields = serializer.serialize_map(Some(2))?;
        fields.serialize_entry(self.name, (self.list)(&self.report))?;
        fields.serialize_entry("doubts", doubts)?;
        Ok(fields.end()?)
    }

    fn rows(&self) -> Option<Rows<'_>> {
        Some(Box::new((self.list)(&self.report).iter().map(row)))
    }

    fn as_any(&self) -> &dyn Any {
        &*self.report
    }
}

/// A row as JSON.
pub(super) fn row(row: impl Serialize) -> Value {
    serde_json::to_value(row).expect("rows of reports are maps with text as keys")
}
