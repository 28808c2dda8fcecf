//! `tracesmith merge`.

use std::path::Path;

use tracesmith_trace::{HostLink, HostPlacement, merge, units};

use crate::args::{ClockArg, MergeArgs};
use crate::commands::cut::show_report;
use crate::commands::out_file::{Schema, write_trace};
use crate::input::open_trace;
use crate::output::Output;
use crate::progress::Progress;

/// The kernel states an error of 16 s for a clock that nothing synchronises. One of a second is no better for events.
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

/// Says how well the hosts' times compare: a wrong order of events across hosts looks like any other.
fn show_hosts(hosts: &[HostPlacement], output: &mut Output) {
    for host in hosts {
        let name = &host.name;
        match host.uncertainty {
            None => output.warning(&format!(
                "the times of host {name} cannot be compared with those of the first host: no clock pairs link them"
            )),
            Some(uncertainty) if uncertainty >= UNSYNCHRONISED => output.warning(&format!(
                "the times of host {name} can be off by {}: the clock of a host is not synchronised",
                units::nanos(uncertainty)
            )),
            Some(uncertainty) => output.note(&format!(
                "times of host {name} are placed to within {}",
                units::nanos(uncertainty)
            )),
        }
    }
}
