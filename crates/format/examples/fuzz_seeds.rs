//! Writes seeds for the fuzzers: `cargo run -p tracesmith-format --example fuzz_seeds -- fuzz/corpus`.
//!
//! Whole traces, cut and damaged ones among them, the payload of every table, and a few of the smaller parts. Run
//! `cargo fuzz cmin` afterwards: it keeps what reaches code that no other seed reaches.

use std::error::Error;
use std::hash::{DefaultHasher, Hasher};
use std::io::Cursor;
use std::path::{Path, PathBuf};

use tracesmith_format::arbitrary::{Arbitrary, numbers};
use tracesmith_format::tables::*;
use tracesmith_format::{
    BLOCK_HEADER_BYTES, Blob, BlockEncoder, BlockHeader, BlockKind, ClockId, Columns, FILE_HEADER_BYTES,
    FileHeader, MAX_BLOCK_ROWS, Memory, Reader, Table, Timestamp, Writer, WriterOptions, for_each_table,
};

fn main() -> Result<(), Box<dyn Error>> {
    let corpus = PathBuf::from(std::env::args().nth(1).ok_or("name the corpus folder")?);
    let traces = [
        Writer::new(Vec::new(), WriterOptions::default())?.finish()?,
        plain_trace()?,
        arbitrary_trace(7, 1)?,
        small_trace()?,
        arbitrary_trace(3, 5)?,
        arbitrary_trace(5, 40)?,
        arbitrary_trace(11, 300)?,
    ];
    for trace in &traces {
        files(&corpus, trace)?;
        parts(&corpus, trace)?;
    }
    seed(&corpus, "mended_file", &boundless_index())?;
    small_parts(&corpus)
}

/// The traces whole, cut, with a damaged block and with bytes behind their end.
fn files(corpus: &Path, trace: &[u8]) -> Result<(), Box<dyn Error>> {
    // Longer inputs slow the fuzzer down without reaching more.
    if trace.len() > 30_000 {
        return Ok(());
    }
    seed(corpus, "file", trace)?;
    seed(corpus, "mended_file", trace)?;
    seed(corpus, "file", &trace[..trace.len() / 2])?;
    seed(corpus, "file", &trace[..trace.len() - 10])?;
    for at in [4, FILE_HEADER_BYTES + 9, trace.len() / 3, trace.len() - 70] {
        let mut damaged = trace.to_vec();
        damaged[at] ^= 0x40;
        seed(corpus, "file", &damaged)?;
    }
    seed(corpus, "file", &[trace, b"SBTB and more behind the end"].concat())
}

/// The headers of a trace, and the payload of each block as the `block` target wants it.
fn parts(corpus: &Path, trace: &[u8]) -> Result<(), Box<dyn Error>> {
    seed(corpus, "file_header", &trace[..FILE_HEADER_BYTES])?;
    let reader = Reader::open(Memory(trace))?;
    let mut decoder = reader.decoder();
    for block in reader.blocks() {
        let header = block.offset as usize;
        seed(
            corpus,
            "block_header",
            &trace[header..header + BLOCK_HEADER_BYTES],
        )?;
        let [a, b, c, _] = block.header.rows.to_le_bytes();
        let payload = decoder.payload(block)?;
        let table = table_number(block.header.kind).ok_or("a table without a number")?;
        seed(corpus, "block", &[&[table, a, b, c], payload].concat())?;
    }
    Ok(())
}

/// The number by which the `block` target knows a table.
fn table_number(kind: BlockKind) -> Option<u8> {
    macro_rules! kinds {
        ($($field:ident: $row:ident,)*) => {
            [Text::KIND, Frame::KIND, Stack::KIND, SchemaColumn::KIND, IndexEntry::KIND, $($row::KIND,)*]
        };
    }
    let number = for_each_table!(kinds).iter().position(|other| *other == kind)?;
    u8::try_from(number).ok()
}

fn small_parts(corpus: &Path) -> Result<(), Box<dyn Error>> {
    for bytes in [
        &[0][..],
        &[0x7f],
        &[0x80, 1],
        &[0xff; 10],
        &[0x80; 11],
        &[255, 255, 255, 255, 255, 255, 255, 255, 255, 1],
    ] {
        seed(corpus, "varint", bytes)?;
    }
    for bytes in [
        // Three numbers of eight bits; one of them an exception; a frame of nothing but zeros; one of full width.
        &[3, 0, 8, 0, 1, 2, 3][..],
        &[3, 0, 4, 1, 2, 0xff, 1, 0x21, 0x03],
        &[200, 0, 0, 0, 0, 0],
        &[1, 0, 64, 0, 1, 2, 3, 4, 5, 6, 7, 8],
        &[2, 0, 63, 1, 1, 1, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8],
    ] {
        seed(corpus, "packed", bytes)?;
    }
    for bytes in [
        &[2, 0, 1, 2][..],
        &[2, 0, 1, 2, 3, 4],
        &[1, 0, 1, 2, 3, 4, 5, 6, 7, 8],
        &[3, 0],
    ] {
        seed(corpus, "planes", bytes)?;
    }
    Ok(())
}

