//! Files of other tools, written from a trace.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pyo3::prelude::*;
use tracesmith_interop::export::{
    EXPORTERS, ExportOptions, ExportReport, Exporter, Out, Packing, Way, exporter, exporter_for, write_folder,
};

use crate::error::{NativeError, UsageError, sentence};
use crate::job;
use crate::replacement::replace;
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

/// Copies a file.
#[pyfunction]
pub(crate) fn copy(py: Python<'_>, source: PathBuf, path: PathBuf) -> PyResult<()> {
    let shown = path.display().to_string();
    let copied = job::run(py, None, move |_| {
        replace(&path, |path| {
            let copied =
                File::open(&source).and_then(|mut source| io::copy(&mut source, &mut File::create(path)?));
            copied.map(drop).map_err(|error| sentence(&error))
        })
    })?;
    copied.map_err(|message| NativeError::new_err(format!("exporting to {shown}: {message}")))
}

fn write(
    exporter: &'static Exporter,
    trace: &Arc<tracesmith_trace::Trace>,
    path: &Path,
) -> Result<ExportReport, String> {
    let options = ExportOptions::default();
    let failed = |error: tracesmith_interop::Error| sentence(&error);
    match exporter.way {
        Way::Stream(export) => replace(path, |path| {
            let mut file = File::create(path).map_err(|error| sentence(&error))?;
            let mut out = Out::new(&mut file);
            let report = export(trace, &options, &mut out).map_err(failed)?;
            out.finish().map_err(failed)?;
            Ok(report)
        }),
        Way::File(export) => replace(path, |path| export(trace, &options, path).map_err(failed)),
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
