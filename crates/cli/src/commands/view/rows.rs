//! Rows of events in the three formats, written as they come.

use std::collections::HashMap;

use serde_json::{Value as Json, json};
use tracesmith_format::schema;
use tracesmith_format::{ColumnSpec, Meaning, StringId, ThreadId, Timestamp, Value};
use tracesmith_interop::export::EventJson;
use tracesmith_trace::{Event, EventKind, EventStacks, Found, Query, Trace, units};

use super::stacks::{self, Stacks};
use crate::args::Format;
use crate::output::table::{Align, Cell, TextTable};
use crate::output::{FAINT, Output};

/// Rows of a table that are laid out together. Later rows of a very long table may be wider.
const ROWS_TOGETHER: usize = 1000;

/// The columns that all events have, as programs see them.
const COMMON: [&str; 12] = [
    "kind",
    "start_ns",
    "end_ns",
    "duration_ns",
    "name",
    "process",
    "pid",
    "thread",
    "device",
    "stream",
    "correlation",
    "bytes",
];

/// Writes events one by one.
pub(super) struct RowWriter<'a> {
    trace: &'a Trace,
    output: &'a mut Output,
    json: EventJson<'a>,
    line: Vec<u8>,
    zero: Timestamp,
    specs: HashMap<EventKind, Vec<ColumnSpec>>,
    /// The one kind whose own columns a CSV has; with several kinds it has the common ones only.
    csv_kind: Option<EventKind>,
    table: TextTable,
    /// None when they are not shown.
    stacks: Option<EventStacks>,
    /// What stands below each row of the table.
    below: Vec<Vec<String>>,
    printed: u64,
}

impl<'a> RowWriter<'a> {
    pub(super) fn new(
        trace: &'a Trace,
        query: &Query,
        stacks: Stacks,
        output: &'a mut Output,
    ) -> anyhow::Result<Self> {
        let specs: HashMap<EventKind, Vec<ColumnSpec>> = schema::tables()
            .into_iter()
            .filter_map(|(table, specs)| Some((EventKind::of_table(table)?, specs)))
            .collect();
        let csv_kind = match query.kinds.as_deref() {
            Some([kind]) => Some(*kind),
            _ => None,
        };
        let zero = trace.span().map_or(Timestamp::NONE, |(first, _)| first);
        let writer = RowWriter {
            trace,
            output,
            json: EventJson::new(trace),
            line: Vec::new(),
            zero,
            specs,
            csv_kind,
            table: new_table(),
            stacks: match stacks {
                Stacks::Shown => Some(EventStacks::of(trace)?),
                Stacks::Hidden => None,
            },
            below: Vec::new(),
            printed: 0,
        };
        match writer.output.format {
            Format::Csv => {
                let own = csv_kind
                    .map(|kind| own_columns(&writer.specs[&kind]))
                    .unwrap_or_default();
                let head: Vec<String> = COMMON
                    .iter()
                    .map(|name| (*name).to_owned())
                    .chain(own.iter().map(|spec| spec.name.clone()))
                    .chain(csv_kind.is_none().then(|| "detail".to_owned()))
                    .collect();
                writer.output.csv(head)?;
            }
            Format::Json => writer.output.raw(b"[")?,
            Format::Table => {}
        }
        Ok(writer)
    }

    pub(super) fn row(&mut self, found: &Found<'_>) -> anyhow::Result<()> {
        match self.output.format {
            Format::Table => {
                self.table_row(found);
                if self.table.len() == ROWS_TOGETHER {
                    self.print_table()?;
                }
            }
            Format::Json => {
                let is_lean = self.output.is_lean();
                let separator: &[u8] = match (self.printed, is_lean) {
                    (0, true) => b"",
                    (0, false) => b"\n",
                    (_, true) => b",",
                    (_, false) => b",\n",
                };
                self.line.clear();
                self.line.extend_from_slice(separator);
                if is_lean {
                    self.push_common(found);
                } else {
                    self.json.push(&mut self.line, found);
                    self.push_stacks(&found.event);
                }
                self.output.raw(&self.line)?;
                self.printed += 1;
            }
            Format::Csv => {
                let fields = self.csv_row(found);
                self.output.csv(fields)?;
            }
        }
        Ok(())
    }

    pub(super) fn finish(mut self) -> anyhow::Result<()> {
        match self.output.format {
            Format::Table if self.table.len() == 0 && self.printed == 0 => self.output.note("no events"),
            Format::Table => self.print_table()?,
            Format::Json if self.printed == 0 || self.output.is_lean() => self.output.raw(b"]\n")?,
            Format::Json => self.output.raw(b"\n]\n")?,
            Format::Csv => {}
        }
        Ok(())
    }

    fn print_table(&mut self) -> anyhow::Result<()> {
        let table = std::mem::replace(&mut self.table, new_table());
        let lines = table.lines(self.output.width());
        let head = usize::from(self.printed > 0);
        let rows = lines.len() - table.len();
        for line in &lines[head..rows] {
            self.output.line(line)?;
        }
        let mut below = std::mem::take(&mut self.below).into_iter();
        for line in &lines[rows..] {
            self.output.line(line)?;
            for line in below.next().unwrap_or_default() {
                self.output.line(&line)?;
            }
        }
        self.printed += table.len() as u64;
        Ok(())
    }

