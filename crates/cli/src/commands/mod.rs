//! The commands: one a file.

mod completions;
mod cut;
mod info;
mod merge;
mod out_file;
mod repair;
mod version;
mod view;

use crate::args::{Args, Command};
use crate::output::Output;

/// Runs what was asked for.
pub(crate) fn run(args: Args, output: &mut Output) -> anyhow::Result<()> {
    match args.command {
        Command::Info(args) => info::run(&args, output),
        Command::View(args) => view::run(*args, output),
        Command::Repair(args) => repair::run(&args, output),
        Command::Merge(args) => merge::run(&args, output),
        Command::Cut(args) => cut::run(&args, output),
        Command::Completions(args) => completions::run(&args, output),
        Command::Version => version::run(output),
    }
}
