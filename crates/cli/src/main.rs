//! The `tracesmith` command.
//!
//! `args` says what can be asked, `commands` answer by calling the libraries, `output` is the only place that prints (but
//! for `top`, which has the terminal to itself), and this file is the only one that ends the process: 0 done, 1 the check
//! said no, 2 we failed, or as the program that was run.

mod args;
mod commands;
mod counters;
mod exit;
mod input;
mod library;
mod output;
mod progress;
mod time_arg;
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
            // Help that cannot be shown, because its pipe is closed, is nobody's loss.
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

/// Names `-f` next to its long form: the parser knows only the latter, which few write.
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

/// Whoever reads our output has seen enough: `tracesmith view … | head`.
fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause
            .downcast_ref::<output::StdoutError>()
            .is_some_and(|error| error.0.kind() == io::ErrorKind::BrokenPipe)
    })
}
