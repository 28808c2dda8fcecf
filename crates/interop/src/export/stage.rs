//! Where each row of a trace stands in trace-event JSON: the part that the two dialects share.
//!
//! Rows come in the order of time, so that a lane can be found for each, memory in use can be followed, and what a row of
//! another table says of the row at the same moment can be joined to it.

mod tracks;

use rustc_hash::FxHashMap;
use tracesmith_format::tables::*;
use tracesmith_format::{CorrelationId, DeviceId, ProcessId, StreamId, StringId};
use tracesmith_trace::Trace;

use crate::export::pids::Pids;
use crate::export::sweep::{External, LEFT_OUT, Piece, Rows};
use crate::export::tracks::{Role, Tracks};

/// Whose habits are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// Chrome and Perfetto: everything on tracks of its own, where nothing is in the way of anything.
    Chrome,
    /// PyTorch's profiler: what a thread or stream did is on one track.
    Kineto,
}

/// The track of an item that other rows say, or that needs none.
pub(super) const SAID: u32 = u32::MAX - 1;

/// Tracks, and what is known of the moment.
pub(super) struct Stage<'t> {
    pub(super) trace: &'t Trace,
    pub(super) dialect: Dialect,
    pub(super) tracks: Tracks,
    pub(super) pids: Pids,
    /// Tracks of streams without their contexts, which arrows do not know.
    streams: FxHashMap<(ProcessId, DeviceId, StreamId), u32>,
    externals: FxHashMap<ExternalKey, Vec<External>>,
    externals_time: u64,
    live: FxHashMap<(u64, MemoryKind), i64>,
    /// Place and end of kernels that start at the moment: a collective may say more of one of them.
    kernels: Vec<(ProcessId, DeviceId, StreamId, u64)>,
    kernels_time: u64,
}

type ExternalKey = (ProcessId, DeviceId, u64, CorrelationId);

impl<'t> Stage<'t> {
    /// The stage of a whole trace, or of `only` one of its processes.
    pub(super) fn new(trace: &'t Trace, dialect: Dialect, only: Option<ProcessId>) -> Self {
        let mut tracks = Tracks::default();
        Stage {
            pids: Pids::new(trace, dialect, only, &mut tracks),
            trace,
            dialect,
            tracks,
            streams: FxHashMap::default(),
            externals: FxHashMap::default(),
            externals_time: 0,
            live: FxHashMap::default(),
            kernels: Vec::new(),
            kernels_time: 0,
        }
    }