/// What a program would record: times that go on, names that repeat.
fn plain_trace() -> Result<Vec<u8>, Box<dyn Error>> {
    let options = WriterOptions {
        rows_per_block: 64,
        ..WriterOptions::default()
    };
    let mut writer = Writer::new(Cursor::new(Vec::new()), options)?;
    writer.metadata("command", "python train.py")?;
    let function = writer.string("main")?;
    let frame = writer.frame(Frame {
        function,
        line: 3,
        ..Frame::default()
    })?;
    let stack = writer.stack_of([frame, frame])?;
    for i in 0..200u64 {
        let name = writer.string(["gemm", "softmax", "layer_norm"][i as usize % 3])?;
        let start = 1_000_000 + i * 1_000 + i * i % 77;
        let kernel = Kernel {
            start: Timestamp(start),
            end: Timestamp(start + 400 + i % 9),
            stack,
            shape: KernelShape {
                name,
                grid_x: 1 + i as u32 % 4,
                ..KernelShape::default()
            },
            ..Kernel::default()
        };
        writer.push(ClockId(1), &kernel)?;
    }
    writer.define(&Module {
        code: Blob(b"\x7fELF".repeat(50)),
        ..Module::default()
    })?;
    Ok(writer.seal()?.into_inner())
}

/// A few bytes of index that describe a quarter of a million blocks, many times over. Readers once made room for all.
fn boundless_index() -> Vec<u8> {
    let mut file = FileHeader::unfinished([0; 16]).to_bytes().to_vec();
    let mut index = Index::default();
    let mut encoder = BlockEncoder::new(1);
    for piece in 0..20 {
        index.clear();
        for block in 0..u64::from(MAX_BLOCK_ROWS) {
            index.push(&IndexEntry {
                offset: 64 + 64 * (piece * u64::from(MAX_BLOCK_ROWS) + block),
                ..IndexEntry::default()
            });
        }
        index.encode(&mut encoder);
        let mut payload = Vec::new();
        encoder.finish(&mut payload);
        let header = header(BlockKind::INDEX, MAX_BLOCK_ROWS, payload.len() as u32, 0);
        file.extend_from_slice(&header.to_bytes());
        file.extend_from_slice(&payload);
    }
    let start = FILE_HEADER_BYTES as u64;
    file.extend_from_slice(&header(BlockKind::END, 0, 0, start).to_bytes());
    file
}

/// Without the checksum of the payload: the target that reads it sets it.
fn header(kind: BlockKind, rows: u32, payload_length: u32, base: u64) -> BlockHeader {
    BlockHeader {
        kind,
        codec: 0,
        payload_length,
        unpacked_length: 0,
        first_time: 0,
        last_time: 0,
        base,
        rows,
        clock: ClockId::NONE,
        sequence: 0,
        payload_crc: 0,
    }
}

/// Little more than an index.
fn small_trace() -> Result<Vec<u8>, Box<dyn Error>> {
    let mut writer = Writer::without_schema(Vec::new(), WriterOptions::default())?;
    for time in [5, 3, 900] {
        let counter = Counter {
            time: Timestamp(time),
            value: 0.5,
            ..Counter::default()
        };
        writer.push(ClockId(1), &counter)?;
    }
    Ok(writer.finish()?)
}

/// Rows of any content in every table, without a schema: shorter inputs are tried faster.
fn arbitrary_trace(seed: u64, rows: usize) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut next = numbers(seed);
    let mut writer = Writer::without_schema(Vec::new(), WriterOptions::default())?;
    macro_rules! push {
        ($($field:ident: $row:ident,)*) => {$(
            for _ in 0..rows {
                writer.push(ClockId(1), &$row::arbitrary(&mut next))?;
            }
        )*};
    }
    for_each_table!(push);
    Ok(writer.finish()?)
}

fn seed(corpus: &Path, target: &str, bytes: &[u8]) -> Result<(), Box<dyn Error>> {
    let folder = corpus.join(format!("format_{target}"));
    std::fs::create_dir_all(&folder)?;
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    let name = format!("seed-{:016x}", hasher.finish());
    Ok(std::fs::write(folder.join(name), bytes)?)
}
