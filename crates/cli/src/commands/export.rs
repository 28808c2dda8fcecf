//! `tracesmith export`.

mod per_process;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use serde_json::json;
use tracesmith_interop::export::{
    ExportOptions, ExportReport, Exporter, GpuForm, KinetoOptions, Out, PacketPacking, Packing,
    PerfettoOptions, Way, Weight, exporter_for, write_folder,
};
use tracesmith_trace::{TimeRange, Trace, units};

use crate::args::{ExportArgs, Format, GpuFormArg, OutArgs, WeightArg};
use crate::commands::leftovers;
use crate::commands::out_file::{Target, is_stdout, write_out, write_path};
use crate::input::{open_trace, warn_of_damage};
use crate::narrowed::narrowed;
use crate::output::Output;
use crate::progress::Progress;
use crate::select::{range_of, selection};

pub(crate) fn run(args: &ExportArgs, output: &mut Output) -> anyhow::Result<()> {
    leftovers::watch()?;
    let exporter = chosen(args)?;
    if args.table.is_some() && !matches!(exporter.way, Way::Tables(_)) {
        bail!("--table does not apply to the format {}", exporter.name);
    }
    let out = OutArgs {
        out: out_path(args, exporter)?,
        force: args.force,
    };
    let trace = Arc::new(open_trace(&args.file)?);
    if args.single_file && exporter.name != "kineto" {
        bail!(
            "--single-file applies to the format kineto only; {} is one file",
            exporter.name
        );
    }
    let selection = selection(&args.select, &trace)?;
    let range = range_of(&args.select.stretch, &selection, &trace)?;
    let whole = trace;
    let trace = narrowed(&whole, &selection)?;
    let options = options(args, range, &trace, output);
    let parts = match args.single_file {
        true => Vec::new(),
        false => per_process::parts(exporter, &trace, &out, &args.file)?,
    };
    if !parts.is_empty() {
        let mut written = Vec::new();
        for part in &parts {
            let options = ExportOptions {
                kineto: part.kineto(),
                ..self::options(args, range, &trace, output)
            };
            written.push(write(exporter, &trace, &options, &part.out, &args.file)?);
        }
        drop(options);
        warn_of_damage(&whole, &args.file, output);
        return per_process::show(exporter, &parts, &written, output);
    }
    if let Some(size) = args.split {
        let report = write_split(exporter, &trace, &options, size.0, &out)?;
        drop(options);
        warn_of_damage(&whole, &args.file, output);
        return show_split(exporter, report, &out, output);
    }
    let (report, bytes) = match (exporter.way, args.table.as_deref()) {
        (Way::Tables(export), Some(table)) => {
            stream(&out, &args.file, |out| export(&trace, &options, table, out))?
        }
        _ => write(exporter, &trace, &options, &out, &args.file)?,
    };
    drop(options);
    warn_of_damage(&whole, &args.file, output);
    show(exporter, &report, bytes, &out, output)
}

fn chosen(args: &ExportArgs) -> anyhow::Result<&'static Exporter> {
    if let Some(exporter) = args.exporter {
        return Ok(exporter);
    }
    let Some(out) = &args.out else {
        bail!("no format given; choose one with -f, or name a file with -o");
    };
    exporter_for(out).with_context(|| {
        format!(
            "the extension of {} does not name a format; choose one with -f",
            out.display()
        )
    })
}

fn out_path(args: &ExportArgs, exporter: &Exporter) -> anyhow::Result<PathBuf> {
    match &args.out {
        Some(out) => Ok(out.clone()),
        None if args.file == Path::new("-") => bail!("name the file to write with -o"),
        None => Ok(args.file.with_extension(match &args.table {
            Some(table) => format!("{table}.{}", exporter.extension),
            None => exporter.extension.to_owned(),
        })),
    }
}

