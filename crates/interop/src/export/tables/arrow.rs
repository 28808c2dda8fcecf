//! Tables as Arrow IPC: files that programs map into memory, or streams.

use crate::export::{Exporter, Way};

pub(in crate::export) const FILE: Exporter = Exporter {
    name: "arrow",
    aliases: &["feather"],
    title: "a folder of Arrow files, or one table with --table",
    extension: "arrow",
    way: Way::Tables(ipc::write_file),
};

pub(in crate::export) const STREAM: Exporter = Exporter {
    name: "arrow-stream",
    aliases: &[],
    title: "the same as Arrow streams",
    extension: "arrows",
    way: Way::Tables(ipc::write_stream),
};

#[cfg(feature = "parquet")]
mod ipc {
    use std::sync::Arc;

    use arrow_ipc::writer::{FileWriter, StreamWriter};
    use arrow_schema::ArrowError;

    use super::super::batch::{Form, refused};
    use super::super::dictionary::survey;
    use super::super::table;
    use crate::error::Error;
    use crate::export::{ExportOptions, ExportReport, Out};
    use tracesmith_trace::Trace;

    pub(super) fn write_file(
        trace: &Arc<Trace>,
        options: &ExportOptions,
        name: &str,
        out: &mut Out<'_>,
    ) -> Result<ExportReport, Error> {
        let format = super::FILE.name;
        let table = table(format, name)?;
        let form = Form::new(format, trace, &table, survey(trace, options, &table)?);
        let result = FileWriter::try_new(&mut *out, &form.schema)
            .map_err(|error| failed(format, error))
            .and_then(|mut writer| {
                let report = table.for_each_batch(trace, options, |scanned| {
                    let batch = form.batch(scanned)?;
                    writer.write(&batch).map_err(|error| failed(format, error))
                })?;
                writer.finish().map_err(|error| failed(format, error))?;
                Ok(report)
            });
        placed(out, result)
    }

    pub(super) fn write_stream(
        trace: &Arc<Trace>,
        options: &ExportOptions,
        name: &str,
        out: &mut Out<'_>,
    ) -> Result<ExportReport, Error> {
        let format = super::STREAM.name;
        let table = table(format, name)?;
        let form = Form::new(format, trace, &table, survey(trace, options, &table)?);
        let result = StreamWriter::try_new(&mut *out, &form.schema)
            .map_err(|error| failed(format, error))
            .and_then(|mut writer| {
                let report = table.for_each_batch(trace, options, |scanned| {
                    let batch = form.batch(scanned)?;
                    writer.write(&batch).map_err(|error| failed(format, error))
                })?;
                writer.finish().map_err(|error| failed(format, error))?;
                Ok(report)
            });
        placed(out, result)
    }

    /// Says how far a write came that failed within Arrow.
    fn placed(out: &Out<'_>, result: Result<ExportReport, Error>) -> Result<ExportReport, Error> {
        result.map_err(|error| match error {
            Error::Write { source, .. } => Error::Write {
                written: out.bytes(),
                source,
            },
            other => other,
        })
    }

    /// A full disk is the disk's, not the format's.
    fn failed(format: &'static str, error: ArrowError) -> Error {
        match error {
            ArrowError::IoError(_, source) => Error::Write { written: 0, source },
            other => refused(format, &other),
        }
    }
}

#[cfg(not(feature = "parquet"))]
mod ipc {
    use std::sync::Arc;

    use crate::error::Error;
    use crate::export::{ExportOptions, ExportReport, Out};
    use tracesmith_trace::Trace;

    pub(super) fn write_file(
        _: &Arc<Trace>,
        _: &ExportOptions,
        _: &str,
        _: &mut Out<'_>,
    ) -> Result<ExportReport, Error> {
        Err(Error::NotBuilt {
            format: "Arrow",
            feature: "parquet",
        })
    }

    pub(super) use write_file as write_stream;
}
