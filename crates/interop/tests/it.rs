//! Importers and exporters at the public API. One program for all files of this folder, so that it is linked once.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

mod export_any;
mod export_sqlite;
mod export_stacks;
mod fuzz_corpus;
mod import_json;
mod import_kineto;
#[path = "support/import.rs"]
mod imported;
mod nsys;
mod perfetto;
mod perfetto_golden;
mod perfetto_machines;
#[path = "support/protobuf_text.rs"]
mod protobuf_text;
mod rocpd;
mod round_trips;
mod sqlite_bad_input;
