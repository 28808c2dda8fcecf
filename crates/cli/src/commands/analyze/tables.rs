//! Prints the results of `analyze` as tables.

use tracesmith_format::DeviceId;
use tracesmith_trace::analysis::{
    CopiesReport, CopyRow, IdleReport, KernelKey, KernelsReport, LaunchesReport, StepRow, StepsReport,
    StreamUtilization, UtilizationReport, device_name,
};
use tracesmith_trace::reconstruct::{Activity, Step};
use tracesmith_trace::{Trace, units};

use super::whole_span;
use crate::output::table::{Align, Cell, TextTable};
use crate::output::{FAINT, HEADING, Output};

pub(super) fn heading(text: &str, output: &mut Output) -> anyhow::Result<()> {
    Ok(output.line(&format!("{HEADING}{text}{HEADING:#}"))?)
}

pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn part(nanos: u64, of: u64) -> Cell {
    if nanos == 0 {
        return "".into();
    }
    if of == 0 {
        return units::nanos(nanos).into();
    }
    format!("{} ({})", units::nanos(nanos), percent(nanos as f64 / of as f64)).into()
}

/// The time that all shares of time on the screen refer to, named once.
pub(super) fn analyzed_time(activity: &Activity, output: &mut Output) -> anyhow::Result<()> {
    let (from, to) = activity.base;
    if activity.ops.is_empty() {
        return Ok(());
    }
    let what = match (activity.window.from, activity.window.to) {
        (None, None) => "from the first to the last GPU operation",
        (Some(_), None) => "from the selected time to the last GPU operation",
        (None, Some(_)) => "from the first GPU operation to the selected time",
        (Some(_), Some(_)) => "as selected",
    };
    let (first, last) = activity.span.unwrap_or((from, to));
    let around: Vec<String> = [
        (from.saturating_sub(first), "before"),
        (last.saturating_sub(to), "after"),
    ]
    .into_iter()
    .filter(|(nanos, _)| *nanos > 0)
    .map(|(nanos, side)| format!("{} {side} it", units::nanos(nanos)))
    .collect();
    let around = match around.is_empty() {
        true => String::new(),
        false => format!(". CPU calls were recorded for {}", around.join(" and ")),
    };
    output.line(&format!(
        "Analyzed time: {}, {what}. Percentages of time refer to it{around}. Times with + count from the start of the trace",
        units::nanos(to - from)
    ))?;
    Ok(output.line("")?)
}

pub(super) fn devices(report: &UtilizationReport, output: &mut Output) -> anyhow::Result<()> {
    if report.devices.is_empty() {
        return Ok(());
    }
    heading("Devices", output)?;
    let mut table = TextTable::new(&[
        ("device", Align::Left),
        ("operations", Align::Right),
        ("busy", Align::Right),
        ("compute", Align::Right),
        ("communication", Align::Right),
        ("exposed comm.", Align::Right),
        ("copies", Align::Right),
        ("concurrent", Align::Right),
    ]);
    for device in &report.devices {
        let breakdown = &device.breakdown;
        let span = breakdown.span_ns;
        table.row([
            device.name.clone().into(),
            units::count(device.ops).into(),
            part(breakdown.busy_ns, span),
            part(breakdown.compute_ns, span),
            part(breakdown.communication_ns, span),
            part(breakdown.communication_exposed_ns, span),
            part(breakdown.copy_ns, span),
            format!("up to {}", device.max_concurrency).into(),
        ]);
    }
    output.table(&table)?;
    Ok(output.line("")?)
}

pub(super) fn streams(
    streams: &[StreamUtilization],
    limit: usize,
    output: &mut Output,
) -> anyhow::Result<()> {
    let mut table = TextTable::new(&[
        ("device", Align::Left),
        ("process", Align::Right),
        ("context", Align::Right),
        ("stream", Align::Right),
        ("kind", Align::Left),
        ("work", Align::Right),
        ("from first to last", Align::Right),
        ("busy", Align::Right),
    ]);
    for stream in streams.iter().take(limit) {
        let span = stream.last_ns - stream.first_ns;
        table.row([
            stream.device_name.clone().into(),
            stream.process.to_string().into(),
            stream.context.to_string().into(),
            stream.stream.to_string().into(),
            stream.kind.into(),
            units::count(stream.ops).into(),
            units::nanos(span).into(),
            part(stream.busy_ns, span),
        ]);
    }
    output.table(&table)?;
    more(streams.len().saturating_sub(limit), "stream", output);
    Ok(())
}

