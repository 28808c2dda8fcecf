//! `tracesmith merge`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::ensure;
use tracesmith_trace::{HostLink, HostPlacement, Trace, merge, units};

use crate::args::{ClockArg, MergeArgs};
use crate::commands::cut::show_report;
use crate::commands::out_file::{Schema, write_trace};
use crate::input::open_trace;
use crate::output::Output;
use crate::progress::Progress;

/// The kernel reports an error of 16 s for an unsynchronized clock. An error of one second is as useless for events.
const UNSYNCHRONISED: u64 = 1_000_000_000;

pub(crate) fn run(args: &MergeArgs, output: &mut Output) -> anyhow::Result<()> {
    let link = match args.clock {
        ClockArg::Utc => HostLink::Utc,
        ClockArg::Ptp => HostLink::Ptp,
    };
    let traces = args
        .files
        .iter()
        .map(|file| open_trace(file))
        .collect::<anyhow::Result<Vec<_>>>()?;
    refuse_duplicates(&args.files, &traces)?;
    let inputs: Vec<&Path> = args.files.iter().map(AsRef::as_ref).collect();
    let total = traces.iter().map(|trace| trace.file_bytes()).sum();
    let progress = Progress::new("merging", total, output.bar());
    let (report, bytes) = write_trace(&args.out, &inputs, Schema::Own, |writer| {
        Ok(merge(&traces, link, writer, &mut |bytes| progress.add(bytes))?)
    })?;
    drop(progress);
    show_hosts(&report.hosts, output);
    show_report(&report, bytes, &args.out, output)
}

/// Fails if two files are the same trace, because all its work would count twice.
fn refuse_duplicates(files: &[PathBuf], traces: &[Trace]) -> anyhow::Result<()> {
    let id = |trace: &Trace| trace.header().map(|header| header.id).filter(|id| *id != [0; 16]);
    for (later, (file, trace)) in files.iter().zip(traces).enumerate() {
        for (other, other_trace) in files.iter().zip(traces).take(later) {
            let same_file = fs::canonicalize(file)
                .is_ok_and(|path| fs::canonicalize(other).is_ok_and(|other| other == path));
            let same_id = id(trace).is_some_and(|own| id(other_trace) == Some(own));
            ensure!(
                !same_file && !same_id,
                "{} and {} are the same trace; name each trace once",
                other.display(),
                file.display()
            );
        }
    }
    Ok(())
}

/// Prints how well the clocks of hosts are aligned. A wrong order of events across hosts is not visible otherwise.
fn show_hosts(hosts: &[HostPlacement], output: &mut Output) {
    for host in hosts {
        let name = &host.name;
        match host.uncertainty {
            None => output.warning(&format!(
                "the times of host {name} cannot be compared with those of the first host: no clock pairs link them"
            )),
            Some(uncertainty) if uncertainty >= UNSYNCHRONISED => output.warning(&format!(
                "the times of host {name} can be off by {}: the clock of a host is not synchronized",
                units::nanos(uncertainty)
            )),
            Some(uncertainty) => output.note(&format!(
                "times of host {name} are accurate to {}",
                units::nanos(uncertainty)
            )),
        }
    }
}
