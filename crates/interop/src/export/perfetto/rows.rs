//! Blocks of rows as pieces of items: what every table's part needs.

use rayon::prelude::*;
use tracesmith_format::tables::*;
use tracesmith_format::{
    Block, ContextId, Decoder, DeviceId, ProcessId, Projection, StreamId, Table, Timestamp,
    for_each_event_table,
};
use tracesmith_trace::{AnySource, Trace};

use super::GpuForm;
use super::event_flows::EventFlows;
use super::item::{OPEN, Piece};
use crate::export::ExportOptions;

/// The largest time that Perfetto can hold: it counts with signed numbers.
const LATEST: u64 = i64::MAX as u64;

/// Turns blocks into pieces.
pub(super) struct Rows<'t> {
    pub(super) trace: &'t Trace,
    pub(super) options: &'t ExportOptions,
    pub(super) gpu_form: GpuForm,
    pub(super) event_flows: EventFlows,
}

/// A stretch on the trace's timeline.
#[derive(Clone, Copy)]
pub(super) struct Stretch {
    pub(super) start: u64,
    /// [`OPEN`] when it is not known.
    pub(super) end: u64,
}

impl Stretch {
    /// How long it is, where that is known.
    pub(super) fn duration(&self) -> Option<u64> {
        (self.end != OPEN).then(|| self.end - self.start)
    }
}

impl Rows<'_> {
    /// The items of blocks, which are given with their first times.
    pub(super) fn pieces(&self, blocks: &[(u64, &Block)]) -> Vec<Piece> {
        let read = blocks.par_iter().map_init(
            || self.trace.decoder(),
            |decoder, (_, block)| self.piece(decoder, block),
        );
        read.flatten_iter().collect()
    }

    /// The items of a block of events; `None` for a block that cannot be read, which the trace's health tells.
    fn piece(&self, decoder: &mut Decoder<'_, AnySource>, block: &Block) -> Option<Piece> {
        self.options.note(block);
        macro_rules! read {
            ($($table:ident: $row:ident,)*) => {
                match block.header.kind {
                    $(<$row as Table>::KIND => match decoder.read::<$row>(block, &Projection::all()) {
                        Ok(rows) => Some(self.$table(block, rows)),
                        Err(error) => {
                            self.trace.note_damage(block, error);
                            None
                        }
                    },)*
                    _ => None,
                }
            };
        }
        for_each_event_table!(read)
    }

    /// A time on the trace's timeline.
    #[inline]
    pub(super) fn time(&self, block: &Block, time: Timestamp) -> Timestamp {
        if block.header.clock == self.trace.clock_map.reference() {
            return time;
        }
        self.trace.clock_map.convert(block.header.clock, time).time
    }

    /// The stretch of something that is wanted; counts what has no time.
    #[inline]
    pub(super) fn stretch(
        &self,
        block: &Block,
        start: Timestamp,
        end: Timestamp,
        piece: &mut Piece,
    ) -> Option<Stretch> {
        let (start, end) = (self.time(block, start), self.time(block, end));
        if start == Timestamp::NONE || start.0 > LATEST {
            piece.without_time += 1;
            return None;
        }
        // An end before its start is as good as none.
        let is_known = end >= start && end.0 <= LATEST;
        self.options.wants_time(start, end).then_some(Stretch {
            start: start.0,
            end: if is_known { end.0 } else { OPEN },
        })
    }

    /// The same for device work, of which only some streams may be wanted.
    #[inline]
    pub(super) fn work_time(
        &self,
        block: &Block,
        start: Timestamp,
        end: Timestamp,
        place: &Place,
        piece: &mut Piece,
    ) -> Option<Stretch> {
        let streams = self.options.streams.as_ref();
        if streams.is_some_and(|streams| !streams.contains(&place.stream)) {
            return None;
        }
        self.stretch(block, start, end, piece)
    }

    /// The device of a process's context; none when it is not listed.
    pub(super) fn device_of(&self, process: ProcessId, context: ContextId) -> DeviceId {
        let contexts = &self.trace.contexts;
        let found = contexts
            .iter()
            .find(|known| (known.process, known.context) == (process, context));
        found.map(|context| context.device).unwrap_or_default()
    }

    /// The context of a process's stream; none when it is not listed.
    pub(super) fn context_of(&self, process: ProcessId, stream: StreamId) -> ContextId {
        let streams = &self.trace.streams;
        let found = streams
            .iter()
            .find(|known| (known.process, known.stream) == (process, stream));
        found.map(|stream| stream.context).unwrap_or_default()
    }

    /// The moment of something that is wanted.
    pub(super) fn moment(&self, block: &Block, time: Timestamp, piece: &mut Piece) -> Option<Stretch> {
        self.stretch(block, time, time, piece)
    }
}
