//! What AMD's rocprofv3 writes: one JSON file a process, or CSV files, one for each kind of record.
//!
//! Both say the same things in different words. Each has a reader of its own; what they find becomes rows in `rows.rs`.

mod csv;
mod json;
mod rows;
mod schema;
mod tables;
#[cfg(test)]
mod tests;

use crate::import::Importer;

pub(super) const JSON: Importer = Importer {
    name: "rocprof",
    title: "rocprofv3 JSON",
    sniff: json::sniff,
    read: json::read,
};

pub(super) const CSV: Importer = Importer {
    name: "rocprof_csv",
    title: "rocprofv3 CSV",
    sniff: csv::sniff,
    read: csv::read,
};
