//! The commands, run as a user runs them. One program for all files of this folder, so that it is linked once.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

mod analyze;
mod analyze_shares;
mod architecture;
mod arguments;
mod capture_clients;
mod capture_containers;
mod capture_control;
mod capture_ends;
mod capture_faults;
mod capture_flight;
mod capture_handover;
mod capture_kinds;
mod capture_late;
mod capture_leaving;
mod capture_memcheck;
mod capture_perfetto;
mod capture_processes;
mod capture_python_stacks;
mod capture_rows;
mod capture_security;
mod capture_stacks;
mod capture_windows;
mod ci;
mod commands;
mod damaged_files;
mod diff;
mod documents;
mod export_processes;
mod export_tables;
mod files;
mod foreign;
mod foreign_recorders;
mod imports;
mod leftovers;
mod machine;
mod profile;
mod readers_json;
mod readers_perfetto;
mod readers_perfetto_ui;
mod readers_speedscope;
mod readers_tables;
mod replay;
mod replay_arguments;
mod replay_changed;
mod replay_damaged;
mod replay_extract;
mod replay_faults;
mod replay_kinds;
mod replay_offline;
mod replay_parts;
mod replay_plans;
mod replay_rewritten;
mod replay_session;
mod replay_windows;
mod report;
mod selections;
mod sql;
mod sql_prompt;
mod stack_commands;
mod studio;
mod studio_live;
mod studio_pages;
mod studio_replay;
mod support;
mod time_ranges;
mod timeline;
mod top;
