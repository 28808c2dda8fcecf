//! Exports with a file for each process, as PyTorch writes one for each rank.

use std::path::{Path, PathBuf};

use serde_json::json;
use tracesmith_format::ProcessId;
use tracesmith_interop::export::{ExportReport, Exporter, KinetoOptions, Packing, kineto_processes};
use tracesmith_trace::{Trace, units};

use crate::args::{Format, OutArgs};
use crate::commands::out_file::{is_stdout, refuse_to_destroy};
use crate::output::Output;

/// A file of one process.
pub(super) struct Part {
    process: ProcessId,
    /// `rank0`, `pid123`.
    label: String,
    pub(super) out: OutArgs,
}

impl Part {
    pub(super) fn kineto(&self) -> KinetoOptions {
        KinetoOptions {
            process: Some(self.process),
        }
    }
}

/// The files of an export that has one for each process; none if it is a single file. Fails if one must not be written.
pub(super) fn parts(
    exporter: &Exporter,
    trace: &Trace,
    out: &OutArgs,
    input: &Path,
) -> anyhow::Result<Vec<Part>> {
    let is_special = std::fs::metadata(&out.out).is_ok_and(|metadata| !metadata.is_file());
    if exporter.name != "kineto" || is_stdout(out) || is_special {
        return Ok(Vec::new());
    }
    let processes = kineto_processes(trace);
    if processes.len() < 2 {
        return Ok(Vec::new());
    }
    let labels = labels(trace, &processes);
    let parts: Vec<Part> = processes
        .into_iter()
        .zip(labels)
        .map(|(process, label)| Part {
            out: OutArgs {
                out: labeled(&out.out, exporter.extension, &label),
                force: out.force,
            },
            process,
            label,
        })
        .collect();
    for part in &parts {
        refuse_to_destroy(&part.out, &[input])?;
    }
    Ok(parts)
}

/// A name of a process, if it has one of that kind.
type Label<'l> = &'l dyn Fn(&ProcessId) -> Option<String>;

/// Names of processes that differ: their ranks if all have one, or else their pids.
fn labels(trace: &Trace, processes: &[ProcessId]) -> Vec<String> {
    let rank = |id: &ProcessId| Some(format!("rank{}", trace.process(*id)?.rank.get()?));
    let pid = |id: &ProcessId| Some(format!("pid{}", trace.process(*id)?.pid));
    let number = |id: &ProcessId| Some(format!("process{}", id.0));
    let ways: [Label<'_>; 3] = [&rank, &pid, &number];
    ways.iter()
        .find_map(|way| {
            let labels: Vec<String> = processes.iter().map(way).collect::<Option<_>>()?;
            let mut distinct = labels.clone();
            distinct.sort_unstable();
            distinct.dedup();
            (distinct.len() == labels.len()).then_some(labels)
        })
        .expect("IDs of processes differ")
}

/// The path with a label before its extension: that of the format, or else the last one. Compression is looked through.
fn labeled(path: &Path, extension: &str, label: &str) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let packed = match Packing::of(path) {
        Some(Packing::Gzip) => ".gz",
        Some(Packing::Zstd) => ".zst",
        None => "",
    };
    let bare = name.strip_suffix(packed).unwrap_or(&name);
    let of_format = format!(".{extension}");
    let (stem, ending) = match bare.strip_suffix(&of_format) {
        Some(stem) => (stem, &*of_format),
        None => bare.split_at(bare.rfind('.').filter(|at| *at > 0).unwrap_or(bare.len())),
    };
    path.with_file_name(format!("{stem}.{label}{ending}{packed}"))
}

pub(super) fn show(
    exporter: &Exporter,
    parts: &[Part],
    written: &[(ExportReport, u64)],
    output: &mut Output,
) -> anyhow::Result<()> {
    let total = |of: fn(&ExportReport) -> u64| written.iter().map(|(report, _)| of(report)).sum();
    let report = ExportReport {
        events: total(|report| report.events),
        left_out: total(|report| report.left_out),
        without_time: total(|report| report.without_time),
    };
    super::warn_of_losses(&report, output);
    let bytes: u64 = written.iter().map(|(_, bytes)| bytes).sum();
    let files = parts.iter().zip(written);
    match output.format {
        Format::Table => {
            output.line(&format!(
                "wrote {} events as {} to {} files, one per process ({}); --single-file writes one file",
                units::count(report.events),
                exporter.name,
                parts.len(),
                units::bytes(bytes)
            ))?;
            for (part, (report, bytes)) in files {
                output.line(&format!(
                    "  {} ({} events, {})",
                    part.out.out.display(),
                    units::count(report.events),
                    units::bytes(*bytes)
                ))?;
            }
        }
        Format::Json => {
            let files: Vec<_> = files
                .map(|(part, (report, bytes))| {
                    json!({
                        "file": part.out.out.display().to_string(),
                        "process": part.label,
                        "events": report.events,
                        "bytes": bytes,
                    })
                })
                .collect();
            output.json(&json!({
                "format": exporter.name,
                "files": files,
                "events": report.events,
                "left_out": report.left_out,
                "without_time": report.without_time,
                "bytes": bytes,
            }))?;
        }
        Format::Csv => {
            output.csv([
                "format",
                "file",
                "process",
                "events",
                "left_out",
                "without_time",
                "bytes",
            ])?;
            for (part, (report, bytes)) in files {
                output.csv([
                    exporter.name.to_owned(),
                    part.out.out.display().to_string(),
                    part.label.clone(),
                    report.events.to_string(),
                    report.left_out.to_string(),
                    report.without_time.to_string(),
                    bytes.to_string(),
                ])?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_go_before_the_extension() {
        for (path, expected) in [
            ("train.pt.trace.json", "train.rank0.pt.trace.json"),
            ("a/train.pt.trace.json.gz", "a/train.rank0.pt.trace.json.gz"),
            ("train.json", "train.rank0.json"),
            ("train.json.zst", "train.rank0.json.zst"),
            ("train", "train.rank0"),
            (".hidden", ".hidden.rank0"),
        ] {
            assert_eq!(
                labeled(Path::new(path), "pt.trace.json", "rank0"),
                Path::new(expected)
            );
        }
    }
}
