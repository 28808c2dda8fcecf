//! `tracesmith profile`.

use std::path::Path;
use std::sync::Arc;

use tracesmith_collect::{End, Forwarding, Injection, Launch, Preload, Wait, profile};
use tracesmith_interop::export::{ExportOptions, exporter};
use tracesmith_machine::doctor::{displaced_library, nsight_compute_above};
use tracesmith_trace::units;

use super::{capture, export, foreign};
use crate::args::{CaptureArgs, OutArgs, ProfileArgs, WaitArg};
use crate::exit::Exit;
use crate::input::open_trace;
use crate::library;
use crate::output::Output;

pub(crate) fn run(args: ProfileArgs, output: &mut Output) -> anyhow::Result<Exit> {
    if let Some(recorded) = foreign::run(&args, output)? {
        if let (true, Some(trace)) = (args.perfetto, &recorded.trace) {
            write_perfetto(trace, &args.capture, output);
        }
        return Ok(recorded.exit);
    }
    let program = args.command.first().cloned().unwrap_or_default();
    let destination = capture::destination(&args.capture, &program)?;
    let injection = injection();
    let withheld = injection != Injection::ByDriver;
    let launch = Launch {
        command: args.command,
        library: library::locate()?,
        preload: if args.no_preload {
            Preload::No
        } else {
            Preload::Yes
        },
        injection,
        wait: match args.wait {
            WaitArg::Primary => Wait::Primary,
            WaitArg::All => Wait::All,
        },
        forwarding: if args.signal_group {
            Forwarding::Group
        } else {
            Forwarding::Program
        },
    };
    let (end, report) = profile(launch, capture::capture(&args.capture, output)?, destination)?;
    capture::show(&report, output);
    if args.perfetto {
        for (path, _) in &report.files {
            write_perfetto(path, &args.capture, output);
        }
    }
    if report.processes == 0 && report.uncaptured_processes == 0 && !withheld {
        output.warning(&format!(
            "nothing was recorded: {} started no process that uses CUDA or NVTX, or the TraceSmith library was not loaded \
             (static program, setuid program, or cleared environment)",
            program.display()
        ));
        output.note("hint: tracesmith doctor checks what works on this machine");
    }
    if let Some(other) = displaced_library().filter(|_| !withheld) {
        output.warning(&format!(
            "CUDA_INJECTION64_PATH was {}: TraceSmith replaced it, so that tool recorded nothing",
            other.display()
        ));
    }
    let code = match end {
        End::Exited(code) => Exit::Code(u8::try_from(code & 0xff).unwrap_or(u8::MAX)),
        End::Killed(signal) => Exit::Signal(signal),
        _ => Exit::Done,
    };
    capture::exit(report, code, &args.capture, output)
}

/// Nsight Compute kills programs that load another tool's library. So the library is not loaded under it.
fn injection() -> Injection {
    match nsight_compute_above() {
        Some(pid) => Injection::Withheld(format!(
            "Nsight Compute (process {pid}) does not allow another tool in its programs: no GPU activity is recorded"
        )),
        None => Injection::ByDriver,
    }
}

/// Writes a Perfetto trace next to the trace. A failure is only a warning, because the program has run and its exit
/// code counts.
fn write_perfetto(path: &Path, args: &CaptureArgs, output: &mut Output) {
    let out = OutArgs {
        out: path.with_extension("pftrace"),
        force: args.force,
    };
    let perfetto = exporter("perfetto").expect("Perfetto is among the exporters");
    let written = open_trace(path)
        .and_then(|trace| export::write(perfetto, &Arc::new(trace), &ExportOptions::default(), &out, path));
    match written {
        Ok((_, bytes)) => output.note(&format!("wrote {} ({})", out.out.display(), units::bytes(bytes))),
        Err(error) => output.warning(&format!("cannot write the Perfetto trace: {error:#}")),
    }
}
