//! Functions that return tables, for what SQL is slow or clumsy at.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Float64Array, Int32Array, RecordBatch, StringArray, UInt32Array,
    UInt64Array,
};
use arrow_schema::{Field, Schema};
use rayon::prelude::*;
use rusqlite::types::Value;
use rustc_hash::FxHashMap;
use tracesmith_format::StackId;
use tracesmith_trace::analysis::Analysis;
use tracesmith_trace::reconstruct::{ClassSet, OpClass, Timeline, Window};
use tracesmith_trace::tables::ColumnKind::{self, F64, Text, U32, U64};
use tracesmith_trace::tables::{Condition, Scan};
use tracesmith_trace::{SourceStack, Trace};

use crate::error::Error;

/// A function that returns a table.
pub struct Function {
    /// Its name.
    pub name: &'static str,
    /// What it returns.
    pub doc: &'static str,
    /// Names of its arguments, and what each means. All are optional.
    pub arguments: &'static [(&'static str, &'static str)],
    /// Its columns, and what each means.
    pub columns: &'static [(&'static str, ColumnKind, &'static str)],
    pub(crate) make: fn(&Arc<Trace>, &[Value]) -> Result<RecordBatch, Error>,
}

/// All functions that return tables.
pub static FUNCTIONS: &[Function] = &[
    Function {
        name: "kernel_stats",
        doc: "Kernels by name, the longest total first.",
        arguments: &[],
        columns: &[
            ("name", Text, "The kernel's readable name."),
            ("count", U64, "How often it ran."),
            ("total", U64, "Time in all runs together, in ns."),
            ("share", F64, "Share of the time of all kernels, from 0 to 1."),
            ("mean", F64, "Mean time of a run, in ns."),
            ("stddev", F64, "Standard deviation of the time of a run, in ns."),
            ("min", U64, "The shortest run, in ns."),
            ("max", U64, "The longest run, in ns."),
        ],
        make: kernel_stats,
    },
    Function {
        name: "gaps",
        doc: "Times in which a device had nothing to do, with the main cause.",
        arguments: &[(
            "at_least",
            "The minimum length of a gap, in ns. Default: all gaps.",
        )],
        columns: &[
            (
                "device",
                U32,
                "The device: `devices.id`, not the number of the GPU.",
            ),
            ("start", U64, "Where it begins, in ns."),
            ("end", U64, "Where it ends, in ns."),
            ("duration", U64, "End minus start."),
            ("cause", Text, "The cause of most of the gap."),
            ("next_name", Text, "The operation that ended it."),
        ],
        make: gaps,
    },
    Function {
        name: "overlap",
        doc: "For each device, how long operations of two classes ran at the same time.",
        arguments: &[
            (
                "first",
                "A class: compute, communication, copy or set. Default: compute.",
            ),
            ("second", "The second class. Default: communication."),
        ],
        columns: &[
            (
                "device",
                U32,
                "The device: `devices.id`, not the number of the GPU.",
            ),
            ("first_ns", U64, "Time in which the first class ran, in ns."),
            ("second_ns", U64, "Time in which the second class ran, in ns."),
            ("both_ns", U64, "Time in which both ran, in ns."),
            (
                "second_alone_ns",
                U64,
                "Time in which only the second class ran, in ns. With the defaults, this is exposed communication.",
            ),
        ],
        make: overlap,
    },
    Function {
        name: "critical_path",
        doc: "The chain of work and waits that determines when the trace, or a step, ends.",
        arguments: &[(
            "step",
            "Only this step, counted from 0. Default: the whole trace.",
        )],
        columns: &[
            ("start", U64, "Where the part begins, in ns."),
            ("end", U64, "Where it ends, in ns."),
            ("duration", U64, "End minus start."),
            (
                "part",
                Text,
                "work (on the GPU), launch (call to GPU start), dispatch (queue delay on the stream), stream_wait (for another \
                 stream), host (CPU code) or host_wait (CPU wakes up).",
            ),
            ("name", Text, "The operation or call that it ends with."),
        ],
        make: critical_path,
    },
    Function {
        name: "stack_frames",
        doc: "The functions of a stack, the innermost first.",
        arguments: &[("stack", "The stack's id. Default: all stacks.")],
        columns: &[
            ("id", U32, "The stack."),
            ("depth", U32, "0 is the innermost."),
            ("function", Text, "The function."),
            ("file", Text, "The source file, if it is known."),
            ("line", U32, "The line; 0 if it is not known."),
            ("module", Text, "The program or library."),
        ],
        make: stack_frames,
    },
];

fn batch(name: &str, arrays: Vec<ArrayRef>) -> Result<RecordBatch, Error> {
    let columns = FUNCTIONS
        .iter()
        .find(|function| function.name == name)
        .map_or(&[][..], |f| f.columns);
    let fields: Vec<Field> = columns
        .iter()
        .map(|(name, kind, _)| Field::new(*name, kind.data_type(), true))
        .collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).map_err(refused)
}

