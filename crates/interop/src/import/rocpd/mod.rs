//! Databases of ROCm's rocprofv3 (`--output-format rocpd`), schema version 3.
//!
//! Every process writes tables of its own, whose names end in an id of that run; merged files hold several such sets,
//! and views without an ending join them. Only the tables are read, set by set. A row of an event table points to one
//! in `rocpd_event`, whose `stack_id` is the number that joins a call with what it launched.

mod device;
mod host;
mod run;

use crate::error::Error;
use crate::import::sqlite::{Database, MAGIC};
use crate::import::{Builder, ImportOptions, Importer, Input};
use run::Run;

pub(super) const IMPORTER: Importer = Importer {
    name: "rocpd",
    title: "rocpd database of rocprofv3",
    sniff,
    read,
};

/// What all its tables begin with.
const PREFIX: &str = "rocpd_";
/// The table that every set has.
const STRINGS: &str = "rocpd_string";

/// Tables whose rows become something, without their endings.
const READ: &[&str] = &[
    "rocpd_metadata",
    "rocpd_string",
    "rocpd_info_node",
    "rocpd_info_process",
    "rocpd_info_thread",
    "rocpd_info_agent",
    "rocpd_info_queue",
    "rocpd_info_stream",
    "rocpd_info_pmc",
    "rocpd_info_kernel_symbol",
    "rocpd_track",
    "rocpd_event",
    "rocpd_pmc_event",
    "rocpd_region",
    "rocpd_sample",
    "rocpd_kernel_dispatch",
    "rocpd_memory_copy",
    "rocpd_memory_allocate",
];

/// The schema comes first in such files, so that it is within the beginning.
fn sniff(head: &[u8]) -> bool {
    head.starts_with(MAGIC) && head.windows(STRINGS.len()).any(|part| part == STRINGS.as_bytes())
}

fn read(input: &mut Input, _: &ImportOptions, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
    let db = Database::open(input, IMPORTER.name)?;
    if !is_rocpd(&db) {
        return Err(Error::Foreign {
            format: IMPORTER.name,
            problem: format!("it is a SQLite database without a table {STRINGS}"),
            position: "schema".to_owned(),
        });
    }
    read_database(&db, builder)
}

/// Whether a database has such tables.
pub(super) fn is_rocpd(db: &Database) -> bool {
    endings(db).next().is_some()
}

/// Reads all sets of tables.
pub(super) fn read_database(db: &Database, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
    db.note_truncation(builder);
    let endings: Vec<&str> = endings(db).collect();
    for ending in &endings {
        let run = &mut Run::read(db, ending, builder)?;
        host::regions(run, builder)?;
        host::samples(run, builder)?;
        device::kernels(run, builder)?;
        device::counters(run, builder)?;
        device::copies(run, builder)?;
        device::allocations(run, builder)?;
        std::mem::take(&mut run.doubts).note(builder);
    }
    for table in db.tables() {
        let kind = endings
            .iter()
            .filter_map(|ending| table.strip_suffix(ending))
            .find(|kind| READ.contains(kind));
        if kind.is_none() && !table.starts_with("sqlite_") {
            let name = match table.starts_with(PREFIX) {
                true => endings
                    .iter()
                    .find_map(|ending| table.strip_suffix(ending))
                    .unwrap_or(table),
                false => table,
            };
            let rows = db.count(table, builder)?;
            builder.skip(&format!("rows of {name}"), rows);
        }
    }
    Ok(())
}

/// The endings of the sets of tables.
fn endings(db: &Database) -> impl Iterator<Item = &str> {
    db.tables().filter_map(|table| table.strip_prefix(STRINGS))
}
