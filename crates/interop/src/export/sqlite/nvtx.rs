//! The table of what programs marked, with the rows that name its domains and categories.

use rustc_hash::FxHashMap;
use tracesmith_format::tables::{Caller, MarkerKind, MarkerShape, PayloadKind};
use tracesmith_format::{Columns, ProcessId, StringId, Timestamp};

use super::insert::{Cell, Insert, unless_empty, unless_zero};
use super::{Export, schema};

/// Types of NVTX rows.
const CATEGORY: i64 = 33;
const MARK: i64 = 34;
const PUSH_POP: i64 = 59;
const START_END: i64 = 60;
const DOMAIN: i64 = 75;

impl Export<'_> {
    pub(super) fn markers(&mut self) -> rusqlite::Result<()> {
        let mut table = Insert::always(self.connection, schema::NVTX)?;
        let mut domains = Domains::default();
        for (block, rows) in self.trace.markers.stream() {
            self.options.note(block);
            for row in 0..rows.len() {
                let clock = block.header.clock;
                let (start, end) = (
                    self.moment(clock, rows.start[row]),
                    self.moment(clock, rows.end[row]),
                );
                let reaches = if end.is_some() { end } else { Timestamp(u64::MAX) };
                if !self.options.wants_time(start, reaches) {
                    continue;
                }
                let Some(time) = self.instant(start) else {
                    continue;
                };
                let (caller, shape) = (rows.caller.get(row), rows.shape.get(row));
                let thread = self.names.thread(caller);
                let domain = domains.number(caller, shape, |kind, domain, category, name| {
                    let text = self.trace.string(name);
                    table.row(&definition(time, kind, thread, domain, category, text))
                })?;
                let (kind, end) = match shape.kind {
                    MarkerKind::INSTANT => (MARK, None),
                    MarkerKind::FREE_RANGE | MarkerKind::OPEN_FREE_RANGE => {
                        (START_END, self.nanos_if_known(end))
                    }
                    _ => (PUSH_POP, self.nanos_if_known(end)),
                };
                let payload = |kind| (shape.payload_kind == kind).then_some(rows.payload[row]).into();
                let (double, float) = match shape.payload_kind {
                    PayloadKind::F64 => (Cell::Real(f64::from_bits(rows.payload[row])), Cell::Null),
                    PayloadKind::F32 => {
                        let value = f32::from_bits(rows.payload[row] as u32);
                        (Cell::Null, Cell::Real(f64::from(value)))
                    }
                    _ => (Cell::Null, Cell::Null),
                };
                table.row(&[
                    time.into(),
                    end.into(),
                    kind.into(),
                    unless_zero(rows.range[row]),
                    unless_zero(u64::from(shape.category)),
                    unless_zero(u64::from(shape.color)),
                    self.trace.string(shape.name).into(),
                    thread.into(),
                    Cell::Null,
                    Cell::Null,
                    domain.into(),
                    payload(PayloadKind::U64),
                    payload(PayloadKind::I64),
                    double,
                    payload(PayloadKind::U32),
                    payload(PayloadKind::I32),
                    float,
                    Cell::Null,
                    unless_empty(self.trace.string(rows.detail[row])),
                    Cell::Null,
                ])?;
            }
        }
        Ok(())
    }
}

/// The numbers of domains and categories, both of a process.
#[derive(Default)]
struct Domains {
    /// Domains of each process.
    counts: FxHashMap<ProcessId, i64>,
    domains: FxHashMap<(ProcessId, StringId), i64>,
    categories: FxHashMap<(ProcessId, i64, u32), ()>,
}

impl Domains {
    /// The number of a marker's domain. `define` is called with what was not seen before: the type of the row, domain,
    /// category and name. The domain without a name is 0 and needs no row.
    fn number(
        &mut self,
        caller: &Caller,
        shape: &MarkerShape,
        mut define: impl FnMut(i64, i64, u32, StringId) -> rusqlite::Result<()>,
    ) -> rusqlite::Result<i64> {
        let mut number = 0;
        if shape.domain != StringId::NONE {
            let count = self.counts.entry(caller.process).or_default();
            number = *self
                .domains
                .entry((caller.process, shape.domain))
                .or_insert(*count + 1);
            if number > *count {
                *count = number;
                define(DOMAIN, number, 0, shape.domain)?;
            }
        }
        let key = (caller.process, number, shape.category);
        if shape.category_name != StringId::NONE && self.categories.insert(key, ()).is_none() {
            define(CATEGORY, number, shape.category, shape.category_name)?;
        }
        Ok(number)
    }
}

/// A row that names a domain or category.
fn definition(time: i64, kind: i64, thread: i64, domain: i64, category: u32, text: &str) -> [Cell<'_>; 20] {
    let mut row = [Cell::Null; 20];
    row[0] = time.into();
    row[2] = kind.into();
    row[4] = unless_zero(category.into());
    row[6] = text.into();
    row[7] = thread.into();
    row[10] = domain.into();
    row
}