/// Notes that a table leaves out rows. `what` names one of them, as `kernel` or `gap of GPU 0`.
pub(super) fn more(hidden: usize, what: &str, output: &mut Output) {
    if hidden == 0 {
        return;
    }
    let what = match (hidden, what.split_once(" of ")) {
        (1, _) => what.to_owned(),
        (_, Some((noun, of))) => format!("{noun}s of {of}"),
        (_, None) => format!("{what}s"),
    };
    output.note(&format!(
        "{} more {what}; --limit 0 shows all",
        units::count(hidden as u64)
    ));
}

pub(super) fn idle(report: &IdleReport, output: &mut Output) -> anyhow::Result<()> {
    for device in report.devices.iter().filter(|device| device.idle_ns > 0) {
        let text = format!(
            "Idle time of {}: {} ({})",
            device.name,
            units::nanos(device.idle_ns),
            percent(device.idle_ns as f64 / device.span_ns.max(1) as f64)
        );
        heading(&text, output)?;
        let mut table = TextTable::new(&[
            ("time", Align::Right),
            ("share", Align::Right),
            ("gaps", Align::Right),
            ("cause", Align::Left),
        ]);
        for cause in &device.causes {
            table.row([
                units::nanos(cause.total_ns).into(),
                percent(cause.share).into(),
                units::count(cause.gaps).into(),
                cause.cause.words().into(),
            ]);
        }
        output.table(&table)?;
        output.line("")?;
    }
    Ok(())
}

pub(super) fn stream_idle(report: &IdleReport, limit: usize, output: &mut Output) -> anyhow::Result<()> {
    let idle: Vec<_> = report
        .streams
        .iter()
        .filter(|stream| stream.idle_ns > 0)
        .collect();
    if idle.is_empty() {
        return Ok(());
    }
    heading(
        "Idle time of streams, between their first and last operation",
        output,
    )?;
    let mut table = TextTable::new(&[
        ("process", Align::Right),
        ("context", Align::Right),
        ("stream", Align::Right),
        ("idle", Align::Right),
        ("time", Align::Right),
        ("gaps", Align::Right),
        ("cause", Align::Left),
    ]);
    for stream in idle.iter().take(limit) {
        for (number, cause) in stream.causes.iter().enumerate() {
            let once = |text: String| if number == 0 { text } else { String::new() };
            table.row([
                once(stream.process.to_string()).into(),
                once(stream.context.to_string()).into(),
                once(stream.stream.to_string()).into(),
                once(units::nanos(stream.idle_ns)).into(),
                units::nanos(cause.total_ns).into(),
                units::count(cause.gaps).into(),
                cause.cause.words().into(),
            ]);
        }
    }
    output.table(&table)?;
    more(idle.len().saturating_sub(limit), "stream", output);
    Ok(output.line("")?)
}

pub(super) fn gaps(
    report: &IdleReport,
    span: Option<(u64, u64)>,
    limit: usize,
    output: &mut Output,
) -> anyhow::Result<()> {
    for device in report.devices.iter().filter(|device| !device.longest.is_empty()) {
        heading(&format!("Longest gaps of {}", device.name), output)?;
        let mut table = TextTable::new(&[
            ("at", Align::Right),
            ("length", Align::Right),
            ("mostly", Align::Left),
            ("table", Align::Left),
            ("row", Align::Right),
            ("ended by", Align::Name),
        ]);
        for gap in device.longest.iter().take(limit) {
            table.row([
                units::offset(span, gap.from_ns).into(),
                units::nanos(gap.to_ns - gap.from_ns).into(),
                gap.cause.words().into(),
                gap.next_table.name().into(),
                gap.next_row.to_string().into(),
                gap.next.clone().into(),
            ]);
        }
        output.table(&table)?;
        let hidden = device.longest.len().saturating_sub(limit);
        more(hidden, &format!("gap of {}", device.name), output);
        output.line("")?;
    }
    Ok(())
}