fn refused(error: impl std::fmt::Display) -> Error {
    Error::Trace(tracesmith_trace::Error::Arrow(error.to_string()))
}

fn texts<'t>(values: impl Iterator<Item = &'t str>) -> Result<ArrayRef, Error> {
    let mut known: FxHashMap<&str, i32> = FxHashMap::default();
    let mut distinct: Vec<&str> = Vec::new();
    let keys: Vec<i32> = values
        .map(|text| {
            *known.entry(text).or_insert_with(|| {
                distinct.push(text);
                distinct.len() as i32 - 1
            })
        })
        .collect();
    let values: ArrayRef = Arc::new(StringArray::from_iter_values(distinct));
    let array = DictionaryArray::<Int32Type>::try_new(Int32Array::from(keys), values).map_err(refused)?;
    Ok(Arc::new(array))
}

fn number(function: &str, argument: &str, value: &Value) -> Result<Option<u64>, Error> {
    match value {
        Value::Null => Ok(None),
        Value::Integer(number) if *number >= 0 => Ok(Some(*number as u64)),
        _ => Err(Error::Query {
            message: format!("{function}: {argument} must be a number from 0 on"),
        }),
    }
}

#[derive(Clone, Copy)]
struct Stats {
    count: u64,
    total: u64,
    squares: f64,
    min: u64,
    max: u64,
}

impl Default for Stats {
    fn default() -> Self {
        Stats {
            count: 0,
            total: 0,
            squares: 0.0,
            min: u64::MAX,
            max: 0,
        }
    }
}

impl Stats {
    #[inline]
    fn add(&mut self, duration: u64) {
        self.count += 1;
        self.total = self.total.saturating_add(duration);
        self.squares += (duration as f64) * (duration as f64);
        self.min = self.min.min(duration);
        self.max = self.max.max(duration);
    }

    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.total = self.total.saturating_add(other.total);
        self.squares += other.squares;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }
}

fn kernel_stats(trace: &Arc<Trace>, _: &[Value]) -> Result<RecordBatch, Error> {
    let scan = Scan::columns(["name", "demangled", "duration"]);
    let batches = trace.table("kernels")?.read(&scan)?;
    // All batches of a trace share one dictionary, so names are added up by their keys.
    let names = batches.first().map_or(0, |batch| {
        batch.column(0).as_dictionary::<Int32Type>().values().len()
    });
    let sums = batches
        .par_iter()
        .fold(
            || vec![Stats::default(); names],
            |mut sums, batch| {
                let name = batch.column(0).as_dictionary::<Int32Type>();
                let readable = batch.column(1).as_dictionary::<Int32Type>();
                let durations = batch.column(2).as_primitive::<UInt64Type>();
                for row in 0..batch.num_rows() {
                    if durations.is_valid(row)
                        && let Some(key) = readable.key(row).or_else(|| name.key(row))
                    {
                        sums[key].add(durations.value(row));
                    }
                }
                sums
            },
        )
        .reduce(
            || vec![Stats::default(); names],
            |mut one, other| {
                one.iter_mut()
                    .zip(&other)
                    .for_each(|(one, other)| one.merge(other));
                one
            },
        );
    let texts_of = batches
        .first()
        .map(|batch| batch.column(0).as_dictionary::<Int32Type>().values().clone());
    let mut rows: Vec<(&str, Stats)> = Vec::new();
    if let Some(texts) = &texts_of {
        let texts = texts.as_string::<i32>();
        let ran = sums.iter().enumerate().filter(|(_, stats)| stats.count > 0);
        rows.extend(ran.map(|(key, stats)| (texts.value(key), *stats)));
    }
    rows.sort_by(|one, other| other.1.total.cmp(&one.1.total).then(one.0.cmp(other.0)));
    let all: u64 = rows.iter().map(|(_, stats)| stats.total).sum();
    let mean = |stats: &Stats| stats.total as f64 / stats.count as f64;
    let column = |f: &dyn Fn(&Stats) -> u64| -> ArrayRef {
        Arc::new(UInt64Array::from_iter_values(
            rows.iter().map(|(_, stats)| f(stats)),
        ))
    };
    let fraction = |f: &dyn Fn(&Stats) -> f64| -> ArrayRef {
        Arc::new(Float64Array::from_iter_values(
            rows.iter().map(|(_, stats)| f(stats)),
        ))
    };
    batch(
        "kernel_stats",
        vec![
            texts(rows.iter().map(|(name, _)| *name))?,
            column(&|stats| stats.count),
            column(&|stats| stats.total),
            fraction(&|stats| {
                if all == 0 {
                    0.0
                } else {
                    stats.total as f64 / all as f64
                }
            }),
            fraction(&mean),
            fraction(&|stats| {
                let mean = mean(stats);
                (stats.squares / stats.count as f64 - mean * mean).max(0.0).sqrt()
            }),
            column(&|stats| stats.min),
            column(&|stats| stats.max),
        ],
    )
}

