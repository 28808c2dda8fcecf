//! Replay recordings on their way into another trace.
//!
//! A recording is the calls, memory and device code of one process's window. It is replayed as a whole or not at all, so
//! it comes over whole or is left out whole, and the report lists what was left out.
//!
//! - Its rows name their process. Two recordings of different processes stay apart. Of two recordings of the same process
//!   (the same file twice, two windows of one process) the first stays: their calls have the same numbers.
//! - Contents and device code belong to no process. They are found by their hash, and written once.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Serialize, Serializer};
use tracesmith_format::tables::*;
use tracesmith_format::{
    Block, BlockKind, Columns, IdMap, ProcessId, Projection, Table, Timestamp, Writable, Writer,
};

use super::{DeviceCode, Input, TimeRange};
use crate::error::Error;
use crate::model::trace::Trace;
use crate::selection::Selected;

/// Tables without which a recording is not whole.
const OF_A_RECORDING: [BlockKind; 6] = [
    BlockKind::COMMANDS,
    BlockKind::BUFFERS,
    BlockKind::PIECES,
    BlockKind::CONTENTS,
    BlockKind::MODULES,
    BlockKind::STRINGS,
];

/// A replay recording that did not come over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RecordingLeftOut {
    /// The operating system's number of the process; 0 when the trace does not define the process.
    pub pid: u32,
    /// Why.
    pub reason: LeftOutReason,
}

/// Why a replay recording did not come over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeftOutReason {
    /// The range of a cut does not cover all its calls.
    OutsideRange,
    /// An earlier input of a merge holds a recording of the same process.
    SameProcess,
}

impl Serialize for LeftOutReason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.words())
    }
}

impl LeftOutReason {
    /// In words, for people.
    pub fn words(self) -> &'static str {
        match self {
            Self::OutsideRange => "the range does not cover all its calls",
            Self::SameProcess => "an earlier input holds a recording of the same process",
        }
    }
}

/// What inputs before the current one brought.
#[derive(Default)]
pub(super) struct Carried {
    /// Processes of the new trace that have a recording.
    owners: BTreeSet<ProcessId>,
    contents: FxHashSet<(u64, u64)>,
    /// The input that brings the code of a hash, where several have it.
    suppliers: FxHashMap<(u64, u64), usize>,
}

impl Carried {
    /// Decides which input brings code that several of them hold: the one that holds most of it, the first of equals.
    /// Parts of the same code from two inputs would be read as one long code.
    pub(super) fn plan(traces: &[Trace]) -> Result<Self, Error> {
        let mut carried = Self::default();
        if traces.len() < 2 {
            return Ok(carried);
        }
        let mut best: FxHashMap<(u64, u64), (u64, usize)> = FxHashMap::default();
        for (number, trace) in traces.iter().enumerate() {
            for (hash, bytes) in code_bytes(trace)? {
                let known = best.entry(hash).or_insert((bytes, number));
                if bytes > known.0 {
                    *known = (bytes, number);
                }
            }
        }
        carried.suppliers = best
            .into_iter()
            .map(|(hash, (_, number))| (hash, number))
            .collect();
        Ok(carried)
    }
}

/// How much of each code a trace holds.
fn code_bytes(trace: &Trace) -> Result<FxHashMap<(u64, u64), u64>, Error> {
    let wanted = Projection::of::<Module>(&["hash_high", "hash_low", "code"])?;
    let mut bytes: FxHashMap<(u64, u64), u64> = FxHashMap::default();
    for_each_block::<Module>(trace, &wanted, |_, modules| {
        for (row, code) in modules.code.iter().enumerate() {
            if !code.is_empty() {
                let hash = (modules.hash_high[row], modules.hash_low[row]);
                *bytes.entry(hash).or_default() += code.len() as u64;
            }
        }
    })?;
    Ok(bytes)
}