/// The steps in one line.
pub(super) fn step_line(report: &StepsReport, output: &mut Output) -> anyhow::Result<()> {
    if report.steps.is_empty() {
        return Ok(());
    }
    if let [StepRow { step, .. }] = report.steps.as_slice() {
        let warm_up = match mark(step) {
            "" => String::new(),
            mark => format!(" ({mark})"),
        };
        heading(
            &format!(
                "Step {}: {}{warm_up}, {}",
                step.number,
                units::nanos(step.duration()),
                report.source.words()
            ),
            output,
        )?;
        return Ok(output.line("")?);
    }
    let warm_up = report.steps.iter().filter(|row| row.step.is_warm_up).count();
    let settled = &report.settled;
    let ranks = match report.processes {
        0 | 1 => String::new(),
        count => format!(" of {count} processes"),
    };
    heading(
        &format!("Steps: {}{ranks}, {}", report.steps.len(), report.source.words()),
        output,
    )?;
    let cut_off = report.steps.iter().filter(|row| row.step.is_cut_off).count();
    let left_out: Vec<String> = [(warm_up, "warm-up"), (cut_off, "cut off by the end of the trace")]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, why)| format!("{count} {why}"))
        .collect();
    let who = match left_out.is_empty() {
        true => "step time:".to_owned(),
        false => format!("{}; time of the others:", left_out.join(", ")),
    };
    if settled.count == 0 {
        return Ok(output.line("")?);
    }
    output.line(&format!(
        "{who} mean {}, min {}, max {}",
        units::nanos(settled.mean_ns as u64),
        units::nanos(settled.min_ns),
        units::nanos(settled.max_ns)
    ))?;
    let gpu = &report.gpu_period;
    if gpu.count > 0 && gpu.mean_ns > AHEAD * settled.mean_ns {
        output.line(&format!(
            "the CPU runs ahead of the GPU. From the first GPU operation of a step to that of the next: mean {}, min {}, max {}",
            units::nanos(gpu.mean_ns as u64),
            units::nanos(gpu.min_ns),
            units::nanos(gpu.max_ns)
        ))?;
    }
    Ok(output.line("")?)
}

/// How many times as long steps of the GPU take as those of the CPU if these are not the time of a step.
const AHEAD: f64 = 1.05;

/// Why a step does not count in statistics.
fn mark(step: &Step) -> &'static str {
    match (step.is_warm_up, step.is_cut_off) {
        (true, _) => "warm-up",
        (false, true) => "cut off",
        (false, false) => "",
    }
}

pub(super) fn steps(
    trace: &Trace,
    report: &StepsReport,
    limit: usize,
    output: &mut Output,
) -> anyhow::Result<()> {
    if report.steps.is_empty() {
        output.note("no steps found: no range of a step, and no kernels that repeat with each step");
        return Ok(());
    }
    step_line(report, output)?;
    let mut table = TextTable::new(&[
        ("number", Align::Right),
        ("at", Align::Right),
        ("time", Align::Right),
        ("", Align::Left),
        ("launched", Align::Right),
        ("device", Align::Left),
        ("busy during the step", Align::Right),
        ("compute", Align::Right),
        ("exposed communication", Align::Right),
        ("step", Align::Flexible),
    ]);
    let span = whole_span(trace);
    for row in report.steps.iter().take(limit) {
        let warm_up = mark(&row.step);
        let mut add = |device: String, busy: Cell, compute: Cell, exposed: Cell| {
            table.row([
                row.step.number.to_string().into(),
                units::offset(span, row.step.start_ns).into(),
                units::nanos(row.step.duration()).into(),
                Cell::styled(warm_up, FAINT),
                units::count(row.ops).into(),
                device.into(),
                busy,
                compute,
                exposed,
                row.step.name.clone().into(),
            ]);
        };
        if row.devices.is_empty() {
            add(String::new(), "".into(), "".into(), "".into());
        }
        for device in &row.devices {
            let breakdown = &device.breakdown;
            let span = breakdown.span_ns;
            add(
                device_name(trace, DeviceId(device.device)),
                part(breakdown.busy_ns, span),
                part(breakdown.compute_ns, span),
                part(breakdown.communication_exposed_ns, span),
            );
        }
    }
    output.table(&table)?;
    more(report.steps.len().saturating_sub(limit), "step", output);
    Ok(())
}

