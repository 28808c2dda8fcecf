//! Collectives: what NCCL's kernels, and the operators that launched them, say of themselves.
//!
//! Older files have the facts on the operator alone; its kernel is then found by the framework's own number. An operator
//! whose kernel is not in the file becomes a collective with the host's times.

use rustc_hash::FxHashMap;
use tracesmith_format::tables::{Collective, CollectiveKind, CollectiveShape, Kernel, Place};
use tracesmith_format::{Bytes, Ordinal, ProcessId, Timestamp};

use crate::error::Error;
use crate::import::Builder;
use crate::import::json::correlations::NumberSet;
use crate::import::json::event::Event;
use crate::import::json::number::unsigned;
use crate::import::json::reading::Reading;
use crate::import::json::text::text_of;

/// Operators that wait for their kernel.
#[derive(Debug, Default)]
pub(super) struct Collectives {
    awaited: FxHashMap<u64, Collective>,
    /// Numbers whose kernel came with the facts itself.
    told: NumberSet,
}

impl Collectives {
    #[inline]
    pub(super) fn are_awaited(&self) -> bool {
        !self.awaited.is_empty()
    }
}

impl Reading<'_, '_, '_> {
    /// A kernel that says of itself that it is a collective, or whose operator did.
    pub(super) fn device_collective(
        &mut self,
        event: &Event<'_>,
        external: u64,
        kernel: &Kernel,
    ) -> Result<(), Error> {
        let operator = self.collectives.awaited.remove(&external);
        let enqueued = operator
            .as_ref()
            .map_or(Timestamp::NONE, |operator| operator.start);
        let Some(mut row) = facts(self.builder, event)?.or(operator) else {
            return Ok(());
        };
        row.start = kernel.start;
        row.end = kernel.end;
        row.correlation = kernel.correlation;
        row.enqueued = enqueued;
        row.place = kernel.place;
        self.collectives.told.insert(external);
        self.push(&row)
    }

    /// An operator that describes a collective.
    pub(super) fn operator_collective(
        &mut self,
        event: &Event<'_>,
        external: u64,
        (start, end): (Timestamp, Timestamp),
        process: ProcessId,
    ) -> Result<(), Error> {
        if self.collectives.told.contains(external) {
            return Ok(());
        }
        if let Some(row) = facts(self.builder, event)? {
            let row = Collective {
                start,
                end,
                enqueued: start,
                place: Place {
                    process,
                    ..Place::default()
                },
                ..row
            };
            // A number that comes twice (an operator within another) tells of the inner one.
            self.collectives.awaited.insert(external, row);
        }
        Ok(())
    }

    /// Adds the collectives whose kernels did not come.
    pub(super) fn host_collectives(&mut self) -> Result<(), Error> {
        let mut rows: Vec<_> = std::mem::take(&mut self.collectives.awaited)
            .into_iter()
            .collect();
        rows.sort_unstable_by_key(|(external, row)| (row.start, *external));
        for (_, row) in rows {
            self.push(&row)?;
        }
        Ok(())
    }
}

/// What the arguments say of a collective, if they do.
fn facts(builder: &mut Builder<'_, '_>, event: &Event<'_>) -> Result<Option<Collective>, Error> {
    let Some(name) = event.argument(b"Collective name") else {
        return Ok(None);
    };
    let text = |key: &[u8]| text_of(event.argument(key).unwrap_or_default());
    let number = |key: &[u8]| event.argument(key).and_then(unsigned);
    let ordinal = |key: &[u8]| {
        number(key)
            .and_then(|number| u32::try_from(number).ok())
            .map(Ordinal::new)
    };
    let name = text_of(name);
    let count = number(b"In msg nelems").unwrap_or(0);
    let datatype = text(b"dtype");
    let kind = match &*name {
        "send" => CollectiveKind::SEND,
        "recv" => CollectiveKind::RECEIVE,
        _ => CollectiveKind::COLLECTIVE,
    };
    let peer = match kind {
        CollectiveKind::SEND => ordinal(b"Dst Rank"),
        CollectiveKind::RECEIVE => ordinal(b"Src Rank"),
        _ => None,
    };
    Ok(Some(Collective {
        count,
        bytes: Bytes(count.saturating_mul(bytes_of(&datatype))),
        sequence: number(b"Seq").unwrap_or(0),
        shape: CollectiveShape {
            name: builder.string(&name)?,
            kind,
            communicator_name: builder.string(&text(b"Process Group Name"))?,
            rank: ordinal(b"Rank").unwrap_or_default(),
            ranks: number(b"Group size")
                .and_then(|ranks| u32::try_from(ranks).ok())
                .unwrap_or(0),
            root: peer.unwrap_or_default(),
            datatype: builder.string(&datatype)?,
            ..CollectiveShape::default()
        },
        ..Collective::default()
    }))
}

/// Bytes of an element, by PyTorch's name of its type; 0 when not known.
fn bytes_of(datatype: &str) -> u64 {
    match datatype {
        "Byte" | "Char" | "Bool" | "Float8_e4m3fn" | "Float8_e5m2" => 1,
        "Half" | "BFloat16" | "Short" => 2,
        "Int" | "Float" => 4,
        "Long" | "Double" | "ComplexFloat" => 8,
        "ComplexDouble" => 16,
        _ => 0,
    }
}
