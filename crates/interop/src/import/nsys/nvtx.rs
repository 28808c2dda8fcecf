//! Ranges and marks of NVTX, with the domains, categories and thread names that rows of the same table define.

use rustc_hash::FxHashMap;
use tracesmith_format::tables::*;
use tracesmith_format::{ProcessId, StringId, Timestamp};

use super::codes::{self, Codes, NvtxEvent};
use super::session::Session;
use crate::error::Error;
use crate::import::Builder;
use crate::import::sqlite::{Column, Query, Record};

pub(super) fn markers(session: &mut Session<'_>, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
    let db = session.db;
    let Some(mut query) = db.query("NVTX_EVENTS") else {
        return Ok(());
    };
    let kinds = Codes::load(db, "ENUM_NSYS_EVENT_TYPE", codes::NVTX, builder)?;
    let definitions = Definitions::read(&kinds, session, builder)?;
    let columns = Columns::of(&mut query);
    // An export of other tools may leave the type out; it then holds ranges.
    let typed = query.has("eventType");
    db.read(&query, builder, |row, builder| {
        let kind = match typed {
            true => kinds.get(row.integer(columns.kind)),
            false => Some(NvtxEvent::PushPop),
        };
        let kind = match kind {
            Some(kind @ (NvtxEvent::Mark | NvtxEvent::PushPop | NvtxEvent::StartEnd)) => kind,
            Some(_) => return Ok(()), // definitions, which are read already
            None => {
                builder.skip("NVTX events of unknown type", 1);
                return Ok(());
            }
        };
        let (start, end) = session.open_span(row.integer(columns.start), row.integer(columns.end));
        let (kind, end) = match (kind, end) {
            (NvtxEvent::Mark, _) => (MarkerKind::INSTANT, start),
            (NvtxEvent::PushPop, Timestamp::NONE) => (MarkerKind::OPEN_NESTED_RANGE, end),
            (NvtxEvent::PushPop, _) => (MarkerKind::NESTED_RANGE, end),
            (_, Timestamp::NONE) => (MarkerKind::OPEN_FREE_RANGE, end),
            _ => (MarkerKind::FREE_RANGE, end),
        };
        let caller = session.caller(row.integer(columns.thread), builder)?;
        let key = (caller.process, row.integer(columns.domain).unwrap_or(0));
        let category = row.integer(columns.category).unwrap_or(0);
        let (payload_kind, payload) = columns.payload(row);
        let domain = match definitions.domains.get(&key) {
            Some(domain) => *domain,
            None if key.1 == 0 => StringId::NONE,
            // Where it was named lies outside of what was exported.
            None => builder.string(&format!("domain {}", key.1))?,
        };
        let shape = MarkerShape {
            name: columns.text(row, session, builder)?,
            domain,
            category: session.number(Some(category)),
            category_name: definitions
                .categories
                .get(&(key, category))
                .copied()
                .unwrap_or_default(),
            // SQLite has no unsigned numbers: a colour may come as a negative one.
            color: row.integer(columns.color).unwrap_or(0) as u32,
            kind,
            payload_kind,
        };
        let detail = columns.detail(row, session, builder)?;
        builder.push(
            session.clock,
            &Marker {
                start,
                end,
                range: row.integer(columns.range).unwrap_or(0) as u64,
                payload,
                detail,
                caller,
                shape,
                ..Marker::default()
            },
        )
    })
}

/// The columns of the table.
struct Columns {
    start: Column,
    end: Column,
    kind: Column,
    range: Column,
    category: Column,
    color: Column,
    text: Column,
    text_id: Column,
    thread: Column,
    domain: Column,
    unsigned_64: Column,
    signed_64: Column,
    double: Column,
    unsigned_32: Column,
    signed_32: Column,
    float: Column,
    json: Column,
    json_id: Column,
    binary: Column,
}

