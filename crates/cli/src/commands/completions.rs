//! `tracesmith completions`.

use clap::CommandFactory;

use crate::args::{Args, CompletionsArgs};
use crate::output::Output;

pub(crate) fn run(args: &CompletionsArgs, output: &mut Output) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "tracesmith", &mut script);
    Ok(output.raw(&script)?)
}
