//! The figures of the SBT file: bytes a row, rows a second, bytes touched.
//!
//! `cargo bench -p tracesmith-bench --bench format`

#![allow(clippy::unwrap_used, reason = "a bench may stop on any error")]

use std::fs::File;
use std::hint::black_box;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{env, io};

use memmap2::Mmap;
use tracesmith_bench::figure::{median_time, millions_per_second, print, print_head};
use tracesmith_bench::workload::{Training, kernel_names};
use tracesmith_format::tables::Kernel;
use tracesmith_format::{
    ClockId, Columns, FileSource, Memory, Projection, Reader, Source, StringId, Table, Writable, Writer,
    WriterOptions,
};
use tracesmith_trace::Trace;

const CLOCK: ClockId = ClockId(1);

fn main() {
    let large = !env::args().any(|argument| argument == "--quick");
    sizes_and_speeds(1_000_000);
    if large {
        sizes_and_speeds(10_000_000);
    }
}

fn sizes_and_speeds(rows: usize) {
    print_head(&format!(
        "{} million rows, 200 names, 8 streams, one core unless said otherwise",
        rows / 1_000_000
    ));
    let kernels = file_of(rows, |job| job, Training::kernels);
    print(
        "kernels, bytes a row, all columns",
        bytes_per_row(&kernels, rows),
        "at most 10",
    );
    let late = file_of(rows, Training::with_latency, Training::kernels);
    print(
        "kernels with queued and submitted times, bytes a row",
        bytes_per_row(&late, rows),
        "",
    );
    drop(late);
    let calls = file_of(rows, |job| job, Training::api_calls);
    print(
        "API calls, bytes a row, all columns",
        bytes_per_row(&calls, rows),
        "at most 6",
    );
    drop(calls);
    write_speed(rows);

    let reader = Reader::open(Memory(&kernels[..])).unwrap();
    read_speed(
        &reader,
        rows,
        "all columns",
        &Projection::all(),
        "at least 15 M/s",
    );
    let three = Projection::of::<Kernel>(&["start", "end", "shape.name"]).unwrap();
    read_speed(&reader, rows, "start, end and name", &three, "at least 40 M/s");
    read_speed_by_row(&reader, rows);
    bytes_touched(&kernels);

    let path = env::temp_dir().join(format!("tracesmith-bench-{}.sbt", std::process::id()));
    std::fs::write(&path, &kernels).unwrap();
    drop(kernels);
    let from_file = Reader::open(FileSource::open(&path).unwrap()).unwrap();
    read_speed(
        &from_file,
        rows,
        "all columns, file by positioned reads",
        &Projection::all(),
        "",
    );
    let mapped = Reader::open(Memory(map(&path))).unwrap();
    read_speed(
        &mapped,
        rows,
        "all columns, file by mapping",
        &Projection::all(),
        "",
    );
    open_and_load(&path, rows);
    std::fs::remove_file(&path).unwrap();
}

#[allow(
    unsafe_code,
    reason = "mapping a file is unsafe; the bench shows what it would gain"
)]
fn map(path: &Path) -> Mmap {
    let file = File::open(path).unwrap();
    // SAFETY: the file is the bench's own, and nobody changes it while it is mapped.
    unsafe { Mmap::map(&file) }.unwrap()
}

/// The model: ready to query, and everything in memory.
fn open_and_load(path: &Path, rows: usize) {
    let of_ten_million = |asked: &'static str| if rows == 10_000_000 { asked } else { "" };
    let time = median_time(5, || {
        black_box(Trace::open(path).unwrap());
    });
    print(
        "open a trace",
        format!("{:.1} ms", time.as_secs_f64() * 1e3),
        of_ten_million("under 50 ms"),
    );
    let time = median_time(3, || {
        let trace = Trace::open(path).unwrap();
        trace.load();
        black_box(&trace);
    });
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    print(
        &format!("open and load a trace fully, {cores} cores"),
        format!("{:.2} s", time.as_secs_f64()),
        of_ten_million("under 0.8 s on 2 cores"),
    );
}

/// A finished file of this many rows of one table.
fn file_of<T: Writable>(
    rows: usize,
    job: impl FnOnce(Training) -> Training,
    mut next: impl FnMut(&mut Training, usize) -> Vec<T>,
) -> Vec<u8> {
    let (mut writer, names) = writer(Vec::new());
    let mut training = job(Training::new(42, &names));
    let mut left = rows;
    while left > 0 {
        let batch = next(&mut training, left.min(100_000));
        left -= batch.len();
        for row in batch {
            writer.push(CLOCK, &row).unwrap();
        }
    }
    writer.finish().unwrap()
}

