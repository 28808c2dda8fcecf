//! The dependencies of device work as a graph for Graphviz: what launched it, what stands before it on its stream, which
//! waits hold it back, and which calls waited for it.
//!
//! A box is a piece of device work, a record of an event, a wait, or a call that asked for one of them; boxes of a thread or
//! stream stand together. A graph of more than a few thousand boxes can be neither laid out nor read, so larger ones
//! are refused.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use rustc_hash::FxHashMap;
use tracesmith_format::tables::{SyncKind, Synchronization};
use tracesmith_format::{CorrelationId, ProcessId};
use tracesmith_trace::reconstruct::{Activity, Dependencies, EdgeWhy, OpId, Window};
use tracesmith_trace::{Event, EventKind, Found, Query, Trace, units};

use crate::error::Error;
use crate::export::gathered::{Track, process_name};
use crate::export::row_value::RowValue;
use crate::export::{ExportOptions, ExportReport, Exporter, Out, Way};

pub(super) const EXPORTER: Exporter = Exporter {
    name: "dot",
    aliases: &["graphviz"],
    title: "dependency graph for Graphviz; use a short time range",
    extension: "dot",
    way: Way::Stream(write),
};

/// Boxes that can still be laid out in seconds and looked at.
const MAX_NODES: usize = 2_000;
/// Characters of a name that a box shows; the rest is in its tooltip.
const LABEL_CHARS: usize = 48;

/// One box.
struct Node {
    event: Event,
    /// When it was asked for: what orders a stream.
    asked: u64,
    /// For a record of an event or a wait for one: which, and which of its records.
    marked: Option<(SyncKind, u64, u64)>,
}

/// Why one box depends on another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Why {
    Launch,
    Order,
    Wait,
    DefaultStream,
    PeerCopy,
    Graph,
    HostWait,
}

fn write(trace: &Trace, options: &ExportOptions, out: &mut Out<'_>) -> Result<ExportReport, Error> {
    let (nodes, report) = nodes(trace, options)?;
    let mut edges = edges(&nodes);
    edges.extend(rebuilt_edges(trace, options, &nodes)?);
    edges.sort_unstable();
    edges.dedup_by_key(|edge| (edge.0, edge.1));
    out.put(b"digraph trace {\n  rankdir=LR;\n  node [shape=box, fontname=\"sans-serif\", fontsize=10];\n")?;
    let mut clusters: BTreeMap<Track, Vec<usize>> = BTreeMap::new();
    for (at, node) in nodes.iter().enumerate() {
        clusters.entry(Track::of(&node.event)).or_default().push(at);
    }
    for (number, (track, members)) in clusters.iter().enumerate() {
        let label = format!("{}, {}", process_name(trace, track.process()), track.name(trace));
        let label = escaped(&label);
        out.put(format!("  subgraph cluster_{number} {{\n    label=\"{label}\";\n").as_bytes())?;
        for at in members {
            out.put(node_line(trace, *at, &nodes[*at]).as_bytes())?;
        }
        out.put(b"  }\n")?;
    }
    for (from, to, why) in edges {
        let style = match why {
            Why::Launch => " [style=dashed]",
            Why::Order => "",
            Why::Wait => " [color=red]",
            Why::DefaultStream => " [color=blue]",
            Why::PeerCopy => " [color=purple]",
            Why::Graph => " [color=orange]",
            Why::HostWait => " [color=darkgreen]",
        };
        out.put(format!("  n{from} -> n{to}{style};\n").as_bytes())?;
    }
    out.put(b"}\n")?;
    Ok(report)
}

fn is_drawn(kind: EventKind) -> bool {
    matches!(
        kind,
        EventKind::Kernel | EventKind::Copy | EventKind::Set | EventKind::Sync | EventKind::GraphLaunch
    )
}

