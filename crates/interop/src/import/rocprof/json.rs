//! rocprofv3's JSON, read as a stream: one record is in memory at a time.
//!
//! Records name kernels, agents and operations by numbers whose tables the tool writes first. A file that has them
//! later is read all the same: its records then wait in memory, about 260 bytes each, until the tables are there.

use std::fmt;
use std::io::BufReader;

use rustc_hash::FxHashMap;
use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::rows::Rows;
use super::schema::*;
use super::tables::Tables;
use crate::error::Error;
use crate::import::{Builder, ImportOptions, Input};

const ROOT: &str = "rocprofiler-sdk-tool";

pub(super) fn sniff(head: &[u8]) -> bool {
    let mut words = head
        .split(|byte| byte.is_ascii_whitespace())
        .filter(|word| !word.is_empty());
    let mut start = Vec::new();
    while start.len() < ROOT.len() + 3 {
        let Some(word) = words.next() else {
            break;
        };
        start.extend_from_slice(&word[..word.len().min(64)]);
    }
    start.starts_with(format!("{{\"{ROOT}\"").as_bytes())
}

pub(super) fn read(input: &mut Input, _: &ImportOptions, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
    let mut session = Session {
        builder,
        tool: Tool::default(),
        failure: None,
    };
    let reader = BufReader::with_capacity(256 << 10, input);
    let mut deserializer = serde_json::Deserializer::from_reader(reader);
    let result = Root(&mut session)
        .deserialize(&mut deserializer)
        .and_then(|()| deserializer.end());
    if let Some(failure) = session.failure {
        return Err(failure);
    }
    match result {
        Ok(()) => Ok(()),
        Err(error) if error.is_eof() => {
            session.end_tool()?;
            session.builder.cut("the file ends in its middle");
            Ok(())
        }
        Err(error) if error.is_io() => Err(Error::Read { source: error.into() }),
        Err(error) => Err(Error::Foreign {
            format: "rocprof",
            position: format!("line {} column {}", error.line(), error.column()),
            problem: strip_position(&error),
        }),
    }
}

/// The error's words alone: where it is stands elsewhere.
fn strip_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line ") {
        Some((words, _)) => words.to_owned(),
        None => text,
    }
}

/// What the reader of a file has at hand.
struct Session<'s, 'b, 'w> {
    builder: &'s mut Builder<'b, 'w>,
    tool: Tool,
    /// Why reading stopped, when it was not for the file's sake.
    failure: Option<Error>,
}

/// What is known of one process.
#[derive(Default)]
struct Tool {
    seen: Seen,
    metadata: Metadata,
    agents: Vec<Agent>,
    counters: FxHashMap<Handle, String>,
    tables: Tables,
    rows: Option<Rows>,
    waiting: Vec<(RecordKind, BufferRecord)>,
}

/// Which of the tables that records refer to have come.
#[derive(Default)]
struct Seen {
    metadata: bool,
    agents: bool,
    strings: bool,
    kernel_symbols: bool,
}

/// The arrays that records stand in.
#[derive(Clone, Copy)]
pub(super) enum RecordKind {
    Dispatch,
    Call,
    Marker,
    Copy,
    Allocation,
    Scratch,
}

impl<'b, 'w> Session<'_, 'b, 'w> {
    /// Keeps an error of ours while the reader unwinds.
    fn stop<E: de::Error>(&mut self, error: Error) -> E {
        self.failure = Some(error);
        E::custom("stopped")
    }

    fn symbol(&mut self, symbol: KernelSymbol) -> Result<(), Error> {
        self.tool.tables.add_kernel(&symbol, self.builder)
    }

    fn agent(&mut self, agent: Agent) -> Result<(), Error> {
        self.tool.agents.push(agent);
        Ok(())
    }

    fn counter_info(&mut self, counter: CounterInfo) -> Result<(), Error> {
        self.tool.counters.insert(counter.id, counter.name);
        Ok(())
    }

    fn record(&mut self, kind: RecordKind, record: &BufferRecord) -> Result<(), Error> {
        let seen = &self.tool.seen;
        if !(seen.metadata && seen.agents && seen.strings && seen.kernel_symbols) {
            self.tool.waiting.push((kind, *record));
            return Ok(());
        }
        self.prepare()?;
        let Tool { tables, rows, .. } = &self.tool;
        let rows = rows.as_ref().expect("prepare made them");
        tables.write(rows, kind, record, self.builder)
    }

    fn counter_record(&mut self, record: CounterRecord) -> Result<(), Error> {
        if !(self.tool.seen.metadata && self.tool.seen.agents) {
            self.builder
                .skip("counter records before the agents they belong to", 1);
            return Ok(());
        }
        self.prepare()?;
        let Tool {
            tables,
            rows,
            counters,
            ..
        } = &self.tool;
        let rows = rows.as_ref().expect("prepare made them");
        tables.write_counters(rows, &record, counters, self.builder)
    }

    /// Makes host, process and devices of what the tables say.
    fn prepare(&mut self) -> Result<(), Error> {
        if self.tool.rows.is_none() {
            let Tool {
                metadata,
                agents,
                tables,
                ..
            } = &mut self.tool;
            let host = tables.add_process(metadata, self.builder)?;
            for agent in agents {
                tables.add_agent(host, agent, self.builder)?;
            }
            self.tool.rows = Some(Rows::new(host, self.builder)?);
        }
        Ok(())
    }

    /// Writes what waited for tables.
    fn end_tool(&mut self) -> Result<(), Error> {
        self.prepare()?;
        let Tool {
            tables,
            rows,
            waiting,
            ..
        } = std::mem::take(&mut self.tool);
        let rows = rows.expect("prepare made them");
        for (kind, record) in &waiting {
            tables.write(&rows, *kind, record, self.builder)?;
        }
        Ok(())
    }
}