pub(super) fn kernels(
    report: &KernelsReport,
    hidden: usize,
    devices: usize,
    output: &mut Output,
) -> anyhow::Result<()> {
    if report.rows.is_empty() {
        return Ok(());
    }
    heading(
        &format!(
            "Kernels: {} with {} of GPU time",
            units::count(report.count),
            units::nanos(report.total_ns)
        ),
        output,
    )?;
    // Lines of code and paths of ranges are not function names.
    let names = match report.by {
        KernelKey::Name | KernelKey::ShortName | KernelKey::Shape => Align::Name,
        _ => Align::Flexible,
    };
    let mut table = TextTable::new(&[
        ("share", Align::Right),
        ("total", Align::Right),
        ("count", Align::Right),
        ("mean", Align::Right),
        ("min", Align::Right),
        ("p50", Align::Right),
        ("p95", Align::Right),
        ("max", Align::Right),
        // Devices work at the same time: their sum would be longer than the step.
        (
            if devices > 1 {
                "per step and GPU"
            } else {
                "per step"
            },
            Align::Right,
        ),
        ("shape", Align::Left),
        ("name", names),
    ]);
    for row in &report.rows {
        let (name, shape) = match report.by {
            KernelKey::Shape => row.name.rsplit_once(" grid ").unwrap_or((&row.name, "")),
            _ => (row.name.as_str(), ""),
        };
        let durations = &row.durations;
        table.row([
            percent(row.share).into(),
            units::nanos(durations.total_ns).into(),
            units::count(durations.count).into(),
            units::nanos(durations.mean_ns as u64).into(),
            units::nanos(durations.min_ns).into(),
            units::nanos(durations.p50_ns).into(),
            units::nanos(durations.p95_ns).into(),
            units::nanos(durations.max_ns).into(),
            match (row.step_ns, row.step_spread) {
                (Some(mean), Some(spread)) => format!("{} ± {}", units::nanos(mean as u64), percent(spread)),
                _ => String::new(),
            }
            .into(),
            shape.into(),
            name.into(),
        ]);
    }
    output.table(&table)?;
    more(hidden, "kernel", output);
    Ok(output.line("")?)
}

pub(super) fn copies(report: &CopiesReport, output: &mut Output) -> anyhow::Result<()> {
    if report.rows.is_empty() {
        return Ok(());
    }
    heading("Memcpys and memsets", output)?;
    let mut table = TextTable::new(&[
        ("device", Align::Left),
        ("direction", Align::Left),
        ("from", Align::Left),
        ("to", Align::Left),
        ("count", Align::Right),
        ("small", Align::Right),
        ("bytes", Align::Right),
        ("total", Align::Right),
        ("speed", Align::Right),
        ("fastest", Align::Right),
        ("limit", Align::Right),
    ]);
    let speed = |speed: Option<f64>| speed.map_or(String::new(), |speed| format!("{speed:.1} GB/s"));
    // A guess would not be a peak. Where none is known, the table leaves out the empty column.
    let no_peak = match report
        .rows
        .iter()
        .any(|row| row.peak_gigabytes_per_second.is_some())
    {
        true => "unknown",
        false => "",
    };
    let peak = |row: &CopyRow| match (row.peak_gigabytes_per_second, row.gigabytes_per_second) {
        (None, _) => no_peak.to_owned(),
        (peak, None) => speed(peak),
        (Some(peak), Some(reached)) => format!("{peak:.1} GB/s ({})", percent(reached / peak)),
    };
    for row in &report.rows {
        let small = if row.small == 0 {
            String::new()
        } else {
            units::count(row.small)
        };
        let way = match (&row.source_device_name, &row.destination_device_name) {
            (Some(source), Some(destination)) => format!("{} {source} to {destination}", row.direction),
            _ => row.direction.to_owned(),
        };
        table.row([
            row.device_name.clone().into(),
            way.into(),
            row.source.into(),
            row.destination.into(),
            units::count(row.durations.count).into(),
            small.into(),
            units::bytes(row.bytes).into(),
            units::nanos(row.durations.total_ns).into(),
            speed(row.gigabytes_per_second).into(),
            speed(row.best_gigabytes_per_second).into(),
            peak(row).into(),
        ]);
    }
    output.table(&table)?;
    Ok(output.line("")?)
}

