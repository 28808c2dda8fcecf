//! Rows that are no table of a trace, such as the result of a SQL query, as a Parquet file.

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};
#[cfg(feature = "parquet")]
use parquet::arrow::ArrowWriter;
#[cfg(feature = "parquet")]
use parquet::basic::{Compression, ZstdLevel};
#[cfg(feature = "parquet")]
use parquet::errors::ParquetError;
#[cfg(feature = "parquet")]
use parquet::file::properties::WriterProperties;

#[cfg(feature = "parquet")]
use super::batch::refused;
use crate::error::Error;
use crate::export::Out;

#[cfg(feature = "parquet")]
const FORMAT: &str = "parquet";
/// Rows of a row group.
#[cfg(feature = "parquet")]
const GROUP_ROWS: usize = 1 << 20;

/// Writes rows as a Parquet file.
#[cfg(feature = "parquet")]
pub fn write_parquet(
    schema: &SchemaRef,
    batches: impl IntoIterator<Item = Result<RecordBatch, ArrowError>>,
    out: &mut Out<'_>,
) -> Result<(), Error> {
    let properties = WriterProperties::builder()
        .set_created_by(concat!("tracesmith ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .build();
    let mut writer = ArrowWriter::try_new(Vec::new(), schema.clone(), Some(properties)).map_err(failed)?;
    for batch in batches {
        let batch = batch.map_err(|error| refused(FORMAT, &error))?;
        writer.write(&batch).map_err(failed)?;
        out.put(&std::mem::take(writer.inner_mut()))?;
    }
    out.put(&writer.into_inner().map_err(failed)?)
}

/// Fails: this build cannot write Parquet.
#[cfg(not(feature = "parquet"))]
pub fn write_parquet(
    _: &SchemaRef,
    _: impl IntoIterator<Item = Result<RecordBatch, ArrowError>>,
    _: &mut Out<'_>,
) -> Result<(), Error> {
    can_write_parquet()
}

/// Fails if this build cannot write Parquet.
pub fn can_write_parquet() -> Result<(), Error> {
    match cfg!(feature = "parquet") {
        true => Ok(()),
        false => Err(Error::NotBuilt {
            format: "Parquet",
            feature: "parquet",
        }),
    }
}

#[cfg(feature = "parquet")]
fn failed(error: ParquetError) -> Error {
    refused(FORMAT, &error)
}

#[cfg(test)]
#[cfg(feature = "parquet")]
mod tests {
    use std::fs::File;
    use std::sync::Arc;

    use arrow_array::{ArrayRef, BinaryArray, Float64Array, Int64Array, StringArray};
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    use super::*;

    #[test]
    fn rows_are_read_back() {
        let columns: [(&str, ArrayRef); 4] = [
            ("integers", Arc::new(Int64Array::from(vec![None, Some(i64::MIN)]))),
            ("floats", Arc::new(Float64Array::from(vec![Some(0.5), None]))),
            ("texts", Arc::new(StringArray::from(vec![Some("x"), None]))),
            (
                "bytes",
                Arc::new(BinaryArray::from_opt_vec(vec![Some(b"\xff"), None])),
            ),
        ];
        let batch = RecordBatch::try_from_iter_with_nullable(
            columns.into_iter().map(|(name, column)| (name, column, true)),
        )
        .unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.parquet");
        let mut file = File::create(&path).unwrap();
        let mut out = Out::new(&mut file);
        write_parquet(&batch.schema(), [Ok(batch.clone())], &mut out).unwrap();
        out.finish().unwrap();
        let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
        let batches: Vec<RecordBatch> = reader.build().unwrap().map(Result::unwrap).collect();
        assert_eq!(batches, [batch]);
    }
}
