//! The commands: one a file.

mod benchmark;
mod completions;
mod cut;
mod demo;
mod devices;
mod doctor;
mod info;
mod merge;
mod ourselves;
mod out_file;
mod repair;
mod version;
mod view;
mod workload;

use std::process::ExitCode;

use crate::args::{Args, Command};
use crate::output::Output;

/// Runs what was asked for. The code is 0 unless a check said no.
pub(crate) fn run(args: Args, output: &mut Output) -> anyhow::Result<ExitCode> {
    let done = match args.command {
        Command::Benchmark(args) => return benchmark::run(&args, output),
        Command::Devices => return devices::run(output),
        Command::Doctor(args) => return doctor::run(&args, output),
        Command::Info(args) => info::run(&args, output),
        Command::View(args) => view::run(*args, output),
        Command::Repair(args) => repair::run(&args, output),
        Command::Merge(args) => merge::run(&args, output),
        Command::Cut(args) => cut::run(&args, output),
        Command::Demo(args) => demo::run(&args, output),
        Command::Workload(args) => workload::run(&args, output),
        Command::Completions(args) => completions::run(&args, output),
        Command::Version => version::run(output),
    };
    done.map(|()| ExitCode::SUCCESS)
}

/// What a check says.
fn verdict(is_good: bool) -> ExitCode {
    if is_good {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    }
}