    /// The track of an item.
    pub(super) fn place(&mut self, piece: &mut Piece, at: usize) -> u32 {
        let item = piece.items[at];
        let row = item.row as usize;
        let (start, end) = (item.start.0, item.end_or_start());
        if self.externals_time != start {
            self.externals.clear();
            self.externals_time = start;
        }
        let external = self.take_external(&piece.rows, row);
        if let Some(external) = external {
            piece.set_external(at, external);
        }
        let base = match &piece.rows {
            Rows::Kernel(rows) => {
                let place = *rows.place.get(row);
                self.note_kernel(start, end, &place);
                self.stream(&place)
            }
            Rows::MemoryCopy(rows) => self.stream(&rows.place.get(row).clone()),
            Rows::MemorySet(rows) => self.stream(&rows.place.get(row).clone()),
            Rows::Synchronization(rows) => self.waits(&rows.place.get(row).clone()),
            Rows::GraphLaunch(rows) => self.device_track(Role::Graphs, &rows.place.get(row).clone()),
            Rows::Collective(rows) => {
                let place = *rows.place.get(row);
                if self.dialect == Dialect::Kineto && self.is_kernel(start, end, &place) {
                    // The kernel's own arguments say it.
                    return SAID;
                }
                self.device_track(Role::Collectives, &place)
            }
            Rows::ApiCall(rows) => {
                let caller = *rows.caller.get(row);
                self.thread(caller.process, caller.thread)
            }
            Rows::HostCall(rows) => {
                let (caller, shape) = (*rows.caller.get(row), rows.shape.get(row));
                let (kind, exit) = (shape.kind, shape.exit);
                let base = self.thread(caller.process, caller.thread);
                return match (kind, exit) {
                    (HostCallKind::SAMPLE, _) => self.tracks.moment(base, start),
                    (_, CallExit::OPEN) => self.tracks.stretch(base, start, u64::MAX),
                    _ => self.tracks.stretch(base, start, end),
                };
            }
            Rows::Marker(rows) => {
                let (caller, shape) = (*rows.caller.get(row), *rows.shape.get(row));
                return self.marker(&caller, &shape, start, end);
            }
            Rows::Allocation(rows) => {
                let (place, shape) = (*rows.place.get(row), *rows.shape.get(row));
                let bytes = i64::try_from(rows.bytes[row].0).unwrap_or(i64::MAX);
                return self.allocation(piece, &place, &shape, bytes, start);
            }
            Rows::Counter(rows) => {
                let is_level =
                    rows.track.get(row).kind != CounterKind::DELTA || self.dialect == Dialect::Chrome;
                return if is_level && rows.value[row].is_finite() {
                    SAID
                } else {
                    LEFT_OUT
                };
            }
            Rows::Flow(rows) => {
                let shape = *rows.shape.get(row);
                if shape.kind == FlowKind::EXTERNAL {
                    let external = External {
                        id: rows.flow[row],
                        rest: shape.name,
                    };
                    self.externals
                        .entry(external_key(&shape, rows.correlation[row]))
                        .or_default()
                        .push(external);
                    return SAID;
                }
                if shape.kind == FlowKind::LAUNCH && rows.correlation[row].is_some() {
                    // The correlation says it, with all that was launched.
                    return SAID;
                }
                let base = self.arrow_end(&shape);
                return self.tracks.moment(base, start);
            }
        };
        self.tracks.stretch(base, start, end)
    }

    /// The number of the arrow from a launch to what it launched. Correlations are unique within a process only.
    pub(super) fn launch_id(&self, process: ProcessId, correlation: CorrelationId) -> u64 {
        let processes = &self.trace.processes;
        let at = processes.iter().position(|known| known.id == process);
        correlation
            .0
            .wrapping_mul(processes.len().max(1) as u64)
            .wrapping_add(at.unwrap_or(0) as u64)
    }

    fn take_external(&mut self, rows: &Rows, row: usize) -> Option<External> {
        if self.externals.is_empty() {
            return None;
        }
        let of_place =
            |place: &Place, correlation| (place.process, place.device, place.stream.0, correlation);
        let key = match rows {
            Rows::Kernel(rows) => of_place(rows.place.get(row), rows.correlation[row]),
            Rows::MemoryCopy(rows) => of_place(rows.place.get(row), rows.correlation[row]),
            Rows::MemorySet(rows) => of_place(rows.place.get(row), rows.correlation[row]),
            Rows::Synchronization(rows) => of_place(rows.place.get(row), rows.correlation[row]),
            Rows::ApiCall(rows) => {
                let caller = rows.caller.get(row);
                (
                    caller.process,
                    DeviceId::NONE,
                    caller.thread.0,
                    rows.correlation[row],
                )
            }
            _ => return None,
        };
        let waiting = self.externals.get_mut(&key)?;
        (!waiting.is_empty()).then(|| waiting.remove(0))
    }

    fn note_kernel(&mut self, start: u64, end: u64, place: &Place) {
        if self.dialect == Dialect::Chrome {
            return;
        }
        if self.kernels_time != start {
            self.kernels.clear();
            self.kernels_time = start;
        }
        self.kernels
            .push((place.process, place.device, place.stream, end));
    }

    fn is_kernel(&self, start: u64, end: u64, place: &Place) -> bool {
        self.kernels_time == start
            && self
                .kernels
                .contains(&(place.process, place.device, place.stream, end))
    }

