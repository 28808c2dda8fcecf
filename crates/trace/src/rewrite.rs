//! Making one trace of others: the merge of several, the cut of one.
//!
//! Rows move over with new ids. What events refer to is carried over first; strings, frames and stacks only as
//! far as something refers to them. The same host, process, device or clock in two traces becomes one, so that traces of
//! one machine share a timeline; different clocks stay apart, with the pairs that link them.

use std::io::Write;

use serde::{Deserialize, Serialize};
use tracesmith_format::tables::*;
use tracesmith_format::{
    Block, BlockKind, Columns, DeviceId, ProcessId, Projection, Table, Timestamp, Writable, Writer,
    for_each_event_table,
};

use crate::error::Error;
use crate::model::event::EventColumns;
use crate::model::trace::{Trace, rows};
use crate::repair::write_damage;
use crate::selection::{Selected, Selection};
use ids::{InputMap, NewIds};

mod hosts;
mod ids;
mod naming;
mod recordings;

use hosts::Clocks;
pub use hosts::{HostLink, HostPlacement};
use naming::Naming;
pub use naming::{FrameToName, NameFn, NamedFunction};
pub(crate) use recordings::write_doubt;
use recordings::{Carried, Recordings, rows_of};
pub use recordings::{LeftOutReason, RecordingLeftOut};

/// A stretch of a trace's timeline; an open end is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TimeRange {
    /// Where it starts.
    pub from: Option<Timestamp>,
    /// Where it ends, this moment not included.
    pub to: Option<Timestamp>,
}

impl TimeRange {
    /// Whether it has no limits.
    pub fn is_all(&self) -> bool {
        self.from.is_none() && self.to.is_none()
    }

    /// Whether something that lasts from `start` to `end` reaches into it. What has no time does not.
    pub fn holds(&self, start: Timestamp, end: Timestamp) -> bool {
        start.is_some()
            && self.from.is_none_or(|from| end.max(start) >= from)
            && self.to.is_none_or(|to| start < to)
    }

    fn covers(&self, first: Timestamp, last: Timestamp) -> bool {
        first.is_some() && self.from.is_none_or(|from| first >= from) && self.to.is_none_or(|to| last < to)
    }
}

/// What a merge or cut did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RewriteReport {
    /// Rows of events that were written.
    pub rows: u64,
    /// Rows of events outside the time range or the selection.
    pub rows_outside: u64,
    /// Rows of tables that this version does not know and could not carry over.
    pub rows_not_carried: u64,
    /// Replay recordings that were written.
    pub recordings: u64,
    /// Replay recordings that were not.
    pub recordings_left_out: Vec<RecordingLeftOut>,
    /// Bytes of device code that was left out because no recorded call uses it.
    pub unused_code_bytes: u64,
    /// Blocks that could not be read.
    pub damaged_blocks: u64,
    /// How the hosts of a merge but the first were placed on its timeline.
    pub hosts: Vec<HostPlacement>,
}

/// Writes the part of a trace that lies in `range` and belongs to `selection`; rows that reach into the range are kept
/// whole. Rows without a time are left out of a range, and so is device code that no replay recording in it uses. The
/// caller finishes the writer.
pub fn cut<W: Write>(
    trace: &Trace,
    range: TimeRange,
    selection: &Selection,
    writer: &mut Writer<W>,
    progress: &mut dyn FnMut(u64),
) -> Result<RewriteReport, Error> {
    if let (Some(from), Some(to)) = (range.from, range.to)
        && from >= to
    {
        return Err(Error::EmptyRange {
            from: from.0,
            to: to.0,
        });
    }
    let plan = Plan {
        range,
        selected: Selected::of(trace, selection)?,
        code: DeviceCode::Used,
        ..Plan::default()
    };
    rewrite(std::slice::from_ref(trace), plan, Naming::Kept, writer, progress)
}

/// Writes several traces as one. `link` says what brings the clocks of several hosts together. The caller finishes the
/// writer.
pub fn merge<W: Write>(
    traces: &[Trace],
    link: HostLink,
    writer: &mut Writer<W>,
    progress: &mut dyn FnMut(u64),
) -> Result<RewriteReport, Error> {
    if traces.is_empty() {
        return Err(Error::NothingToMerge);
    }
    let plan = Plan {
        link,
        ..Plan::default()
    };
    rewrite(traces, plan, Naming::Kept, writer, progress)
}