/// The recordings of one input, and which of them come over.
#[derive(Default)]
pub(super) struct Recordings {
    kept: BTreeSet<ProcessId>,
    /// Those that have calls: a replay takes the first of these.
    with_calls: BTreeSet<ProcessId>,
    left_out: BTreeMap<ProcessId, LeftOutReason>,
    /// Processes that a cut does not select: nobody misses their recordings.
    unselected: BTreeSet<ProcessId>,
    /// The code that comes over; all of it if `None`.
    code: Option<FxHashSet<(u64, u64)>>,
}

impl Recordings {
    /// Finds them. What a range does not cover is left out.
    pub(super) fn find(
        trace: &Trace,
        range: TimeRange,
        selected: &Selected,
        code: DeviceCode,
    ) -> Result<Self, Error> {
        let processes = trace.processes.iter().map(|process| process.id);
        let mut recordings = Self {
            unselected: processes.filter(|id| !selected.wants_process(*id)).collect(),
            ..Self::default()
        };
        let calls = Projection::of::<Command>(&["process", "time"])?;
        for_each_block::<Command>(trace, &calls, |block, commands| {
            for (process, time) in commands.process.iter().zip(&commands.time) {
                recordings.with_calls.insert(*process);
                let time = trace.clock_map.convert(block.header.clock, *time).time;
                if !covers(range, time) {
                    recordings.left_out.insert(*process, LeftOutReason::OutsideRange);
                }
            }
        })?;
        recordings.kept.extend(&recordings.with_calls);
        // A process that died before its first call was handed over still has memory.
        let process = Projection::of::<Buffer>(&["process"])?;
        for_each_block::<Buffer>(trace, &process, |_, buffers| {
            recordings.kept.extend(&buffers.process);
        })?;
        let process = Projection::of::<Piece>(&["process"])?;
        for_each_block::<Piece>(trace, &process, |_, pieces| {
            recordings.kept.extend(&pieces.process);
        })?;
        let unselected = &recordings.unselected;
        recordings
            .left_out
            .retain(|process, _| !unselected.contains(process));
        for process in recordings.left_out.keys().chain(unselected) {
            recordings.kept.remove(process);
        }
        if code == DeviceCode::Used {
            recordings.code = recordings.used_code(trace)?;
        }
        Ok(recordings)
    }

    /// The hashes of all code that the recordings use; `None` if the module of a kernel is not known, because a replay then
    /// looks for the kernel in all code.
    fn used_code(&self, trace: &Trace) -> Result<Option<FxHashSet<(u64, u64)>>, Error> {
        let mut launched = FxHashSet::default();
        let columns = Projection::of::<Command>(&["process", "kind", "module"])?;
        for_each_block::<Command>(trace, &columns, |_, commands| {
            for row in 0..commands.process.len() {
                let has_kernel = matches!(commands.kind[row], CommandKind::LAUNCH | CommandKind::ATTRIBUTE);
                if has_kernel && self.keep(commands.process[row]) {
                    launched.insert((commands.process[row], commands.module[row]));
                }
            }
        })?;
        let mut with_globals = FxHashSet::default();
        let columns = Projection::of::<Buffer>(&["process", "module"])?;
        for_each_block::<Buffer>(trace, &columns, |_, buffers| {
            with_globals.extend(
                buffers
                    .process
                    .iter()
                    .copied()
                    .zip(buffers.module.iter().copied()),
            );
        })?;
        let (mut used, mut known) = (FxHashSet::default(), FxHashSet::default());
        let columns = Projection::of::<Module>(&["process", "hash_high", "hash_low", "handle"])?;
        for_each_block::<Module>(trace, &columns, |_, modules| {
            for row in (0..modules.handle.len()).filter(|row| modules.handle[*row] != 0) {
                let module = (modules.process[row], modules.handle[row]);
                if launched.contains(&module) || with_globals.contains(&module) {
                    used.insert((modules.hash_high[row], modules.hash_low[row]));
                    known.insert(module);
                }
            }
        })?;
        Ok(launched.is_subset(&known).then_some(used))
    }

    /// Whether some come over.
    pub(super) fn any(&self) -> bool {
        !self.kept.is_empty()
    }

    /// Whether some come over that a replay can take.
    pub(super) fn has_calls(&self) -> bool {
        !self.kept.is_disjoint(&self.with_calls)
    }

