//! Files of other tools, written from a trace.
//!
//! A file is written next to its final path, and renamed when it is complete: an export that fails leaves what was there.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use pyo3::prelude::*;
use tracesmith_interop::export::{
    EXPORTERS, ExportOptions, ExportReport, Exporter, Out, Packing, Way, exporter, exporter_for, write_folder,
};

use crate::error::{NativeError, UsageError, sentence};
use crate::job;
use crate::trace::Trace;

/// Writes a trace in the format that is named, or that the ending of the path means. Returns the events that were written
/// and those that the format has no place for.
#[pyfunction]
pub(crate) fn export(
    py: Python<'_>,
    trace: &Trace,
    path: PathBuf,
    format: Option<&str>,
) -> PyResult<(u64, u64)> {
    let found = match format {
        Some(name) => exporter(name),
        None => exporter_for(&path),
    };
    let Some(exporter) = found else {
        let known: Vec<&str> = EXPORTERS.iter().map(|exporter| exporter.name).collect();
        return Err(UsageError::new_err(format!(
            "cannot tell the format of {}; name one of {}",
            path.display(),
            known.join(", ")
        )));
    };
    if Packing::of(&path).is_some() {
        return Err(UsageError::new_err(format!(
            "compressed files are written by the command: tracesmith export -o {}",
            path.display()
        )));
    }
    let (trace, shown) = (Arc::clone(&trace.trace), path.display().to_string());
    let report = job::run(py, None, move |_| write(exporter, &trace, &path))?;
    let report =
        report.map_err(|message| NativeError::new_err(format!("exporting to {shown}: {message}")))?;
    Ok((report.events, report.left_out + report.without_time))
}

fn write(
    exporter: &'static Exporter,
    trace: &Arc<tracesmith_trace::Trace>,
    path: &Path,
) -> Result<ExportReport, String> {
    let options = ExportOptions::default();
    let failed = |error: tracesmith_interop::Error| sentence(&error);
    match exporter.way {
        Way::Stream(export) => put_in_place(path, |path| {
            let mut file = File::create(path).map_err(|error| sentence(&error))?;
            let mut out = Out::new(&mut file);
            let report = export(trace, &options, &mut out).map_err(failed)?;
            out.finish().map_err(failed)?;
            Ok(report)
        }),
        Way::File(export) => put_in_place(path, |path| export(trace, &options, path).map_err(failed)),
        Way::Folder(export) => {
            fs::create_dir_all(path).map_err(|error| sentence(&error))?;
            export(trace, &options, path).map_err(failed)
        }
        Way::Tables(export) => {
            fs::create_dir_all(path).map_err(|error| sentence(&error))?;
            write_folder(exporter, export, trace, &options, path).map_err(failed)
        }
    }
}

/// Calls `write` with a temporary path in the same folder, and renames the file when it is complete. A pipe or a device
/// is written directly.
fn put_in_place<R>(path: &Path, write: impl FnOnce(&Path) -> Result<R, String>) -> Result<R, String> {
    static WRITTEN: AtomicU32 = AtomicU32::new(0);
    if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
        return write(path);
    }
    // Behind a symbolic link, if it leads to a file.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".partial-{}-{number}", std::process::id()));
    let partial = path.with_file_name(name);
    let written = write(&partial).and_then(|written| {
        fs::rename(&partial, &path).map_err(|error| sentence(&error))?;
        Ok(written)
    });
    // The first error matters more than a file that remains.
    written.inspect_err(|_| drop(fs::remove_file(&partial)))
}