/// Writes a trace with names for the native frames of its stacks: those that `name` finds, else those that it had. The
/// caller finishes the writer.
pub fn symbolize<W: Write>(
    trace: &Trace,
    name: &mut NameFn<'_>,
    writer: &mut Writer<W>,
    progress: &mut dyn FnMut(u64),
) -> Result<RewriteReport, Error> {
    let traces = std::slice::from_ref(trace);
    rewrite(traces, Plan::default(), Naming::Anew(name), writer, progress)
}

/// What comes over, and how.
#[derive(Clone, Default)]
struct Plan {
    range: TimeRange,
    selected: Selected,
    link: HostLink,
    code: DeviceCode,
}

/// Which device code comes over.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum DeviceCode {
    #[default]
    All,
    /// Only what the recorded calls use.
    Used,
}

fn rewrite<W: Write>(
    traces: &[Trace],
    plan: Plan,
    mut naming: Naming<'_, '_>,
    writer: &mut Writer<W>,
    progress: &mut dyn FnMut(u64),
) -> Result<RewriteReport, Error> {
    let Plan {
        range,
        selected,
        link,
        code,
    } = plan;
    let mut report = RewriteReport::default();
    let mut new_ids = NewIds::default();
    let mut carried = Carried::plan(traces)?;
    let mut clocks = Clocks::default();
    let found: Vec<Recordings> = traces
        .iter()
        .map(|trace| Recordings::find(trace, range, &selected, code))
        .collect::<Result<_, _>>()?;
    let suffixes = suffixes_of_recordings(&found);
    write_metadata(traces, (range, &selected), (&found, &suffixes), writer)?;
    for (number, (trace, recordings)) in traces.iter().zip(found).enumerate() {
        let mut input = Input {
            map: InputMap::new(trace, writer, &mut new_ids),
            trace,
            number,
            range,
            selected: &selected,
            recordings,
            carried: &mut carried,
            clocks: &mut clocks,
            report: &mut report,
        };
        input.write_origin()?;
        input.settle_recordings()?;
        input.write_events(progress)?;
        input.write_symbols(&mut naming)?;
        let has_recording = input.recordings.any();
        let damage = trace.file.damage();
        report.damaged_blocks += damage.iter().filter(|damage| damage.kind.is_some()).count() as u64;
        write_damage(&damage, writer)?;
        if has_recording {
            write_doubt(trace, &suffixes[number], writer)?;
        }
    }
    if link == HostLink::Ptp {
        clocks.link_by_ptp(&mut new_ids, writer)?;
    }
    report.hosts = clocks.placements();
    if report.rows_not_carried > 0 {
        writer.define(&Health {
            cause: HealthCause::NOT_CARRIED,
            count: report.rows_not_carried,
            ..Health::default()
        })?;
    }
    Ok(report)
}

/// What is put behind the keys of each input's facts about recordings: nothing for the first input that has one, which is
/// the one that is replayed, and the input's number for the others. A reader must not take the facts of one recording for
/// those of another, whatever numbers their processes had.
fn suffixes_of_recordings(found: &[Recordings]) -> Vec<String> {
    let first = found.iter().position(Recordings::has_calls).unwrap_or(0);
    let suffix = |number| match number {
        number if number == first => String::new(),
        number => format!(".{}", number + 1),
    };
    (0..found.len()).map(suffix).collect()
}

/// A fact that several traces state alike is stated once; where they differ, later ones get the trace's number.
fn write_metadata<W: Write>(
    traces: &[Trace],
    (range, selected): (TimeRange, &Selected),
    (found, suffixes): (&[Recordings], &[String]),
    writer: &mut Writer<W>,
) -> Result<(), Error> {
    let mut stated = std::collections::BTreeMap::new();
    for (number, trace) in traces.iter().enumerate() {
        for (key, value) in &trace.metadata {
            if recordings::is_fact(key) {
                if !found[number].has_left_out(key, trace) {
                    writer.metadata(&format!("{key}{}", suffixes[number]), value)?;
                }
                continue;
            }
            match stated.get(key) {
                None => {
                    stated.insert(key.clone(), value.clone());
                    writer.metadata(key, value)?;
                }
                Some(other) if other == value => {}
                Some(_) => writer.metadata(&format!("{key}.{}", number + 1), value)?,
            }
        }
    }
    for (key, time) in [("cut.from", range.from), ("cut.to", range.to)] {
        if let Some(time) = time {
            writer.metadata(key, &time.0.to_string())?;
        }
    }
    for (key, text) in selection_facts(&traces[0], selected.selection()) {
        writer.metadata(key, &text)?;
    }
    Ok(())
}

