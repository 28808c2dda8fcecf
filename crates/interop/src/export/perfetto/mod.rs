//! Perfetto's protobuf traces: the exporter for ui.perfetto.dev.
//!
//! Blocks are read in the order of time, a few on every core at once, and become [items](item). What starts before the
//! first block that is still unread is complete: it is sorted by track and start, gets its [`lane`] and is written.
//! So the file is made in one walk, and memory follows what overlaps in time, not the length of the trace. Items become
//! packets while the next blocks are read: one track may hold half of everything, and the other cores need not wait for it.
//!
//! Device work can be written in two forms. *Tracks* are slices on tracks of our own: every version of Perfetto shows
//! them, with arrows from the calls. *Render stages* are what newer versions know GPU work by. Written both ways,
//! everything would be seen twice, so tracks are the default and render stages are asked for. Stacks of events and the
//! ties of calls to render stages come with the latter: versions before v53 count such fields as errors.

mod argument;
mod clocks;
mod destination;
mod device_rows;
mod event_flows;
mod host_rows;
mod item;
mod lane;
mod layout;
mod live_memory;
mod opening;
mod pack;
mod preamble;
mod queue;
mod rows;
mod stacks;
mod stage;
mod tracks;
mod work;

use rayon::prelude::*;
use rustc_hash::FxHashMap;
use tracesmith_format::Block;
use tracesmith_trace::Trace;

use crate::error::Error;
use crate::export::{ExportOptions, ExportReport, Exporter, Out, Way};
pub use destination::OpenFile;
use destination::{Destination, Files, Output};
use event_flows::EventFlows;
use item::{Form, Piece, TrackKey};
use lane::{Lane, Reader, Scene};
use queue::{Entry, TrackState};
use rows::Rows;
use tracks::Tracks;

pub(super) const EXPORTER: Exporter = Exporter {
    name: "perfetto",
    aliases: &["proto", "pftrace"],
    title: "Perfetto's protobuf traces, for ui.perfetto.dev",
    extension: "pftrace",
    way: Way::Stream(write),
};

/// What is wanted of a Perfetto export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerfettoOptions {
    /// How device work is written.
    pub gpu_form: GpuForm,
    /// Whether packets are compressed.
    pub packing: Packing,
}

/// How device work is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GpuForm {
    /// As slices on tracks of our own.
    #[default]
    Tracks,
    /// As GPU render stages.
    RenderStages,
    /// As both.
    Both,
}

/// Whether packets are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Packing {
    /// With deflate, which Perfetto unpacks by itself.
    #[default]
    Deflate,
    /// Not at all.
    None,
}

fn write(trace: &Trace, options: &ExportOptions, out: &mut Out<'_>) -> Result<ExportReport, Error> {
    let mut destination = Destination::One(out);
    Export::new(trace, options, None).run(&mut destination)
}

/// Writes a trace as several files of about `limit` bytes, one after the other in time and each complete in itself.
/// What crosses the border of two is in the one where it starts. Gives back the files' sizes too.
pub fn write_split<'a>(
    trace: &Trace,
    options: &ExportOptions,
    limit: u64,
    open: &'a mut OpenFile<'a>,
) -> Result<(ExportReport, Vec<u64>), Error> {
    let mut destination = Destination::Files(Files::new(open));
    let report = Export::new(trace, options, Some(limit)).run(&mut destination)?;
    Ok((report, destination.sizes()))
}

/// Events of one step are written together: enough to keep all cores busy.
const STEP_ITEMS: usize = 4 << 20;
/// About the bytes that an event takes in the file, to tell how many fit.
const ITEM_BYTES: u64 = 24;

struct Export<'t> {
    options: &'t ExportOptions,
    /// The size that a file should not pass by much.
    limit: Option<u64>,
    scene: Scene<'t>,
    tracks: Tracks<'t>,
    known: FxHashMap<TrackKey, usize>,
    states: Vec<TrackState>,
    file: FileState,
    /// What the current file has, with what still waits in `ready`.
    file_bytes: u64,
    ready: Vec<Output>,
    report: ExportReport,
}

/// Where the export stands with the current file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileState {
    /// Nothing is written yet, to no file.
    None,
    /// Its beginning is written.
    Open,
    /// It is complete.
    Ended,
}

