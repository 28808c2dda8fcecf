//! Tables as Parquet.

use crate::export::{Exporter, Way};

pub(in crate::export) const EXPORTER: Exporter = Exporter {
    name: "parquet",
    aliases: &[],
    title: "a folder of Parquet files, or one table with --table",
    extension: "parquet",
    way: Way::Tables(file::write),
};

#[cfg(feature = "parquet")]
mod file {
    use std::sync::Arc;

    use parquet::arrow::ArrowWriter;
    use parquet::basic::{Compression, Encoding, ZstdLevel};
    use parquet::errors::ParquetError;
    use parquet::file::metadata::KeyValue;
    use parquet::file::properties::{EnabledStatistics, WriterProperties};
    use parquet::schema::types::ColumnPath;
    use tracesmith_format::Meaning;

    use super::super::batch::{Form, facts, refused};
    use super::super::dictionary::is_text;
    use super::super::{TableFile, table};
    use super::EXPORTER;
    use crate::error::Error;
    use crate::export::{ExportOptions, ExportReport, Out};
    use tracesmith_trace::Trace;

    /// Bytes of texts that Arrow can count.
    const MAX_BYTES: usize = i32::MAX as usize;

    /// Rows that make a row group: small blocks are gathered, since every group costs some kilobytes of footer.
    const GROUP_ROWS: usize = 1 << 16;

    pub(super) fn write(
        trace: &Arc<Trace>,
        options: &ExportOptions,
        name: &str,
        out: &mut Out<'_>,
    ) -> Result<ExportReport, Error> {
        let table = table(EXPORTER.name, name)?;
        // Parquet numbers the texts of each column itself.
        let form = Form::new(EXPORTER.name, trace, &table, Vec::new());
        // The writer wants a sink that can move between threads: it fills a vector, which is emptied as it goes.
        let mut writer =
            ArrowWriter::try_new(Vec::new(), form.schema.clone(), Some(properties(trace, &table)))
                .map_err(failed)?;
        let report = table.for_each_batch(trace, options, |scanned| {
            writer.write(&form.batch(scanned)?).map_err(failed)?;
            if writer.in_progress_rows() >= GROUP_ROWS {
                writer.flush().map_err(failed)?;
                out.put(&std::mem::take(writer.inner_mut()))?;
            }
            Ok(())
        })?;
        out.put(&writer.into_inner().map_err(failed)?)?;
        Ok(report)
    }

    /// Times and correlations grow from row to row, and are smallest as differences. Everything else repeats itself.
    fn properties(trace: &Trace, table: &TableFile) -> WriterProperties {
        let facts = facts(trace, table)
            .into_iter()
            .map(|(key, value)| KeyValue::new(key, value))
            .collect();
        let mut properties = WriterProperties::builder()
            .set_created_by(concat!("tracesmith ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_max_row_group_row_count(Some(GROUP_ROWS * 2))
            .set_key_value_metadata(Some(facts));
        for column in &table.columns {
            let path = ColumnPath::from(column.name.as_str());
            if is_text(column) {
                // Beyond a limit texts would be written out row by row, however long they are.
                properties = properties.set_column_dictionary_page_size_limit(path, MAX_BYTES);
            } else if matches!(column.spec.meaning, Meaning::Time | Meaning::Correlation) {
                properties = properties
                    .set_column_dictionary_enabled(path.clone(), false)
                    .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
            }
        }
        properties.build()
    }

    fn failed(error: ParquetError) -> Error {
        refused(EXPORTER.name, &error)
    }
}

#[cfg(not(feature = "parquet"))]
mod file {
    use std::sync::Arc;

    use crate::error::Error;
    use crate::export::{ExportOptions, ExportReport, Out};
    use tracesmith_trace::Trace;

    pub(super) fn write(
        _: &Arc<Trace>,
        _: &ExportOptions,
        _: &str,
        _: &mut Out<'_>,
    ) -> Result<ExportReport, Error> {
        Err(Error::NotBuilt {
            format: "Parquet",
            feature: "parquet",
        })
    }
}