/// A part of the document that is read as a stream.
macro_rules! part {
    ($name:ident, $deserialize:ident, $expecting:literal, $visitor:item) => {
        struct $name<'v, 's, 'b, 'w>(&'v mut Session<'s, 'b, 'w>);

        impl<'de> DeserializeSeed<'de> for $name<'_, '_, '_, '_> {
            type Value = ();

            fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
                deserializer.$deserialize(self)
            }
        }

        impl<'de> Visitor<'de> for $name<'_, '_, '_, '_> {
            type Value = ();

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str($expecting)
            }

            $visitor
        }
    };
}

part!(
    Root,
    deserialize_map,
    "rocprofv3's results",
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            if key == ROOT {
                map.next_value_seed(Tools(self.0))?;
            } else {
                map.next_value::<IgnoredAny>()?;
                self.0.builder.skip("parts of the file beside the tool's", 1);
            }
        }
        Ok(())
    }
);

part!(
    Tools,
    deserialize_seq,
    "a list of processes",
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element_seed(OneTool(self.0))?.is_some() {
            let ended = self.0.end_tool();
            ended.map_err(|error| self.0.stop(error))?;
        }
        Ok(())
    }
);

part!(
    OneTool,
    deserialize_map,
    "what one process did",
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "metadata" => {
                    self.0.tool.metadata = map.next_value()?;
                    self.0.tool.seen.metadata = true;
                }
                "agents" => {
                    map.next_value_seed(Each::new(self.0, Session::agent))?;
                    self.0.tool.seen.agents = true;
                }
                "strings" => {
                    let strings = map.next_value()?;
                    self.0.tool.tables.add_strings(strings);
                    self.0.tool.seen.strings = true;
                }
                "kernel_symbols" => {
                    map.next_value_seed(Each::new(self.0, Session::symbol))?;
                    self.0.tool.seen.kernel_symbols = true;
                }
                "counters" => map.next_value_seed(Each::new(self.0, Session::counter_info))?,
                "callback_records" => map.next_value_seed(CallbackRecords(self.0))?,
                "buffer_records" => map.next_value_seed(BufferRecords(self.0))?,
                "code_objects" | "host_functions" | "summary" => {
                    let count = map.next_value_seed(Count)?;
                    self.0.builder.skip(&key, count);
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    self.0.builder.skip("parts of a process's results", 1);
                }
            }
        }
        Ok(())
    }
);

part!(
    BufferRecords,
    deserialize_map,
    "records by kind",
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            let take: fn(&mut Session<'_, '_, '_>, BufferRecord) -> Result<(), Error> = match key.as_str() {
                "kernel_dispatch" => |session, record| session.record(RecordKind::Dispatch, &record),
                "marker_api" => |session, record| session.record(RecordKind::Marker, &record),
                "memory_copy" => |session, record| session.record(RecordKind::Copy, &record),
                "memory_allocation" => |session, record| session.record(RecordKind::Allocation, &record),
                "scratch_memory" => |session, record| session.record(RecordKind::Scratch, &record),
                name if name.ends_with("_api") => |session, record| session.record(RecordKind::Call, &record),
                name => {
                    let count = map.next_value_seed(Count)?;
                    self.0.builder.skip(name, count);
                    continue;
                }
            };
            map.next_value_seed(Each::new(self.0, take))?;
        }
        Ok(())
    }
);

part!(
    CallbackRecords,
    deserialize_map,
    "records by kind",
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            if key == "counter_collection" {
                map.next_value_seed(Each::new(self.0, Session::counter_record))?;
            } else {
                let count = map.next_value_seed(Count)?;
                self.0.builder.skip(&key, count);
            }
        }
        Ok(())
    }
);

/// A list whose elements are taken one by one.
struct Each<'v, 's, 'b, 'w, T> {
    session: &'v mut Session<'s, 'b, 'w>,
    take: fn(&mut Session<'s, 'b, 'w>, T) -> Result<(), Error>,
}

impl<'v, 's, 'b, 'w, T> Each<'v, 's, 'b, 'w, T> {
    fn new(
        session: &'v mut Session<'s, 'b, 'w>,
        take: fn(&mut Session<'s, 'b, 'w>, T) -> Result<(), Error>,
    ) -> Self {
        Each { session, take }
    }
}

impl<'de, T: serde::Deserialize<'de>> DeserializeSeed<'de> for Each<'_, '_, '_, '_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, T: serde::Deserialize<'de>> Visitor<'de> for Each<'_, '_, '_, '_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while let Some(element) = seq.next_element()? {
            (self.take)(self.session, element).map_err(|error| self.session.stop(error))?;
        }
        Ok(())
    }
}

/// How many elements a list has; anything else counts as one, nothing as none.
struct Count;

impl<'de> DeserializeSeed<'de> for Count {
    type Value = u64;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<u64, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Count {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<u64, A::Error> {
        let mut count = 0;
        while seq.next_element::<IgnoredAny>()?.is_some() {
            count += 1;
        }
        Ok(count)
    }
}
