//! The `tracesmith` command.
//!
//! `args` parses, and `commands` call the libraries. Only `output` prints, except for `top`, which uses the whole
//! terminal, and `record --control`, which talks to a program. Only this file ends the process: 0 success, 1 check failed, 2 TraceSmith failed, or the exit code of the
//! recorded program.

mod args;
mod commands;
mod counters;
mod exit;
mod input;
mod library;
mod narrowed;
mod output;
mod progress;
mod select;
mod timeline;

use std::io;
use std::process::ExitCode;

use clap::Parser;
use clap::error::{ContextKind, ContextValue};

use crate::args::Args;
use crate::output::Output;

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(mut refusal) => {
            name_short_option(&mut refusal);
            let code = if refusal.use_stderr() { 2 } else { 0 };
            // If the pipe is closed, help cannot be shown, which is fine.
            let _ = refusal.print();
            return ExitCode::from(code);
        }
    };
    let mut output = Output::new(&args.global);
    let result = commands::run(args, &mut output).and_then(|exit| Ok(output.finish().map(|()| exit)?));
    match result {
        Ok(exit) => exit.into_code(),
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output.error(&error);
            ExitCode::from(exit::code_of(&error))
        }
    }
}

/// Adds `-f` to the long option in an error. The parser knows only the long form, which few people use.
fn name_short_option(refusal: &mut clap::Error) {
    let is_format = matches!(
        refusal.get(ContextKind::InvalidArg),
        Some(ContextValue::String(name)) if name.starts_with("--as ")
    );
    if is_format {
        let name = ContextValue::String("-f, --as <FORMAT>".to_owned());
        refusal.insert(ContextKind::InvalidArg, name);
    }
}

/// Whether the reader of the output has exited, as in `tracesmith view … | head`.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<output::StdoutError>()
            .is_some_and(|error| error.0.kind() == io::ErrorKind::BrokenPipe)
    })
}