/// The boxes: device work in the wanted stretch, and the calls that asked for it, whenever that was.
fn nodes(trace: &Trace, options: &ExportOptions) -> Result<(Vec<Node>, ExportReport), Error> {
    let sync = SyncColumns::new();
    let mut nodes = Vec::new();
    let mut count = 0;
    let mut report = ExportReport::default();
    trace.for_each_event_by_time(
        options.query().with_progress(options.progress.as_ref()),
        |found| {
            let event = &found.event;
            if !is_drawn(event.kind) {
                report.left_out += 1;
            } else if !event.start.is_some() {
                report.without_time += 1;
            } else if options.wants_stream(event.stream) {
                count += 1;
                if count <= MAX_NODES {
                    nodes.push(Node {
                        event: *event,
                        asked: event.start.0,
                        marked: sync.marked(found),
                    });
                }
            }
            ControlFlow::Continue(())
        },
    );
    let mut asked: FxHashMap<(ProcessId, CorrelationId), Vec<usize>> = FxHashMap::default();
    for (at, node) in nodes
        .iter()
        .enumerate()
        .filter(|(_, node)| node.event.correlation.is_some())
    {
        asked
            .entry((node.event.process, node.event.correlation))
            .or_default()
            .push(at);
    }
    if count <= MAX_NODES && !asked.is_empty() {
        let calls = Query {
            kinds: Some(vec![EventKind::ApiCall]),
            ..Query::default()
        };
        trace.for_each_event_by_time(&calls, |found| {
            let event = &found.event;
            if let Some(works) = asked.get(&(event.process, event.correlation)) {
                count += 1;
                report.left_out -= u64::from(options.wants_time(event.start, event.end));
                for work in works {
                    nodes[*work].asked = event.start.0;
                }
                nodes.push(Node {
                    event: *event,
                    asked: event.start.0,
                    marked: None,
                });
            }
            if count > MAX_NODES {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
    }
    if nodes.is_empty() || count > MAX_NODES {
        let problem = match count {
            0 => "no device work is in this stretch of time".to_owned(),
            _ => format!(
                "it would have {} boxes and {} is the most; choose a shorter stretch with --from and --to, \
                 or some streams with --stream",
                units::count(count as u64),
                units::count(MAX_NODES as u64)
            ),
        };
        return Err(Error::Export {
            format: EXPORTER.name,
            problem,
        });
    }
    report.events = nodes.len() as u64;
    Ok((nodes, report))
}

/// Where a synchronisation says what it is about.
struct SyncColumns {
    kind: RowValue,
    event: RowValue,
    record: RowValue,
}

impl SyncColumns {
    fn new() -> Self {
        SyncColumns {
            kind: RowValue::of::<Synchronization>("shape.kind"),
            event: RowValue::of::<Synchronization>("event"),
            record: RowValue::of::<Synchronization>("event_record"),
        }
    }

    fn marked(&self, found: &Found<'_>) -> Option<(SyncKind, u64, u64)> {
        if found.event.kind != EventKind::Sync {
            return None;
        }
        let kind = u8::try_from(self.kind.number(found)?).ok()?; // a code of ours is a byte
        Some((
            SyncKind(kind),
            self.event.number(found)?,
            self.record.number(found)?,
        ))
    }
}

/// All dependencies, in the order of the boxes.
fn edges(nodes: &[Node]) -> Vec<(usize, usize, Why)> {
    let mut edges = Vec::new();
    let mut calls: BTreeMap<(ProcessId, CorrelationId), Vec<usize>> = BTreeMap::new();
    let mut streams: BTreeMap<Track, Vec<usize>> = BTreeMap::new();
    for (at, node) in nodes.iter().enumerate() {
        if node.event.kind == EventKind::ApiCall {
            calls
                .entry((node.event.process, node.event.correlation))
                .or_default()
                .push(at);
        } else if !is_host_wait(node) {
            streams.entry(Track::of(&node.event)).or_default().push(at);
        }
    }
    for (at, node) in nodes.iter().enumerate() {
        if node.event.kind == EventKind::ApiCall {
            continue;
        }
        let launches = calls.get(&(node.event.process, node.event.correlation));
        edges.extend(
            launches
                .into_iter()
                .flatten()
                .map(|call| (*call, at, Why::Launch)),
        );
        edges.extend(waited_for(nodes, node).map(|record| (record, at, Why::Wait)));
    }
    for members in streams.values_mut() {
        members.sort_by_key(|at| (nodes[*at].asked, nodes[*at].event.start, *at));
        edges.extend(members.windows(2).map(|pair| (pair[0], pair[1], Why::Order)));
    }
    edges.sort_unstable();
    edges
}

/// Dependencies that no row states by itself: those that the default stream imposes, calls that waited for work, and waits
/// for events whose record is not in the trace as a row.
fn rebuilt_edges(
    trace: &Trace,
    options: &ExportOptions,
    nodes: &[Node],
) -> Result<Vec<(usize, usize, Why)>, Error> {
    let window = Window {
        from: options.range.from.map(|time| time.0),
        to: options.range.to.map(|time| time.0),
    };
    let activity = Activity::within(trace, window)?;
    let dependencies = Dependencies::of(&activity);
    let has_records = activity
        .syncs
        .iter()
        .any(|sync| sync.kind == SyncKind::EVENT_RECORD);
    let mut works: FxHashMap<_, usize> = FxHashMap::default();
    let mut calls: FxHashMap<_, usize> = FxHashMap::default();
    for (at, node) in nodes.iter().enumerate() {
        let event = &node.event;
        if event.kind == EventKind::ApiCall {
            calls.insert((event.process, event.thread, event.start.0), at);
        } else if node.marked.is_none() {
            works.insert((event.process, event.device, event.stream, event.start.0), at);
        }
    }
    let work_of = |op: OpId| {
        let lane = activity.lane(activity.ops.lane[op.index()]);
        let start = activity.ops.start[op.index()];
        works
            .get(&(lane.process, lane.device, Some(lane.stream), start))
            .copied()
    };
    let mut found = Vec::new();
    for edge in &dependencies.edges {
        let why = match edge.why {
            EdgeWhy::DefaultStream => Why::DefaultStream,
            EdgeWhy::PeerCopy => Why::PeerCopy,
            EdgeWhy::Graph => Why::Graph,
            EdgeWhy::Event if has_records => continue,
            EdgeWhy::Event | EdgeWhy::Assumed => Why::Wait,
        };
        if let (Some(from), Some(to)) = (work_of(edge.from), work_of(edge.to)) {
            found.push((from, to, why));
        }
    }
    for wait in &dependencies.host_waits {
        let thread = &activity.calls.threads[activity.calls.thread_of(wait.call)];
        let key = (
            thread.process,
            thread.thread,
            activity.calls.start[wait.call.index()],
        );
        if let (Some(from), Some(to)) = (work_of(wait.op), calls.get(&key)) {
            found.push((from, *to, Why::HostWait));
        }
    }
    Ok(found)
}

/// Whether the host waits, and no stream is held back.
fn is_host_wait(node: &Node) -> bool {
    node.marked
        .is_some_and(|(kind, ..)| kind != SyncKind::EVENT_RECORD && kind != SyncKind::STREAM_WAIT_EVENT)
}

/// The record that a wait for an event waits for: the one it names, else the latest before it.
fn waited_for(nodes: &[Node], wait: &Node) -> Option<usize> {
    let (kind, event, record) = wait.marked?;
    if kind != SyncKind::EVENT_WAIT && kind != SyncKind::STREAM_WAIT_EVENT {
        return None;
    }
    let records = nodes.iter().enumerate().filter(|(_, node)| {
        node.event.process == wait.event.process
            && node.marked.is_some_and(|(kind, of, number)| {
                kind == SyncKind::EVENT_RECORD
                    && of == event
                    && (record == 0 || number == 0 || number == record)
            })
            && node.asked <= wait.asked
    });
    records
        .max_by_key(|(at, node)| (node.asked, *at))
        .map(|(at, _)| at)
}

fn node_line(trace: &Trace, at: usize, node: &Node) -> String {
    let name = trace.event_name(&node.event);
    let mut label: String = name.chars().take(LABEL_CHARS).collect();
    if label.len() < name.len() {
        label.push('…');
    }
    let color = match node.event.kind {
        EventKind::Kernel | EventKind::GraphLaunch => "palegreen",
        EventKind::Copy | EventKind::Set => "navajowhite",
        EventKind::Sync => "mistyrose",
        _ => "lightblue",
    };
    format!(
        "    n{at} [label=\"{}\\n{}\", tooltip=\"{}\", style=filled, fillcolor={color}];\n",
        escaped(&label),
        units::nanos(node.event.duration()),
        escaped(name)
    )
}

/// A text within quotes of the language: a backslash would begin an escape of its own.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace(['\n', '\r', '\0'], " ")
}
