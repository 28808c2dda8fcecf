//! `tracesmith demo`: a recording of real GPU work, on every machine.

mod live;
mod walk;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use tracesmith_trace::Trace;

use crate::args::{DemoArgs, OutArgs};
use crate::commands::out_file::write_path;
use crate::output::Output;

/// A PyTorch training loop, and the same loop after a fix. Both were recorded on an H200 (fixtures/train-h200.md).
static RECORDING: &[u8] = include_bytes!("../../../../../fixtures/train-h200.sbt");
static FIXED: &[u8] = include_bytes!("../../../../../fixtures/train-h200-fixed.sbt");

/// The default output. A file of an earlier demo is replaced.
const OUT: &str = "tracesmith-demo.sbt";

pub(crate) fn run(args: &DemoArgs, output: &mut Output) -> anyhow::Result<()> {
    let out = args.out.clone().unwrap_or_else(|| PathBuf::from(OUT));
    if out.as_os_str() == "-" {
        bail!("the demo writes files; name one with -o");
    }
    if args.live {
        check(&out, args)?;
        let (device, trace) = live::record(args.side)?;
        put(&trace, &out)?;
        let opened = Trace::from_bytes(trace).context("reading the demo trace")?;
        return live::show(&device, &opened, &out, output);
    }
    let fixed_out = beside(&out);
    check(&out, args)?;
    check(&fixed_out, args)?;
    put(RECORDING, &out)?;
    put(FIXED, &fixed_out)?;
    let open = |bytes: &[u8]| Trace::from_bytes(bytes.to_vec()).context("reading the demo trace");
    let (trace, fixed) = (Arc::new(open(RECORDING)?), Arc::new(open(FIXED)?));
    walk::show((&trace, &out), (&fixed, &fixed_out), output)
}

/// `demo.sbt` has `demo-fixed.sbt` beside it.
fn beside(out: &Path) -> PathBuf {
    let name = out.file_stem().unwrap_or_default().to_string_lossy();
    out.with_file_name(format!("{name}-fixed.sbt"))
}

/// Fails if a file would be replaced that is not the demo's own.
fn check(out: &Path, args: &DemoArgs) -> anyhow::Result<()> {
    let may_replace = args.force || (args.out.is_none() && is_own(out));
    if out.exists() && !may_replace {
        bail!("{} exists; replace it with --force", out.display());
    }
    Ok(())
}

/// Whether a file is a trace of an earlier demo.
fn is_own(file: &Path) -> bool {
    let Ok(bytes) = std::fs::read(file) else {
        return false;
    };
    bytes == RECORDING
        || bytes == FIXED
        || Trace::from_bytes(bytes).is_ok_and(|trace| live::is_recording(&trace))
}

/// Writes the trace and then renames it, so that the file is always complete.
fn put(trace: &[u8], out: &Path) -> anyhow::Result<()> {
    let args = OutArgs {
        out: out.to_owned(),
        force: true,
    };
    write_path(&args, &[], |partial| Ok(std::fs::write(partial, trace)?))
}