    /// Whether a fact of the metadata is about a recording that does not come over. A fact names its process by the pid:
    /// in containers, processes of several hosts have the same. It stays if one of them comes over.
    pub(super) fn has_left_out(&self, key: &str, trace: &Trace) -> bool {
        let is_of = |process: &ProcessId| key.starts_with(&format!("process.{}.", pid_of(trace, *process)));
        is_fact(key)
            && self.left_out.keys().chain(&self.unselected).any(is_of)
            && !self.kept.iter().any(is_of)
    }

    /// Whether rows of a process come over.
    fn keep(&self, process: ProcessId) -> bool {
        !self.left_out.contains_key(&process) && !self.unselected.contains(&process)
    }
}

/// Whether a fact of the metadata is about a recording: `process.PID.recording.commands` and the like.
pub(super) fn is_fact(key: &str) -> bool {
    key.contains(".recording.") || key.starts_with("recording.")
}

/// A call without a time is no reason to take its recording apart.
fn covers(range: TimeRange, time: Timestamp) -> bool {
    range.is_all() || !time.is_some() || range.covers(time, time)
}

fn pid_of(trace: &Trace, process: ProcessId) -> u32 {
    trace.process(process).map_or(0, |process| process.pid)
}

/// Blocks that cannot be read are noted.
fn for_each_block<T: Table>(
    trace: &Trace,
    wanted: &Projection,
    mut take: impl FnMut(&Block, T::Columns),
) -> Result<(), Error> {
    let mut decoder = trace.file.reader.decoder();
    for block in trace.blocks().iter().filter(|block| block.header.kind == T::KIND) {
        match decoder.read::<T>(block, wanted) {
            Ok(columns) => take(block, columns),
            Err(error @ tracesmith_format::Error::Damaged { .. }) => trace.file.note(block, error),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

impl<W: Write> Input<'_, W> {
    /// Leaves out recordings of processes that an earlier input has recorded, and states in the new trace what was left
    /// out. Ids of processes must be known.
    pub(super) fn settle_recordings(&mut self) -> Result<(), Error> {
        let mut ours = BTreeSet::new();
        for process in std::mem::take(&mut self.recordings.kept) {
            let new = IdMap::process(&mut self.map, process);
            if self.carried.owners.contains(&new) {
                let reason = LeftOutReason::SameProcess;
                self.recordings.left_out.insert(process, reason);
            } else {
                ours.insert(new);
                self.recordings.kept.insert(process);
            }
        }
        self.report.recordings += ours.len() as u64;
        self.carried.owners.extend(ours);
        for (process, reason) in self.recordings.left_out.clone() {
            let pid = pid_of(self.trace, process);
            self.report
                .recordings_left_out
                .push(RecordingLeftOut { pid, reason });
            let words = format!(
                "the replay recording of process {pid} was left out: {}",
                reason.words()
            );
            let detail = self.map.writer.string(&words)?;
            let process = IdMap::process(&mut self.map, process);
            self.map.writer.define(&Health {
                cause: HealthCause::NOT_CARRIED,
                table: BlockKind::COMMANDS.0,
                process,
                count: 1,
                detail,
                ..Health::default()
            })?;
        }
        Ok(())
    }

    pub(super) fn carry_commands(&mut self, block: &Block) -> Result<(), Error> {
        self.carry_recorded::<Command>(block, |commands, row| commands.process[row])
    }

    pub(super) fn carry_buffers(&mut self, block: &Block) -> Result<(), Error> {
        self.carry_recorded::<Buffer>(block, |buffers, row| buffers.process[row])
    }

    pub(super) fn carry_pieces(&mut self, block: &Block) -> Result<(), Error> {
        self.carry_recorded::<Piece>(block, |pieces, row| pieces.process[row])
    }

    fn carry_recorded<T: Writable>(
        &mut self,
        block: &Block,
        process: impl Fn(&T::Columns, usize) -> ProcessId,
    ) -> Result<(), Error> {
        let Some(columns) = self.read::<T>(block)? else {
            return Ok(());
        };
        let kept: Vec<usize> = (0..columns.len())
            .filter(|row| self.recordings.keep(process(&columns, *row)))
            .collect();
        let columns = rows_of::<T>(columns, &kept);
        self.write_whole::<T>(block, columns)
    }

    /// Contents are found by their hash. Where no recording comes over they have no reader.
    pub(super) fn carry_contents(&mut self, block: &Block) -> Result<(), Error> {
        if !self.recordings.any() {
            return Ok(());
        }
        let Some(contents) = self.read::<Content>(block)? else {
            return Ok(());
        };
        let new: Vec<usize> = (0..contents.len())
            .filter(|row| {
                let hash = (contents.hash_high[*row], contents.hash_low[*row]);
                self.carried.contents.insert(hash)
            })
            .collect();
        let contents = rows_of::<Content>(contents, &new);
        self.write_whole::<Content>(block, contents)
    }

    /// Kernels of a cut can come from code that was loaded long before it: all modules of selected processes are kept.
    /// Code that another input brings is not written again, and code that no recorded call uses may be left out. A handle
    /// of a recording that was left out would stand for other code than its own.
    pub(super) fn carry_modules(&mut self, block: &Block) -> Result<(), Error> {
        let Some(mut modules) = self.read::<Module>(block)? else {
            return Ok(());
        };
        let number = self.number;
        let is_elsewhere = |hash| {
            let supplier = self.carried.suppliers.get(&hash);
            supplier.is_some_and(|supplier| *supplier != number)
        };
        let mut changed = Modules::default();
        let mut is_changed = false;
        for row in 0..modules.len() {
            let mut module = modules.row(row);
            if module.handle != 0 && !self.recordings.keep(module.process) {
                is_changed = true;
                continue;
            }
            if module.process.is_some() && !self.selected.wants_process(module.process) {
                is_changed = true;
                if module.code.0.is_empty() {
                    continue;
                }
                // Code is stored once, even if several processes load it: a selected process may use it.
                module = Module {
                    size: module.size,
                    hash_high: module.hash_high,
                    hash_low: module.hash_low,
                    code: module.code,
                    ..Module::default()
                };
            }
            let hash = (module.hash_high, module.hash_low);
            let is_unused = self
                .recordings
                .code
                .as_ref()
                .is_some_and(|used| !used.contains(&hash));
            if !module.code.0.is_empty() && (is_unused || is_elsewhere(hash)) {
                is_changed = true;
                let bytes = std::mem::take(&mut module.code).0.len() as u64;
                if is_unused {
                    self.report.unused_code_bytes += bytes;
                    // Rows that only hold code are left out.
                    if !module.loaded.is_some() && module.handle == 0 {
                        continue;
                    }
                }
            }
            changed.push(&module);
        }
        if is_changed {
            modules = changed;
        }
        self.write_whole::<Module>(block, modules)
    }
}

/// Some rows of a block, all of them without a copy.
pub(super) fn rows_of<T: Table>(columns: T::Columns, rows: &[usize]) -> T::Columns {
    if rows.len() == columns.len() {
        return columns;
    }
    let mut some = T::Columns::default();
    for row in rows {
        some.push(&columns.row(*row));
    }
    some
}

/// States that recordings of a damaged file may have holes: the new file has no damage of its own that would show it.
/// `suffix` is that of the input's facts.
pub(crate) fn write_doubt<W: Write>(
    trace: &Trace,
    suffix: &str,
    writer: &mut Writer<W>,
) -> Result<(), Error> {
    let has_recording = trace
        .blocks()
        .iter()
        .any(|block| block.header.kind == BlockKind::COMMANDS);
    // What a damaged part of a file was may not be known.
    let is_damaged = trace
        .file
        .damage()
        .iter()
        .any(|damage| damage.kind.is_none_or(|kind| OF_A_RECORDING.contains(&kind)));
    if has_recording && is_damaged {
        let words = "the replay recording is incomplete: the original file is truncated or damaged";
        writer.metadata(&format!("recording.broken{suffix}"), words)?;
    }
    Ok(())
}