impl Columns {
    fn of(query: &mut Query<'_>) -> Self {
        Columns {
            start: query.column("start"),
            end: query.column("end"),
            kind: query.column("eventType"),
            range: query.column("rangeId"),
            category: query.column("category"),
            color: query.column("color"),
            text: query.column("text"),
            text_id: query.column("textId"),
            thread: query.column("globalTid"),
            domain: query.column("domainId"),
            unsigned_64: query.column("uint64Value"),
            signed_64: query.column("int64Value"),
            double: query.column("doubleValue"),
            unsigned_32: query.column("uint32Value"),
            signed_32: query.column("int32Value"),
            float: query.column("floatValue"),
            json: query.column("jsonText"),
            json_id: query.column("jsonTextId"),
            binary: query.column("binaryData"),
        }
    }

    /// The text, given in place or by a number.
    fn text(
        &self,
        row: &Record<'_>,
        session: &mut Session<'_>,
        builder: &mut Builder<'_, '_>,
    ) -> Result<StringId, Error> {
        match row.text(self.text) {
            Some(text) => builder.string(&text),
            None => session.name(row.integer(self.text_id), builder),
        }
    }

    /// The one value that is there, by its bits.
    fn payload(&self, row: &Record<'_>) -> (PayloadKind, u64) {
        let integers = [
            (PayloadKind::U64, self.unsigned_64),
            (PayloadKind::I64, self.signed_64),
            (PayloadKind::U32, self.unsigned_32),
            (PayloadKind::I32, self.signed_32),
        ];
        for (kind, column) in integers {
            if let Some(value) = row.integer(column) {
                return (kind, value as u64);
            }
        }
        if let Some(value) = row.number(self.double) {
            return (PayloadKind::F64, value.to_bits());
        }
        if let Some(value) = row.number(self.float) {
            return (PayloadKind::F32, u64::from((value as f32).to_bits()));
        }
        (PayloadKind::NONE, 0)
    }

    /// Further values: JSON as it is; what has a layout of its own as the export writes it.
    fn detail(
        &self,
        row: &Record<'_>,
        session: &mut Session<'_>,
        builder: &mut Builder<'_, '_>,
    ) -> Result<StringId, Error> {
        match row.text(self.json).or_else(|| row.text(self.binary)) {
            Some(text) => builder.string(&text),
            None => session.name(row.integer(self.json_id), builder),
        }
    }
}

/// A process and its own number of a domain.
type DomainKey = (ProcessId, i64);

/// What rows of the table define.
#[derive(Default)]
struct Definitions {
    domains: FxHashMap<DomainKey, StringId>,
    categories: FxHashMap<(DomainKey, i64), StringId>,
}

impl Definitions {
    fn read(
        kinds: &Codes<NvtxEvent>,
        session: &mut Session<'_>,
        builder: &mut Builder<'_, '_>,
    ) -> Result<Self, Error> {
        let mut definitions = Definitions::default();
        let db = session.db;
        let Some(mut query) = db.query("NVTX_EVENTS").filter(|query| query.has("eventType")) else {
            return Ok(definitions);
        };
        let columns = Columns::of(&mut query);
        let wanted = |kind| {
            matches!(
                kind,
                NvtxEvent::Category | NvtxEvent::ThreadName | NvtxEvent::Domain
            )
        };
        query.only("eventType", &kinds.numbers(wanted));
        db.read(&query, builder, |row, builder| {
            let text = columns.text(row, session, builder)?;
            let caller = session.caller(row.integer(columns.thread), builder)?;
            let key = (caller.process, row.integer(columns.domain).unwrap_or(0));
            match kinds.get(row.integer(columns.kind)) {
                Some(NvtxEvent::Domain) => {
                    definitions.domains.insert(key, text);
                }
                Some(NvtxEvent::Category) => {
                    let category = row.integer(columns.category).unwrap_or(0);
                    definitions.categories.insert((key, category), text);
                }
                Some(NvtxEvent::ThreadName) => {
                    builder.thread_mut(caller.process, caller.thread).name = text;
                }
                _ => {}
            }
            Ok(())
        })?;
        Ok(definitions)
    }
}