    /// Adds the stacks of an event to its object.
    fn push_stacks(&mut self, event: &Event) {
        let Some(stacks) = &self.stacks else { return };
        // The object is open again until they are in it.
        self.line.pop();
        for (name, value) in stacks::json(stacks, self.trace, event) {
            self.line
                .extend_from_slice(format!(",\"{name}\":{value}").as_bytes());
        }
        self.line.push(b'}');
    }

    fn table_row(&mut self, found: &Found<'_>) {
        let event = &found.event;
        if let Some(stacks) = &self.stacks {
            self.below.push(stacks::lines(stacks, self.trace, event));
        }
        let start = match event.start {
            Timestamp::NONE => "?".to_owned(),
            start => offset(start.0.saturating_sub(self.zero.0)),
        };
        let duration = if event.end == event.start {
            String::new()
        } else if event.end.0 < event.start.0 {
            "?".to_owned()
        } else {
            units::nanos(event.duration())
        };
        self.table.row([
            start.into(),
            duration.into(),
            event.kind.name().into(),
            self.place(event).into(),
            self.trace.event_name(event).into(),
            Cell::styled(found.columns.detail(found.row, &self.trace.strings), FAINT),
        ]);
    }

    /// Where an event happened, in few words: a GPU's stream, or a thread of a process.
    fn place(&self, event: &Event) -> String {
        let device = match self.trace.device(event.device) {
            Some(device) => format!("gpu {}", device.ordinal),
            None if event.device.is_some() => format!("gpu #{}", event.device.0),
            None => String::new(),
        };
        if let Some(stream) = event.stream {
            return format!("{device} stream {}", stream.0).trim_start().to_owned();
        }
        if event.thread != ThreadId::NONE {
            return format!("thread {}", event.thread.0);
        }
        match self.trace.process(event.process) {
            _ if !device.is_empty() => device,
            Some(process) => format!("pid {}", process.pid),
            None => String::new(),
        }
    }

    fn common(&self, event: &Event) -> [Json; COMMON.len()] {
        let some = |id: u64| if id == 0 { Json::Null } else { json!(id) };
        let ordinal = self.trace.device(event.device).map(|device| device.ordinal);
        [
            json!(event.kind.name()),
            some(event.start.0),
            some(event.end.0),
            json!(event.duration()),
            json!(self.trace.event_name(event)),
            some(u64::from(event.process.0)),
            json!(self.trace.process(event.process).map(|process| process.pid)),
            some(event.thread.0),
            json!(ordinal),
            json!(event.stream.map(|stream| stream.0)),
            some(event.correlation.0),
            some(event.bytes.0),
        ]
    }

    /// Adds an object with what is known of the fields that all events have, and the details in words.
    fn push_common(&mut self, found: &Found<'_>) {
        let detail = found.columns.detail(found.row, &self.trace.strings);
        let detail = Some(("detail", json!(detail))).filter(|_| !detail.is_empty());
        let common = COMMON.into_iter().zip(self.common(&found.event));
        let known = common.filter(|(_, value)| !value.is_null()).chain(detail);
        let object: Json = known.map(|(name, value)| (name.to_owned(), value)).collect();
        self.line.extend_from_slice(object.to_string().as_bytes());
    }

    fn csv_row(&self, found: &Found<'_>) -> Vec<String> {
        let mut fields: Vec<String> = self.common(&found.event).iter().map(csv_text).collect();
        let Some(kind) = self.csv_kind else {
            fields.push(found.columns.detail(found.row, &self.trace.strings));
            return fields;
        };
        let specs = &self.specs[&kind];
        found.columns.visit_row(found.row, &mut |id, value| {
            if let Some(spec) = specs.iter().find(|spec| spec.id == id) {
                fields.push(csv_text(&self.json_value(spec, value)));
            }
        });
        fields
    }

    fn json_value(&self, spec: &ColumnSpec, value: Value) -> Json {
        match value {
            Value::Number(id) if spec.meaning == Meaning::String => {
                json!(self.trace.string(StringId(u32::try_from(id).unwrap_or(0))))
            }
            Value::Number(number) => json!(number),
            Value::Signed(number) => json!(number),
            // JSON has no word for these.
            Value::Float(number) if !number.is_finite() => json!(number.to_string()),
            Value::Float(number) => json!(number),
            Value::Flag(flag) => json!(flag),
            Value::Code(Some(name), _) => json!(name),
            Value::Code(None, number) => json!(number),
            Value::Blob(length) => json!(length),
            _ => Json::Null,
        }
    }
}

fn new_table() -> TextTable {
    TextTable::new(&[
        ("start", Align::Right),
        ("duration", Align::Right),
        ("kind", Align::Left),
        ("where", Align::Left),
        ("name", Align::Flexible),
        ("detail", Align::Clipped),
    ])
}

/// Columns that hold values, not row numbers into groups.
fn own_columns(specs: &[ColumnSpec]) -> Vec<&ColumnSpec> {
    specs
        .iter()
        .filter(|spec| spec.column_type != tracesmith_format::ColumnType::Index)
        .collect()
}

/// Seconds to the nanosecond, so that rows can be told apart and compared by eye.
fn offset(nanos: u64) -> String {
    format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000)
}

fn csv_text(value: &Json) -> String {
    match value {
        Json::Null => String::new(),
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}
