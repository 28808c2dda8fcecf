//! The commands, one per file.

mod analyze;
mod benchmark;
mod capture;
mod completions;
mod control;
mod cut;
mod demo;
mod devices;
mod diff;
mod doctor;
mod env;
mod export;
mod extract;
mod flame;
mod foreign;
mod import;
mod info;
mod leftovers;
mod merge;
mod ourselves;
mod out_file;
mod profile;
mod record;
mod repair;
mod replay;
mod replay_timing;
mod report;
#[cfg(feature = "sqlite")]
mod sql;
mod states;
mod studio;
mod symbolize;
mod top;
mod version;
mod view;
mod workload;

use anyhow::bail;

use crate::args::{Args, Command, FormatArg};
use crate::exit::Exit;
use crate::output::Output;

/// Runs a command.
pub(crate) fn run(args: Args, output: &mut Output) -> anyhow::Result<Exit> {
    let format = args.global.format;
    refuse_parquet(format, &args.command)?;
    match args.command {
        Command::Profile(args) => return profile::run(*args, output),
        Command::Record(args) => return record::run(&args, output),
        Command::Benchmark(args) => return benchmark::run(&args, output),
        Command::Devices => return devices::run(output),
        Command::Diff(args) => return diff::run(&args, output),
        Command::Doctor(args) => return doctor::run(&args, output),
        Command::Studio(args) => return studio::run(&args, output),
        Command::Top(args) => return top::run(&args, output),
        Command::Replay(args) => return replay::run(&args, output),
        Command::Extract(args) => extract::run(&args, output),
        Command::Env(args) => env::run(&args, output),
        Command::Info(args) => info::run(&args, output),
        Command::View(args) => view::run(*args, output),
        Command::Analyze(args) => analyze::run(&args, output),
        #[cfg(feature = "sqlite")]
        Command::Sql(args) => sql::run(&args, format, output),
        Command::States(args) => states::run(&args, output),
        Command::Repair(args) => repair::run(&args, output),
        Command::Merge(args) => merge::run(&args, output),
        Command::Cut(args) => cut::run(&args, output),
        Command::Export(args) => export::run(&args, output),
        Command::Flame(args) => flame::run(&args, output),
        Command::Report(args) => report::run(&args, output),
        Command::Symbolize(args) => symbolize::run(&args, output),
        Command::Import(args) => import::run(&args, output),
        Command::Demo(args) => demo::run(&args, output),
        Command::Workload(args) => workload::run(&args, output),
        Command::Completions(args) => completions::run(&args, output),
        Command::Version => version::run(output),
    }?;
    Ok(Exit::Done)
}

/// Fails if Parquet is wanted of a command that cannot write it.
fn refuse_parquet(format: FormatArg, command: &Command) -> anyhow::Result<()> {
    let is_able = match command {
        #[cfg(feature = "sqlite")]
        Command::Sql(_) => true,
        _ => false,
    };
    if format == FormatArg::Parquet && !is_able {
        bail!(
            "--format parquet is for 'tracesmith sql'; 'tracesmith export -f parquet' writes tables of a trace"
        );
    }
    Ok(())
}