/// What a cut selected, in numbers that people know: pids, the driver's numbers of devices, streams.
fn selection_facts(trace: &Trace, selection: &Selection) -> Vec<(&'static str, String)> {
    let list = |numbers: Vec<String>| numbers.join(",");
    let pid = |id: &ProcessId| trace.process(*id).map_or(0, |process| process.pid).to_string();
    let ordinal = |id: &DeviceId| trace.device(*id).map_or(0, |device| device.ordinal).to_string();
    let processes = selection.processes.as_ref();
    let devices = selection.devices.as_ref();
    let streams = selection.streams.as_ref();
    let facts = [
        (
            "cut.processes",
            processes.map(|ids| ids.iter().map(pid).collect()),
        ),
        (
            "cut.devices",
            devices.map(|ids| ids.iter().map(ordinal).collect()),
        ),
        (
            "cut.streams",
            streams.map(|ids| ids.iter().map(|id| id.0.to_string()).collect()),
        ),
    ];
    let stated = facts
        .into_iter()
        .filter_map(|(key, numbers)| Some((key, list(numbers?))));
    stated.collect()
}

/// Blocks whose rows come over in another way: as metadata, with `write_origin` and `write_symbols`, as far as events refer
/// to them, or as the new file's own.
const WRITTEN_ELSEWHERE: [BlockKind; 18] = [
    BlockKind::METADATA,
    BlockKind::SCHEMA,
    BlockKind::STRINGS,
    BlockKind::HOSTS,
    BlockKind::PROCESSES,
    BlockKind::THREADS,
    BlockKind::DEVICES,
    BlockKind::CONTEXTS,
    BlockKind::STREAMS,
    BlockKind::IMAGES,
    BlockKind::FRAMES,
    BlockKind::STACKS,
    BlockKind::SYMBOLS,
    BlockKind::CLOCKS,
    BlockKind::CLOCK_PAIRS,
    BlockKind::HEALTH,
    BlockKind::INDEX,
    BlockKind::END,
];

/// One trace on its way into another.
struct Input<'a, W: Write> {
    map: InputMap<'a, W>,
    trace: &'a Trace,
    /// Its place among the inputs.
    number: usize,
    range: TimeRange,
    selected: &'a Selected,
    recordings: Recordings,
    carried: &'a mut Carried,
    clocks: &'a mut Clocks,
    report: &'a mut RewriteReport,
}