fn gaps(trace: &Arc<Trace>, arguments: &[Value]) -> Result<RecordBatch, Error> {
    let least = number("gaps", "at_least", &arguments[0])?.unwrap_or(0);
    let scan = Scan::columns(["device", "start", "end", "duration", "cause", "next_name"])
        .with("duration", Condition::AtLeast(least.into()));
    let found = trace.table("idle_gaps")?.read(&scan)?;
    let columns = match &found[..] {
        [batch] => batch.columns().to_vec(),
        _ => vec![
            Arc::new(UInt32Array::from_iter_values([])) as ArrayRef,
            Arc::new(UInt64Array::from_iter_values([])),
            Arc::new(UInt64Array::from_iter_values([])),
            Arc::new(UInt64Array::from_iter_values([])),
            texts([].into_iter())?,
            texts([].into_iter())?,
        ],
    };
    batch("gaps", columns)
}

fn class(argument: &str, value: &Value, default: OpClass) -> Result<OpClass, Error> {
    let name = match value {
        Value::Null => return Ok(default),
        Value::Text(name) => name.as_str(),
        _ => "",
    };
    OpClass::ALL
        .into_iter()
        .find(|class| class.name() == name)
        .ok_or_else(|| {
            let names: Vec<&str> = OpClass::ALL.iter().map(|class| class.name()).collect();
            Error::Query {
                message: format!("overlap: {argument} must be one of {}", names.join(", ")),
            }
        })
}

fn overlap(trace: &Arc<Trace>, arguments: &[Value]) -> Result<RecordBatch, Error> {
    let first = ClassSet::of(&[class("first", &arguments[0], OpClass::Compute)?]);
    let second = ClassSet::of(&[class("second", &arguments[1], OpClass::Communication)?]);
    let timeline = Timeline::of(&*trace.activity()?);
    let devices = &timeline.devices;
    let column = |f: &dyn Fn(usize) -> u64| -> ArrayRef {
        Arc::new(UInt64Array::from_iter_values((0..devices.len()).map(f)))
    };
    batch(
        "overlap",
        vec![
            Arc::new(UInt32Array::from_iter_values(
                devices.iter().map(|device| device.device.0),
            )),
            column(&|at| devices[at].span.any_of(first)),
            column(&|at| devices[at].span.any_of(second)),
            column(&|at| devices[at].span.both(first, second)),
            column(&|at| devices[at].span.first_only(second, first)),
        ],
    )
}

fn critical_path(trace: &Arc<Trace>, arguments: &[Value]) -> Result<RecordBatch, Error> {
    let step = number("critical_path", "step", &arguments[0])?;
    let analysis = match step {
        None => Analysis::of(trace, Window::default())?,
        Some(number) => {
            Analysis::of_step(trace, usize::try_from(number).unwrap_or(usize::MAX)).map_err(|error| {
                match error {
                    tracesmith_trace::Error::NoSuchStep { steps, .. } => Error::Query {
                        message: format!("critical_path: there is no step {number}; the trace has {steps}"),
                    },
                    other => other.into(),
                }
            })?
        }
    };
    let report = analysis.critical_path();
    let segments = || report.segments.iter();
    let column = |f: &dyn Fn(u64, u64) -> u64| -> ArrayRef {
        let numbers = segments().map(|segment| f(segment.from_ns, segment.to_ns));
        Arc::new(UInt64Array::from_iter_values(numbers))
    };
    batch(
        "critical_path",
        vec![
            column(&|from, _| from),
            column(&|_, to| to),
            column(&|from, to| to - from),
            texts(segments().map(|segment| segment.part.name()))?,
            texts(report.segments.names())?,
        ],
    )
}

fn stack_frames(trace: &Arc<Trace>, arguments: &[Value]) -> Result<RecordBatch, Error> {
    let wanted = number("stack_frames", "stack", &arguments[0])?;
    let ids: Vec<StackId> = match wanted {
        Some(id) => vec![StackId(u32::try_from(id).unwrap_or(0))],
        None => trace.stack_nodes().map(|node| node.id).collect(),
    };
    let (mut stacks, mut depths, mut lines) = (Vec::new(), Vec::new(), Vec::new());
    let (mut functions, mut files, mut modules) = (Vec::new(), Vec::new(), Vec::new());
    for id in ids {
        for (depth, frame) in SourceStack::of(trace, id).frames.into_iter().enumerate() {
            stacks.push(id.0);
            depths.push(depth as u32);
            lines.push(frame.line);
            functions.push(frame.function);
            files.push(frame.file);
            modules.push(frame.image);
        }
    }
    batch(
        "stack_frames",
        vec![
            Arc::new(UInt32Array::from(stacks)),
            Arc::new(UInt32Array::from(depths)),
            texts(functions.iter().map(String::as_str))?,
            texts(files.iter().map(String::as_str))?,
            Arc::new(UInt32Array::from(lines)),
            texts(modules.iter().map(String::as_str))?,
        ],
    )
}