pub(super) fn launches(report: &LaunchesReport, output: &mut Output) -> anyhow::Result<()> {
    if report.latency.count == 0 {
        return Ok(());
    }
    heading(
        &format!(
            "Launches: {} that launched kernels, graphs, memcpys or memsets",
            match report.call.count {
                1 => "1 call".to_owned(),
                count => format!("{} calls", units::count(count)),
            }
        ),
        output,
    )?;
    let mut table = TextTable::new(&[
        ("", Align::Left),
        ("mean", Align::Right),
        ("p50", Align::Right),
        ("p95", Align::Right),
        ("p99", Align::Right),
        ("max", Align::Right),
    ]);
    for (name, durations) in [
        ("duration of the call", &report.call),
        (
            "start of the call to start of its first GPU operation",
            &report.latency,
        ),
        (
            "end of the call to start of its first GPU operation",
            &report.delay,
        ),
    ] {
        table.row([
            name.into(),
            units::nanos(durations.mean_ns as u64).into(),
            units::nanos(durations.p50_ns).into(),
            units::nanos(durations.p95_ns).into(),
            units::nanos(durations.p99_ns).into(),
            units::nanos(durations.max_ns).into(),
        ]);
    }
    output.table(&table)?;
    let short = &report.short_kernels;
    if short.count > 0 {
        output.line(&format!(
            "{} of {} outside graphs ({}) took less time than the call that launched {}",
            units::count(short.count),
            match short.launched {
                1 => "1 kernel".to_owned(),
                launched => format!("{} kernels", units::count(launched)),
            },
            percent(short.share),
            if short.count == 1 { "it" } else { "them" }
        ))?;
        if short.blocked > 0 {
            output.line(&format!(
                "{} not counted there: the launch call blocked on a full queue",
                units::counted(short.blocked, "kernel is", "kernels are")
            ))?;
        }
    }
    if report.graph_launches > 0 {
        output.line(&format!(
            "{} from {}",
            match report.graph_kernels {
                1 => "1 kernel came".to_owned(),
                count => format!("{} kernels came", units::count(count)),
            },
            match report.graph_launches {
                1 => "1 graph launch, which counts as one launch".to_owned(),
                count => format!(
                    "{} graph launches, which count as one launch each",
                    units::count(count)
                ),
            }
        ))?;
    }
    for queue in &report.queues {
        output.line(&format!(
            "{}: on average {:.1} GPU operations queued, at most {}; queue empty {} of the time",
            queue.name,
            queue.mean,
            units::count(queue.max),
            percent(queue.empty_share)
        ))?;
    }
    Ok(())
}

pub(super) fn launch_bound(
    report: &LaunchesReport,
    span: Option<(u64, u64)>,
    limit: usize,
    output: &mut Output,
) -> anyhow::Result<()> {
    if report.launch_bound.is_empty() {
        return Ok(());
    }
    output.line("")?;
    heading("Launch-bound ranges: the GPU waited for every launch", output)?;
    let mut table = TextTable::new(&[
        ("device", Align::Left),
        ("at", Align::Right),
        ("length", Align::Right),
        ("launches", Align::Right),
        ("idle", Align::Right),
    ]);
    for stretch in report.launch_bound.iter().take(limit) {
        let length = stretch.to_ns - stretch.from_ns;
        table.row([
            stretch.device_name.clone().into(),
            units::offset(span, stretch.from_ns).into(),
            units::nanos(length).into(),
            units::count(stretch.ops).into(),
            part(stretch.idle_ns, length),
        ]);
    }
    output.table(&table)?;
    let hidden = report.launch_bound.len().saturating_sub(limit);
    more(hidden, "launch-bound range", output);
    Ok(())
}