impl<W: Write> Input<'_, W> {
    /// Everything that events refer to, and what is known of the recording.
    fn write_origin(&mut self) -> Result<(), Error> {
        let trace = self.trace;
        let selected = self.selected;
        let of = |process: ProcessId| !process.is_some() || selected.wants_process(process);
        self.map.define_hosts(&trace.hosts)?;
        let peers = selected.peers(trace)?;
        let is_wanted = |device: &Device| selected.wants_device(device.id) || peers.contains(&device.id);
        self.map.define_devices(&some(&trace.devices, is_wanted))?;
        self.map
            .define_processes(&some(&trace.processes, |process: &Process| of(process.id)))?;
        self.map.define_clocks(&trace.clocks)?;
        for (_, images) in trace.images.columns() {
            self.map.define_images(images, of)?;
        }
        self.define_all(&some(&trace.threads, |thread: &Thread| of(thread.process)))?;
        let is_wanted = |context: &Context| selected.wants_memory(context.process, context.device);
        self.define_all(&some(&trace.contexts, is_wanted))?;
        let is_wanted = |stream: &Stream| selected.wants_sync(stream.process, stream.device, stream.stream);
        self.define_all(&some(&trace.streams, is_wanted))?;
        let pairs = rows::<ClockPair>(&trace.file);
        self.note_clocks(&pairs)?;
        self.define_all(&pairs)?;
        let health = rows::<Health>(&trace.file);
        self.define_all(&some(&health, |health: &Health| of(health.process)))
    }

    fn define_all<T: Writable>(&mut self, rows: &[T]) -> Result<(), Error> {
        for row in rows {
            let row = self.map.remapped(row)?;
            self.map.writer.define(&row)?;
        }
        Ok(())
    }

    /// Events, modules, graphs and recordings in file order: what was recorded together stays together. Every kind of
    /// block has its line here: what has none is counted.
    fn write_events(&mut self, progress: &mut dyn FnMut(u64)) -> Result<(), Error> {
        for block in self.trace.blocks() {
            macro_rules! carry {
                ($($field:ident: $row:ident,)*) => {
                    match block.header.kind {
                        $(<$row as Table>::KIND => self.carry::<$row>(block)?,)*
                        BlockKind::MODULES => self.carry_modules(block)?,
                        BlockKind::GRAPH_EDGES => self.carry_edges(block)?,
                        BlockKind::COMMANDS => self.carry_commands(block)?,
                        BlockKind::BUFFERS => self.carry_buffers(block)?,
                        BlockKind::PIECES => self.carry_pieces(block)?,
                        BlockKind::CONTENTS => self.carry_contents(block)?,
                        kind if WRITTEN_ELSEWHERE.contains(&kind) => {}
                        _ => self.report.rows_not_carried += u64::from(block.header.rows),
                    }
                };
            }
            for_each_event_table!(carry);
            progress(block.header.total_length());
        }
        Ok(())
    }

    fn carry<T: Writable>(&mut self, block: &Block) -> Result<(), Error>
    where
        T::Columns: EventColumns,
    {
        let (first, last) = self.trace.block_span(block);
        if !self.range.is_all() && !self.range.holds(first, last) {
            self.report.rows_outside += u64::from(block.header.rows);
            return Ok(());
        }
        let Some(columns) = self.read::<T>(block)? else {
            return Ok(());
        };
        let is_covered = self.range.is_all() || (self.range.covers(first, last) && all_timed(&columns));
        let mut columns = if is_covered && self.selected.is_all() {
            columns
        } else {
            self.rows_inside(&columns, block)
        };
        self.report.rows += columns.len() as u64;
        columns.remap(&mut self.map);
        self.map.check()?;
        let clock = self.map.new_clock(block.header.clock);
        self.clocks.add_block(clock, block);
        self.map.writer.push_columns::<T>(clock, &columns)?;
        Ok(())
    }

    fn rows_inside<C: Columns + EventColumns>(&mut self, columns: &C, block: &Block) -> C {
        let mut inside = C::default();
        for row in 0..columns.len() {
            let (start, end) = columns.times(row);
            let convert = |time| self.trace.clock_map.convert(block.header.clock, time).time;
            let is_inside = self.range.is_all() || self.range.holds(convert(start), convert(end));
            if is_inside && self.selected.wants(&columns.event(row)) {
                inside.push(&columns.row(row));
            } else {
                self.report.rows_outside += 1;
            }
        }
        inside
    }

    /// Kernels of a cut can come from graphs that were made long before it: those are all kept.
    fn carry_edges(&mut self, block: &Block) -> Result<(), Error> {
        let Some(columns) = self.read::<GraphEdge>(block)? else {
            return Ok(());
        };
        let is_wanted = |row: &usize| self.selected.wants_process(columns.process[*row]);
        let kept: Vec<usize> = (0..columns.len()).filter(is_wanted).collect();
        let columns = rows_of::<GraphEdge>(columns, &kept);
        self.write_whole::<GraphEdge>(block, columns)
    }

    fn write_whole<T: Writable>(&mut self, block: &Block, mut columns: T::Columns) -> Result<(), Error> {
        if columns.is_empty() {
            return Ok(());
        }
        columns.remap(&mut self.map);
        self.map.check()?;
        let clock = self.map.new_clock(block.header.clock);
        self.map.writer.push_columns::<T>(clock, &columns)?;
        Ok(())
    }

    /// `None` for a damaged block, which is noted.
    fn read<T: Table>(&mut self, block: &Block) -> Result<Option<T::Columns>, Error> {
        match self
            .trace
            .file
            .reader
            .decoder()
            .read::<T>(block, &Projection::all())
        {
            Ok(columns) => Ok(Some(columns)),
            Err(error @ tracesmith_format::Error::Damaged { .. }) => {
                self.trace.file.note(block, error);
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// The rows that are wanted.
fn some<T: Clone>(rows: &[T], is_wanted: impl Fn(&T) -> bool) -> Vec<T> {
    rows.iter().filter(|row| is_wanted(row)).cloned().collect()
}

fn all_timed<C: Columns>(columns: &C) -> bool {
    (0..columns.len()).all(|row| columns.times(row).0.is_some())
}