impl<'t> Export<'t> {
    fn new(trace: &'t Trace, options: &'t ExportOptions, limit: Option<u64>) -> Self {
        Export {
            options,
            limit,
            scene: Scene {
                trace,
                clock: clocks::clock_of(trace),
                base: 0,
                reader: match options.perfetto.gpu_form {
                    GpuForm::Tracks => Reader::Any,
                    GpuForm::RenderStages | GpuForm::Both => Reader::Newer,
                },
            },
            tracks: Tracks::new(trace),
            known: FxHashMap::default(),
            states: Vec::new(),
            file: FileState::None,
            file_bytes: 0,
            ready: Vec::new(),
            report: ExportReport::default(),
        }
    }

    fn run(mut self, destination: &mut Destination<'_, '_>) -> Result<ExportReport, Error> {
        let trace = self.scene.trace;
        let rows = Rows {
            trace,
            options: self.options,
            gpu_form: self.options.perfetto.gpu_form,
            event_flows: EventFlows::new(trace),
        };
        let blocks = self.blocks();
        let mut batches = blocks.chunks(rayon::current_num_threads().max(1) * 2);
        let mut read = rows.pieces(batches.next().unwrap_or_default());
        let mut carried = Piece::default();
        loop {
            let next = batches.next().unwrap_or_default();
            let complete_until = next.first().map_or(u64::MAX, |(first, _)| *first);
            let pieces: Vec<Piece> = std::iter::once(carried).chain(read).collect();
            (carried, read) = rayon::join(
                || {
                    let rest = self.enqueue(&pieces, complete_until);
                    self.write_queues(&pieces);
                    rest
                },
                || rows.pieces(next),
            );
            destination.take(&mut self.ready)?;
            if next.is_empty() {
                break;
            }
        }
        self.end_file();
        destination.take(&mut self.ready)?;
        Ok(self.report)
    }

    /// The blocks that may hold something wanted, by their first time on the timeline.
    fn blocks(&self) -> Vec<(u64, &'t Block)> {
        let trace = self.scene.trace;
        let mut blocks: Vec<(u64, &Block)> = trace
            .blocks()
            .iter()
            .filter(|block| block.header.kind.is_events())
            .map(|block| (trace.block_span(block), block))
            .filter(|((first, last), _)| self.options.wants_time(*first, *last) || first.0 == 0)
            .map(|((first, _), block)| (first.0, block))
            .collect();
        blocks.sort_by_key(|(first, _)| *first);
        blocks
    }

    /// Puts everything that starts before a time into the queues of its tracks; gives back the rest.
    fn enqueue(&mut self, pieces: &[Piece], complete_until: u64) -> Piece {
        let mut rest = Piece::default();
        for (piece, number) in pieces.iter().zip(0..) {
            self.report.without_time += piece.without_time;
            self.report.left_out += piece.left_out;
            let tracks: Vec<usize> = piece.tracks.iter().map(|key| self.track(key)).collect();
            let rest_tracks: Vec<u32> = piece.tracks.iter().map(|key| rest.track(*key)).collect();
            for (item, index) in piece.items.iter().zip(0..) {
                if item.start < complete_until || complete_until == u64::MAX {
                    self.report.events += u64::from(self.is_event(item.form));
                    self.states[tracks[item.track as usize]].queue.push(Entry {
                        start: item.start,
                        end: item.end,
                        item: index,
                        piece: number,
                        form: item.form,
                    });
                } else {
                    rest.push_copy(item, piece.body(item), rest_tracks[item.track as usize]);
                }
            }
        }
        rest
    }

    /// Whether an item stands for a row, and not for a second view of one.
    fn is_event(&self, form: Form) -> bool {
        match form {
            Form::Change => false,
            Form::Stage | Form::KernelStage => self.options.perfetto.gpu_form == GpuForm::RenderStages,
            _ => true,
        }
    }

    fn track(&mut self, key: &TrackKey) -> usize {
        let states = &mut self.states;
        *self.known.entry(*key).or_insert_with(|| {
            states.push(TrackState::new(*key));
            states.len() - 1
        })
    }

    /// Writes what the queues hold, in steps that end where a file may end.
    fn write_queues(&mut self, pieces: &[Piece]) {
        // What lies around something comes before it.
        let order = |entry: &Entry| (entry.start, std::cmp::Reverse(entry.end));
        self.states
            .par_iter_mut()
            .for_each(|state| state.queue.sort_by_key(order));
        for until in self.steps() {
            self.write_step(pieces, until);
            if self.limit.is_some_and(|limit| self.file_bytes >= limit) {
                self.end_file();
            }
        }
        for state in &mut self.states {
            state.queue.clear();
            state.written = 0;
        }
    }