fn writer<W: io::Write>(sink: W) -> (Writer<W>, Vec<StringId>) {
    let mut writer = Writer::new(sink, WriterOptions::default()).unwrap();
    let names = kernel_names()
        .iter()
        .map(|name| writer.string(name).unwrap())
        .collect();
    (writer, names)
}

fn bytes_per_row(file: &[u8], rows: usize) -> String {
    format!("{:.2}", file.len() as f64 / rows as f64)
}

/// From row structs to the bytes of finished blocks. The rows are more than a block holds and less than a ring: a collector
/// finds them in the cache, too.
fn write_speed(rows: usize) {
    let (_, names) = writer(io::sink());
    let batch = Training::new(42, &names).kernels(100_000);
    let time = median_time(3, || {
        let (mut writer, _) = writer(io::sink());
        for _ in 0..rows.div_ceil(batch.len()) {
            for row in &batch {
                writer.push(CLOCK, row).unwrap();
            }
        }
        writer.finish().unwrap();
    });
    let written = rows.div_ceil(batch.len()) * batch.len();
    print(
        "write kernels",
        format!("{:.1} M/s", millions_per_second(written, time)),
        "at least 8 M/s",
    );
}

fn read_speed<S: Source>(reader: &Reader<S>, rows: usize, what: &str, wanted: &Projection, asked: &str) {
    let time = median_time(5, || {
        let mut decoder = reader.decoder();
        for block in reader
            .blocks()
            .iter()
            .filter(|block| block.header.kind == Kernel::KIND)
        {
            black_box(decoder.read::<Kernel>(block, wanted).unwrap());
        }
    });
    print(
        &format!("read kernels, {what}"),
        format!("{:.1} M/s", millions_per_second(rows, time)),
        asked,
    );
}

/// Every row put together as a struct: what a converter does.
fn read_speed_by_row<S: Source>(reader: &Reader<S>, rows: usize) {
    let time = median_time(3, || {
        let mut decoder = reader.decoder();
        for block in reader
            .blocks()
            .iter()
            .filter(|block| block.header.kind == Kernel::KIND)
        {
            let columns = decoder.read::<Kernel>(block, &Projection::all()).unwrap();
            for row in 0..columns.len() {
                black_box(columns.row(row));
            }
        }
    });
    print(
        "read kernels, all columns, as row structs",
        format!("{:.1} M/s", millions_per_second(rows, time)),
        "at least 15 M/s",
    );
}

/// A source that counts what is read of it.
struct Counted<'a>(Memory<&'a [u8]>, AtomicU64);

impl Source for Counted<'_> {
    fn length(&self) -> u64 {
        self.0.length()
    }

    fn read<'a>(&'a self, offset: u64, length: usize, buffer: &'a mut Vec<u8>) -> io::Result<&'a [u8]> {
        self.1.fetch_add(length as u64, Ordering::Relaxed);
        self.0.read(offset, length, buffer)
    }
}

/// Opens the file and reads 1 % of its time range from the middle.
fn bytes_touched(file: &[u8]) {
    let reader = Reader::open(Counted(Memory(file), AtomicU64::new(0))).unwrap();
    let blocks: Vec<_> = reader
        .blocks()
        .iter()
        .filter(|block| block.header.kind == Kernel::KIND)
        .collect();
    let first = blocks.iter().map(|block| block.header.first_time).min().unwrap();
    let last = blocks.iter().map(|block| block.header.last_time).max().unwrap();
    let from = first + (last - first) / 2;
    let to = from + (last - first) / 100;
    let mut decoder = reader.decoder();
    let mut rows = 0;
    for block in reader.blocks().iter().filter(|block| {
        block.header.kind.name() == Some("strings")
            || (block.header.kind == Kernel::KIND && block.overlaps(from, to))
    }) {
        if block.header.kind == Kernel::KIND {
            let columns = decoder.read::<Kernel>(block, &Projection::all()).unwrap();
            rows += (0..columns.len())
                .filter(|row| (from..to).contains(&columns.start[*row].0))
                .count();
        } else {
            decoder.payload(block).unwrap();
        }
    }
    assert!(rows > 0);
    let touched = reader.source().1.load(Ordering::Relaxed);
    print(
        "read 1 % of the time range, share of the file's bytes",
        format!("{:.2} %", 100.0 * touched as f64 / file.len() as f64),
        "less than 5 % (of 10 million rows)",
    );
}