fn options(args: &ExportArgs, range: TimeRange, trace: &Trace, output: &Output) -> ExportOptions {
    ExportOptions {
        range,
        weight: weight(args.weight),
        perfetto: PerfettoOptions {
            gpu_form: match args.gpu_form {
                GpuFormArg::Tracks => GpuForm::Tracks,
                GpuFormArg::RenderStages => GpuForm::RenderStages,
                GpuFormArg::Both => GpuForm::Both,
            },
            packing: if args.no_compression {
                PacketPacking::None
            } else {
                PacketPacking::Deflate
            },
        },
        kineto: KinetoOptions::default(),
        progress: Some(Progress::new("exporting", trace.file_bytes(), output.bar()).into_fn()),
        ..ExportOptions::default()
    }
}

/// The weight of stacks.
pub(crate) fn weight(weight: WeightArg) -> Weight {
    match weight {
        WeightArg::GpuTime => Weight::GpuTime,
        WeightArg::Launches => Weight::Launches,
        WeightArg::AllocatedBytes => Weight::AllocatedBytes,
        WeightArg::Samples => Weight::Samples,
    }
}

/// Writes the export. Returns the report and the size.
pub(crate) fn write(
    exporter: &Exporter,
    trace: &Arc<Trace>,
    options: &ExportOptions,
    out: &OutArgs,
    input: &Path,
) -> anyhow::Result<(ExportReport, u64)> {
    match exporter.way {
        Way::Stream(export) => stream(out, input, |out| export(trace, options, out)),
        Way::File(export) if is_stdout(out) => {
            let folder = tempfile::tempdir().context("creating a temporary folder")?;
            let path = folder.path().join("export");
            let report = export(trace, options, &path)?;
            write_out(out, &[input], |target| {
                let Target::Stream(mut stream) = target else {
                    bail!("standard output is a stream");
                };
                let bytes = std::io::copy(&mut std::fs::File::open(&path)?, &mut stream)?;
                stream.flush()?;
                Ok((report, bytes))
            })
        }
        Way::Folder(_) if is_stdout(out) => {
            bail!("{} writes a folder of files; name it with -o", exporter.name)
        }
        Way::Tables(_) if is_stdout(out) => bail!(
            "{} writes a folder of files; name it with -o, or choose a table with --table",
            exporter.name
        ),
        Way::Tables(export) => write_path(out, &[input], |path| {
            let report = write_folder(exporter, export, trace, options, path)?;
            Ok((report, bytes_in(path)?))
        }),
        Way::File(export) | Way::Folder(export) => write_path(out, &[input], |path| {
            let report = export(trace, options, path)?;
            Ok((report, bytes_in(path)?))
        }),
    }
}

