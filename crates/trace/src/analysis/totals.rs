//! Totals: how many events, how long and how many bytes, by kind and by name.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use rustc_hash::FxHashMap;
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::model::event::{Event, EventKind, EventName};
use crate::model::trace::Trace;
use crate::query::QueryRun;

/// Totals of a trace, or of what a query finds in it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TotalsReport {
    /// By kind of event.
    #[serde(serialize_with = "list_of_kinds")]
    pub by_kind: BTreeMap<EventKind, Total>,
    /// By kind and name, the longest total first.
    pub by_name: Vec<NameTotal>,
}

/// Totals of some events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Total {
    /// How many.
    pub count: u64,
    /// Nanoseconds of all together; overlapping ones count each.
    pub nanos: u64,
    /// The shortest.
    pub min_nanos: u64,
    /// The longest.
    pub max_nanos: u64,
    /// Bytes of all together.
    pub bytes: u64,
}

/// Totals of the events of one kind and name.
#[derive(Clone, Debug, Serialize)]
pub struct NameTotal {
    /// Their kind.
    pub kind: EventKind,
    /// Their name.
    pub name: String,
    /// Their totals.
    #[serde(rename = "totals")]
    pub total: Total,
}

impl Default for Total {
    fn default() -> Self {
        Total {
            count: 0,
            nanos: 0,
            min_nanos: u64::MAX,
            max_nanos: 0,
            bytes: 0,
        }
    }
}

impl Total {
    fn add(&mut self, event: &Event) {
        let nanos = event.duration();
        self.count += 1;
        self.nanos = self.nanos.saturating_add(nanos);
        self.min_nanos = self.min_nanos.min(nanos);
        self.max_nanos = self.max_nanos.max(nanos);
        self.bytes = self.bytes.saturating_add(event.bytes.0);
    }

    /// Nanoseconds of one on average; 0 when there is none.
    pub fn mean_nanos(&self) -> u64 {
        self.nanos.checked_div(self.count).unwrap_or(0)
    }
}

impl Serialize for Total {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Total", 6)?;
        fields.serialize_field("count", &self.count)?;
        fields.serialize_field("total_ns", &self.nanos)?;
        fields.serialize_field("mean_ns", &self.mean_nanos())?;
        fields.serialize_field("min_ns", &self.min_nanos)?;
        fields.serialize_field("max_ns", &self.max_nanos)?;
        fields.serialize_field("bytes", &self.bytes)?;
        fields.end()
    }
}

fn list_of_kinds<S: Serializer>(
    by_kind: &BTreeMap<EventKind, Total>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct KindTotal<'a> {
        kind: EventKind,
        totals: &'a Total,
    }
    let rows = by_kind.iter();
    serializer.collect_seq(rows.map(|(kind, totals)| KindTotal { kind: *kind, totals }))
}

impl TotalsReport {
    /// Adds up what a query finds.
    pub fn new<'q>(trace: &Trace, query: impl Into<QueryRun<'q>>) -> Self {
        let mut by_kind: BTreeMap<EventKind, Total> = BTreeMap::new();
        let mut by_name: FxHashMap<(EventKind, EventName), Total> = FxHashMap::default();
        trace.for_each_event(query, |found| {
            by_kind.entry(found.event.kind).or_default().add(&found.event);
            by_name
                .entry((found.event.kind, found.event.name))
                .or_default()
                .add(&found.event);
            ControlFlow::Continue(())
        });
        let mut by_name: Vec<NameTotal> = by_name
            .into_iter()
            .map(|((kind, name), total)| {
                let name = match name {
                    EventName::Id(id) => trace.string(id).to_owned(),
                    EventName::Word(word) => word.to_owned(),
                };
                NameTotal { kind, name, total }
            })
            .collect();
        by_name.sort_by(|a, b| {
            (b.total.nanos, b.total.count, a.kind, &a.name).cmp(&(
                a.total.nanos,
                a.total.count,
                b.kind,
                &b.name,
            ))
        });
        TotalsReport { by_kind, by_name }
    }
}