    /// The times where steps end.
    fn steps(&self) -> Vec<u64> {
        let items: usize = self.states.iter().map(|state| state.queue.len()).sum();
        let step = self.limit.map_or(STEP_ITEMS, |limit| {
            // A step is a part of a file, so that files end near their limit.
            usize::try_from(limit / ITEM_BYTES / 8).map_or(STEP_ITEMS, |items| items.clamp(1, STEP_ITEMS))
        });
        if items == 0 {
            return Vec::new();
        }
        if items <= step {
            return vec![u64::MAX];
        }
        let mut starts: Vec<u64> = self
            .states
            .iter()
            .flat_map(|state| &state.queue)
            .map(|entry| entry.start)
            .collect();
        starts.sort_unstable();
        let mut ends: Vec<u64> = starts.iter().copied().skip(step).step_by(step).collect();
        ends.dedup();
        ends.push(u64::MAX);
        ends
    }

    /// Writes what starts before a time.
    fn write_step(&mut self, pieces: &[Piece], until: u64) {
        let mut parts = Vec::new();
        if self.file != FileState::Open {
            let queued = self
                .states
                .iter()
                .filter_map(|state| state.queue.get(state.written));
            let Some(base) = queued.map(|entry| entry.start).min() else {
                return;
            };
            self.scene.base = base;
            parts.push(preamble::preamble(self.scene.trace, base));
            self.file = FileState::Open;
        }
        let base = self.scene.base;
        self.states
            .par_iter_mut()
            .for_each(|state| state.place(base, until));
        for state in &mut self.states {
            while state.lanes.len() < state.layout.lanes() {
                let uuid = self.tracks.add_lane(&state.key, state.lanes.len());
                let live = std::mem::take(&mut state.live);
                state
                    .lanes
                    .push(Lane::new(&self.scene, &self.tracks, &state.key, uuid, live));
            }
        }
        parts.push(std::mem::take(&mut self.tracks.packets));
        let scene = &self.scene;
        let lanes = self
            .states
            .iter_mut()
            .flat_map(|state| state.lanes.iter_mut().zip(&mut state.step));
        let mut lanes: Vec<_> = lanes.filter(|(_, items)| !items.is_empty()).collect();
        lanes.par_iter_mut().for_each(|(lane, items)| {
            for (piece, item) in items.drain(..) {
                let piece = &pieces[piece as usize];
                let item = &piece.items[item as usize];
                lane.add(scene, item, piece.body(item));
            }
        });
        for (lane, _) in lanes {
            parts.extend(lane.take_parts());
        }
        for state in &mut self.states {
            let late = std::mem::take(&mut state.late);
            self.report.left_out += late;
            self.report.events -= late.min(self.report.events);
        }
        self.put(parts);
    }

    /// Ends everything that is open; the next step begins a new file.
    fn end_file(&mut self) {
        let mut parts = Vec::new();
        let mut last = self.scene.base;
        for state in &mut self.states {
            for lane in &mut state.lanes {
                lane.finish();
                last = last.max(lane.last());
                parts.extend(lane.take_parts());
            }
            if let Some(lane) = state.lanes.first_mut() {
                state.live = lane.take_live();
            }
            state.lanes.clear();
            state.step.clear();
            state.layout.clear();
        }
        // A trace without events is still a trace.
        if self.file == FileState::None {
            parts.push(preamble::preamble(self.scene.trace, self.scene.base));
        }
        if self.file != FileState::Ended {
            let readings = clocks::readings_between(self.scene.trace, self.scene.base, last);
            parts.extend(Some(readings).filter(|packets| !packets.is_empty()));
        }
        self.file = FileState::Ended;
        self.tracks.clear();
        self.put(parts);
        self.file_bytes = 0;
        self.ready.push(Output::EndOfFile);
    }

    /// Packs parts, each of which is a run of whole packets, for the destination.
    fn put(&mut self, parts: Vec<Vec<u8>>) {
        for bytes in pack::pack(parts, self.options.perfetto.packing) {
            self.file_bytes += bytes.len() as u64;
            self.ready.push(Output::Bytes(bytes));
        }
    }
}