/// Writes an export as a stream, compressed if the file name ends accordingly.
fn stream(
    out: &OutArgs,
    input: &Path,
    export: impl FnOnce(&mut Out<'_>) -> Result<ExportReport, tracesmith_interop::Error>,
) -> anyhow::Result<(ExportReport, u64)> {
    write_out(out, &[input], |target| {
        let sink: Box<dyn Write> = match target {
            Target::File(file) => Box::new(file),
            Target::Stream(stream) => stream,
        };
        write_packed(Packing::of(&out.out), sink, |sink| {
            let mut out = Out::new(sink);
            let report = export(&mut out)?;
            out.finish()?;
            Ok(report)
        })
    })
}

/// Runs `fill` with a compressing writer. Returns its result and the compressed size.
fn write_packed<R>(
    packing: Option<Packing>,
    sink: Box<dyn Write>,
    fill: impl FnOnce(&mut dyn Write) -> anyhow::Result<R>,
) -> anyhow::Result<(R, u64)> {
    let mut sink = Counted { sink, bytes: 0 };
    let filled = match packing {
        None => fill(&mut sink)?,
        Some(Packing::Gzip) => {
            let mut packed = flate2::write::GzEncoder::new(&mut sink, flate2::Compression::default());
            let filled = fill(&mut packed)?;
            packed.finish()?;
            filled
        }
        Some(Packing::Zstd) => {
            let mut packed = zstd::stream::write::Encoder::new(&mut sink, zstd::DEFAULT_COMPRESSION_LEVEL)?;
            let filled = fill(&mut packed)?;
            packed.finish()?;
            filled
        }
    };
    sink.flush()?;
    Ok((filled, sink.bytes))
}

/// A writer that counts bytes.
struct Counted {
    sink: Box<dyn Write>,
    bytes: u64,
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.sink.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}

/// Writes a Perfetto trace as several files.
fn write_split(
    exporter: &Exporter,
    trace: &Trace,
    options: &ExportOptions,
    limit: u64,
    out: &OutArgs,
) -> anyhow::Result<(ExportReport, Vec<u64>)> {
    if exporter.name != "perfetto" {
        bail!(
            "--split applies to Perfetto traces only, not to {}",
            exporter.name
        );
    }
    if is_stdout(out) {
        bail!("--split writes several files; give their name with -o");
    }
    if limit == 0 {
        bail!("--split must be greater than 0");
    }
    let mut open = |number: usize| -> std::io::Result<Box<dyn std::io::Write>> {
        let mut how = std::fs::File::options();
        how.write(true);
        if out.force {
            how.create(true).truncate(true);
        } else {
            how.create_new(true);
        }
        let file = how.open(numbered(&out.out, number))?;
        Ok(Box::new(std::io::BufWriter::new(file)))
    };
    tracesmith_interop::export::write_split(trace, options, limit, &mut open)
        .with_context(|| format!("writing {}", numbered(&out.out, 1).display()))
}

/// The name of one of several files, with its number before the extension.
fn numbered(path: &Path, number: usize) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!(".{number}"));
    if let Some(ending) = path.extension() {
        name.push(".");
        name.push(ending);
    }
    path.with_file_name(name)
}

fn show_split(
    exporter: &Exporter,
    (report, sizes): (ExportReport, Vec<u64>),
    out: &OutArgs,
    output: &mut Output,
) -> anyhow::Result<()> {
    let bytes = sizes.iter().sum();
    show(exporter, &report, bytes, out, output)?;
    if output.format == Format::Table {
        for (size, number) in sizes.iter().zip(1..) {
            let name = numbered(&out.out, number);
            output.line(&format!("  {} ({})", name.display(), units::bytes(*size)))?;
        }
    }
    Ok(())
}

fn bytes_in(path: &Path) -> std::io::Result<u64> {
    let metadata = std::fs::metadata(path)?;
    if !metadata.is_dir() {
        return Ok(metadata.len());
    }
    std::fs::read_dir(path)?
        .map(|entry| bytes_in(&entry?.path()))
        .sum()
}

fn warn_of_losses(report: &ExportReport, output: &mut Output) {
    for (count, why) in [
        (report.left_out, "that cannot be expressed in this format"),
        (report.without_time, "without timestamps"),
    ] {
        if count > 0 {
            let events = units::counted(count, "event", "events");
            output.warning(&format!("left out {events} {why}"));
        }
    }
}

pub(crate) fn show(
    exporter: &Exporter,
    report: &ExportReport,
    bytes: u64,
    out: &OutArgs,
    output: &mut Output,
) -> anyhow::Result<()> {
    warn_of_losses(report, output);
    if is_stdout(out) {
        return Ok(());
    }
    if output.format == Format::Table {
        output.line(&format!(
            "wrote {} events as {} to {} ({})",
            units::count(report.events),
            exporter.name,
            out.out.display(),
            units::bytes(bytes)
        ))?;
        return Ok(());
    }
    output.facts(&[
        ("format", json!(exporter.name)),
        ("file", json!(out.out.display().to_string())),
        ("events", json!(report.events)),
        ("left_out", json!(report.left_out)),
        ("without_time", json!(report.without_time)),
        ("bytes", json!(bytes)),
    ])?;
    Ok(())
}