    fn marker(&mut self, caller: &Caller, shape: &MarkerShape, start: u64, end: u64) -> u32 {
        let (process, thread) = (caller.process, caller.thread);
        if self.dialect == Dialect::Kineto && is_span_of_profiler(self.trace, caller, shape) {
            return SAID;
        }
        let base = match (self.dialect, shape.kind) {
            (Dialect::Kineto, MarkerKind::FREE_RANGE) if !thread.is_some() => {
                match device_and_stream(self.trace, shape.domain) {
                    Some((device, Some(stream))) => self.stream_of(process, device, stream),
                    Some((device, None)) => {
                        let place = Place {
                            process,
                            device,
                            ..Place::default()
                        };
                        self.device_track(Role::Waits, &place)
                    }
                    None => self.free(process),
                }
            }
            (_, MarkerKind::FREE_RANGE | MarkerKind::OPEN_FREE_RANGE) => self.free(process),
            (Dialect::Kineto, _) => self.thread(process, thread),
            (Dialect::Chrome, _) => self.markers(process, thread, shape.domain),
        };
        match shape.kind {
            MarkerKind::INSTANT => self.tracks.moment(base, start),
            MarkerKind::OPEN_NESTED_RANGE | MarkerKind::OPEN_FREE_RANGE => {
                self.tracks.stretch(base, start, u64::MAX)
            }
            _ => self.tracks.stretch(base, start, end),
        }
    }

    /// Memory counts from what was in use when the trace began: how much that was is not known.
    fn allocation(
        &mut self,
        piece: &mut Piece,
        place: &Place,
        shape: &AllocationShape,
        bytes: i64,
        time: u64,
    ) -> u32 {
        let pid = self.pids.device_or_process(place.device, place.process);
        let live = self.live.entry((pid, shape.memory)).or_default();
        *live = live.saturating_add(match shape.operation {
            MemoryOperation::ALLOCATE | MemoryOperation::CREATE => bytes,
            MemoryOperation::FREE | MemoryOperation::RELEASE => -bytes,
            _ => 0,
        });
        piece.levels.push(*live);
        let base = match self.dialect {
            Dialect::Kineto => self.thread(place.process, shape.thread),
            Dialect::Chrome => self.memory(place),
        };
        self.tracks.moment(base, time)
    }

    fn arrow_end(&mut self, shape: &FlowShape) -> u32 {
        if shape.device.is_some() {
            self.stream_of(shape.process, shape.device, shape.stream)
        } else {
            self.thread(shape.process, shape.thread)
        }
    }
}

/// Whether a wait is for one stream, not for a context or device.
pub(super) fn has_stream(place: &Place) -> bool {
    place.stream.is_some() && place.stream.0 != u64::from(u32::MAX)
}

fn external_key(shape: &FlowShape, correlation: CorrelationId) -> ExternalKey {
    let number = if shape.device.is_some() {
        shape.stream.0
    } else {
        shape.thread.0
    };
    (shape.process, shape.device, number, correlation)
}

/// Whether a range or instant is the profiler's own. Kineto writes these on processes that are texts, the empty one included.
pub(super) fn is_span_of_profiler(trace: &Trace, caller: &Caller, shape: &MarkerShape) -> bool {
    !caller.thread.is_some()
        && match trace.string(shape.domain) {
            "Spans" | "Traces" => true,
            "" => shape.kind == MarkerKind::INSTANT && !shape.category_name.is_some(),
            _ => false,
        }
}

/// The place that a domain `device 0, stream 7` or `device 0` names: of ranges that Kineto drew on a device.
fn device_and_stream(trace: &Trace, domain: StringId) -> Option<(DeviceId, Option<StreamId>)> {
    let place = trace.string(domain).strip_prefix("device ")?;
    let (ordinal, stream) = match place.split_once(", stream ") {
        Some((ordinal, stream)) => (ordinal, Some(stream.parse().ok()?)), // another program's domain may begin so, too
        None => (place, None),
    };
    let ordinal: u32 = ordinal.parse().ok()?;
    let device = trace.devices.iter().find(|device| device.ordinal == ordinal)?;
    Some((device.id, stream.map(StreamId)))
}
