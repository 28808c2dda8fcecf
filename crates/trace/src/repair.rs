//! Saving what is left of a damaged or unfinished trace.
//!
//! Blocks whose checksum holds are copied as they are, those of kinds that this version does not know included; the rest
//! is left out and stated in the new file's health.

use std::io::Write;

use serde::Serialize;
use tracesmith_format::tables::{Health, HealthCause};
use tracesmith_format::{Damage, Problem, Writer};

use crate::error::Error;
use crate::model::trace::Trace;
use crate::rewrite::write_doubt;

/// What a repair did.
#[derive(Clone, Debug, Serialize)]
pub struct RepairReport {
    /// Blocks that were kept.
    pub blocks: u64,
    /// Rows of events that were kept.
    pub rows: u64,
    /// What was lost, in file order.
    pub damage: Vec<Damage>,
}

/// Copies all readable blocks to a writer without a schema of its own ([`Writer::without_schema`]); the caller finishes
/// it. `progress` is called with the bytes of every block that is done.
pub fn repair<W: Write>(
    trace: &Trace,
    writer: &mut Writer<W>,
    progress: &mut dyn FnMut(u64),
) -> Result<RepairReport, Error> {
    let mut report = RepairReport {
        blocks: 0,
        rows: 0,
        damage: Vec::new(),
    };
    let mut decoder = trace.file.reader.decoder();
    for block in trace.blocks() {
        match decoder.payload(block) {
            Ok(payload) => {
                writer.copy_block(block, payload)?;
                report.blocks += 1;
                if block.header.kind.is_events() {
                    report.rows += u64::from(block.header.rows);
                }
            }
            Err(error @ tracesmith_format::Error::Damaged { .. }) => trace.file.note(block, error),
            Err(error) => return Err(error.into()),
        }
        progress(block.header.total_length());
    }
    report.damage = trace.file.damage();
    write_damage(&report.damage, writer)?;
    write_doubt(trace, "", writer)?;
    Ok(report)
}

/// States in a trace's health what was lost of the file it was made from.
pub(crate) fn write_damage<W: Write>(damage: &[Damage], writer: &mut Writer<W>) -> Result<(), Error> {
    for damage in damage {
        let cause = match damage.problem {
            Problem::Cut | Problem::Shortened | Problem::Unfinished => HealthCause::CUT,
            _ => HealthCause::DAMAGED,
        };
        let detail = writer.string(&damage.to_string())?;
        writer.define(&Health {
            cause,
            table: damage.kind.map_or(0, |kind| kind.0),
            count: u64::from(damage.rows),
            bytes: damage.length,
            detail,
            ..Health::default()
        })?;
    }
    Ok(())
}
