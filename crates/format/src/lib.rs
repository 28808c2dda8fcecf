//! What an `.sbt` trace file is: header, blocks, columns and index.
//!
//! This crate knows no GPU. It turns typed rows into a compact stream of checksummed blocks and reads whatever is left of
//! one. `docs/reference/format.md` describes the bytes for readers in other languages.
//!
//! ```
//! use tracesmith_format::{ClockId, Memory, Projection, Reader, Table, Timestamp, Writer, WriterOptions};
//! use tracesmith_format::tables::{Kernel, KernelShape};
//!
//! let mut writer = Writer::new(Vec::new(), WriterOptions::default())?;
//! let name = writer.string("saxpy")?;
//! writer.push(ClockId(1), &Kernel {
//!     start: Timestamp(1_000),
//!     end: Timestamp(1_500),
//!     shape: KernelShape { name, grid_x: 64, block_x: 256, ..KernelShape::default() },
//!     ..Kernel::default()
//! })?;
//! let file = writer.finish()?;
//!
//! let reader = Reader::open(Memory(file))?;
//! let block = reader.blocks().iter().find(|block| block.header.kind == Kernel::KIND).unwrap();
//! let kernels = reader.decoder().read::<Kernel>(block, &Projection::all())?;
//! assert_eq!(kernels.end, [Timestamp(1_500)]);
//! assert_eq!(kernels.shape.get(0).grid_x, 64);
//! # Ok::<(), tracesmith_format::Error>(())
//! ```

#[doc(hidden)]
pub mod arbitrary;
mod blob;
mod block;
mod buffer;
mod codec;
mod column_value;
mod dictionary;
mod error;
#[doc(hidden)]
pub mod fuzz;
mod header;
mod ids;
mod reader;
#[cfg(test)]
mod round_trip;
mod scan;
pub mod schema;
mod shared;
mod source;
mod table;
pub mod tables;
mod varint;
mod writer;

pub use blob::{Blob, Blobs};
pub use block::{BLOCK_HEADER_BYTES, BlockHeader, BlockKind, MAX_BLOCK_BYTES, MAX_BLOCK_ROWS};
pub use buffer::{ColumnBuffer, ColumnValues};
pub use codec::{BlockDecoder, BlockEncoder, Transform};
pub use column_value::{ColumnType, ColumnValue, Meaning, Value};
pub use error::{Damage, Error, Problem};
pub use header::{FILE_HEADER_BYTES, FileHeader, MAGIC, MAJOR_VERSION, MINOR_VERSION};
pub use ids::*;
pub use reader::{Block, BlockLookup, Decoder, Reader};
pub use shared::{Group, Shared};
pub use source::{FileSource, Memory, Source};
pub use table::{ColumnSpec, ColumnView, Columns, Field, IdMap, Projection, Table};
pub use writer::{Writable, Writer, WriterOptions};
