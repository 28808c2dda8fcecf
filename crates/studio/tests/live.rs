//! Traces that are being written while they are open.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tracesmith_format::tables::{Kernel, KernelShape, Place};
use tracesmith_format::{
    ClockId, CorrelationId, DeviceId, ProcessId, StreamId, Timestamp, Writer, WriterOptions,
};

use crate::support::{Running, start};

const LIMIT: Duration = Duration::from_secs(30);
/// When the first kernel of a recording starts.
const BEGIN: u64 = 1_000_000;

/// A collector: it holds the lock of the file that it writes.
struct Collector {
    writer: Writer<File>,
    path: PathBuf,
    kernels: u64,
}

impl Collector {
    fn start(path: &Path) -> Self {
        Self::start_as(path, [7; 16])
    }

    fn start_as(path: &Path, id: [u8; 16]) -> Self {
        let file = File::create(path).unwrap();
        file.try_lock().unwrap();
        let options = WriterOptions {
            id,
            ..WriterOptions::default()
        };
        let mut writer = Writer::new(file, options).unwrap();
        writer.flush().unwrap();
        Collector {
            writer,
            path: path.to_owned(),
            kernels: 0,
        }
    }

    /// Kernels of 500 ns, each 1 µs after the one before, on stream 7.
    fn record(&mut self, kernels: u64) {
        for _ in 0..kernels {
            self.kernel("loop", BEGIN + 1_000 * self.kernels, 500, 7);
            self.kernels += 1;
        }
        self.writer.flush().unwrap();
    }

    fn kernel(&mut self, name: &str, start: u64, nanos: u64, stream: u64) {
        let name = self.writer.string(name).unwrap();
        let kernel = Kernel {
            start: Timestamp(start),
            end: Timestamp(start + nanos),
            correlation: CorrelationId(start),
            place: Place {
                process: ProcessId(1),
                device: DeviceId(1),
                stream: StreamId(stream),
                ..Place::default()
            },
            shape: KernelShape {
                name,
                ..KernelShape::default()
            },
            ..Kernel::default()
        };
        self.writer.push(ClockId(1), &kernel).unwrap();
    }
}

fn until(server: &Running, wanted: impl Fn(&Value) -> bool) -> Value {
    let begin = Instant::now();
    loop {
        let layout = server.ready(0);
        if wanted(&layout) {
            return layout;
        }
        assert!(begin.elapsed() < LIMIT, "{layout}");
        thread::sleep(Duration::from_millis(20));
    }
}

fn slices(layout: &Value) -> u64 {
    let tracks = layout["tracks"].as_array().unwrap().iter();
    let streams = tracks.filter(|track| track["kind"] == "stream");
    streams.map(|track| track["slices"].as_u64().unwrap()).sum()
}

fn stream<'l>(layout: &'l Value, label: &str) -> &'l Value {
    let mut tracks = layout["tracks"].as_array().unwrap().iter();
    let found = tracks.find(|track| track["key"].as_str().unwrap().ends_with(label));
    found.unwrap_or_else(|| panic!("no {label}: {layout}"))
}

fn generation(layout: &Value) -> &str {
    layout["generation"].as_str().unwrap()
}

/// The starts of the slices of a row.
fn starts(server: &Running, generation: &str, row: &Value) -> Vec<f64> {
    let path = format!("t/0/{generation}/slices?rows={row}&from=0&to=9000000000000&limit=100000");
    let answer = server.get(&path);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let body = &answer.body;
    let count = u32::from_le_bytes(body[20..24].try_into().unwrap()) as usize;
    let numbers = body[32..32 + 8 * count].chunks(8);
    numbers
        .map(|bytes| f64::from_le_bytes(bytes.try_into().unwrap()))
        .collect()
}

#[test]
fn rows_grow_and_keep_their_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("live.sbt");
    let mut collector = Collector::start(&path);
    collector.record(10);
    let server = start(&[&path]);
    let first = until(&server, |layout| slices(layout) == 10);
    assert_eq!(first["live"]["state"], "recording");
    assert_eq!(first["health"]["good"], true, "{}", first["health"]);
    let row = &stream(&first, ".7")["first_row"];
    assert_eq!(starts(&server, generation(&first), row).len(), 10);

    collector.record(5);
    let second = until(&server, |layout| slices(layout) == 15);
    assert_ne!(generation(&second), generation(&first));
    assert_eq!(&stream(&second, ".7")["first_row"], row);
    assert_eq!(second["origin_ns"], first["origin_ns"]);
    assert!(second["bytes"].as_u64() > first["bytes"].as_u64());
    let changes = second["live"]["changes"].as_array().unwrap();
    let is_new = |change: &&Value| change["from_ns"].as_u64() == Some(10_000);
    assert!(changes.iter().any(|change| is_new(&change)), "{changes:?}");
    // Who knows the older one only gets what is there now.
    assert_eq!(starts(&server, generation(&first), row).len(), 15);
    let tiles = |generation: &str| {
        server.get(&format!(
            "t/0/{generation}/tiles?level=8&first=0&count=1&rows={row}"
        ))
    };
    let (old, new) = (tiles(generation(&first)), tiles(generation(&second)));
    assert_eq!(old.body, new.body);
    assert!(!old.header("cache-control").unwrap().contains("immutable"));
    assert!(new.header("cache-control").unwrap().contains("immutable"));

    // Another stream comes first in the order of rows, and one needs a lane more.
    collector.kernel("early", BEGIN + 2_000, 200, 3);
    collector.kernel("beside", BEGIN + 14_100, 1_000, 7);
    collector.record(1);
    let third = until(&server, |layout| slices(layout) == 18);
    let (new, grown) = (stream(&third, ".3"), stream(&third, ".7"));
    assert_eq!((&new["rows"], &grown["rows"]), (&1.into(), &2.into()));
    assert!(new["id"].as_u64() < grown["id"].as_u64(), "{third}");
    assert_ne!(&grown["first_row"], row);
    let lane = starts(&server, generation(&third), &grown["first_row"]);
    assert_eq!(
        starts(&server, generation(&first), row),
        lane,
        "an old number shows the same lane"
    );
    let shapes = server.json("t/0/shapes");
    assert_eq!(shapes[0][0], "loop");

    collector.record(1_000);
    let kernels = collector.kernels + 2;
    collector.writer.seal().unwrap();
    let last = until(&server, |layout| layout["live"].is_null());
    assert_eq!(slices(&last), kernels);
    assert_eq!(last["health"]["good"], true, "{}", last["health"]);
    assert_eq!(last["bytes"], fs::metadata(&path).unwrap().len());
    assert_eq!(starts(&server, generation(&first), row).len() as u64, kernels - 2);
    // From now on it is an ordinary file.
    OpenOptions::new()
        .append(true)
        .open(&path)
        .unwrap()
        .write_all(b"more")
        .unwrap();
    server.get("t/0/shapes").error(409);
}

#[test]
fn what_begins_before_the_origin_numbers_rows_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("live.sbt");
    let mut collector = Collector::start(&path);
    collector.record(10);
    let server = start(&[&path]);
    let first = until(&server, |layout| slices(layout) == 10);
    collector.kernel("earlier", BEGIN - 5_000, 100, 7);
    collector.record(1);
    let second = until(&server, |layout| slices(layout) == 12);
    assert_eq!(second["origin_ns"], (BEGIN - 5_000).to_string());
    let row = &stream(&second, ".7")["first_row"];
    assert_eq!(starts(&server, generation(&second), row)[..2], [0.0, 5_000.0]);
    let old = format!("t/0/{}/slices?rows={row}&from=0&to=1", generation(&first));
    server.get(&old).error(409);
}

#[test]
fn a_recording_that_was_killed_shows_what_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("live.sbt");
    let mut collector = Collector::start(&path);
    collector.record(10);
    let server = start(&[&path]);
    until(&server, |layout| layout["live"]["state"] == "recording");
    collector.record(10);
    // Half of a block, and then the lock is gone.
    OpenOptions::new()
        .append(true)
        .open(&path)
        .unwrap()
        .write_all(b"SBTB")
        .unwrap();
    drop(collector);
    let left = until(&server, |layout| {
        layout["live"]["state"] == "stopped" && slices(layout) == 20
    });
    let sentences = left["health"]["sentences"].to_string();
    assert!(sentences.contains("the end marker is missing"), "{sentences}");
    // The same for a file that nobody wrote when it was opened.
    let again = start(&[&path]);
    let left = again.ready(0);
    assert_eq!((&left["live"]["state"], slices(&left)), (&"stopped".into(), 20));
    assert_eq!(left["health"]["good"], false);
    assert!(again.json("t/0/analysis/kernels").is_object());
}

#[test]
fn a_file_without_locks_is_followed_when_it_grows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("live.sbt");
    let mut collector = Collector::start(&path);
    // As on a file system that knows no locks.
    collector.writer.sink_mut().unlock().unwrap();
    collector.record(10);
    let server = start(&[&path]);
    assert_eq!(server.ready(0)["live"]["state"], "stopped");
    collector.record(10);
    let grown = until(&server, |layout| slices(layout) == 20);
    assert_eq!(grown["live"]["state"], "recording");
    collector.writer.seal().unwrap();
    let last = until(&server, |layout| layout["live"].is_null());
    assert_eq!((slices(&last), &last["health"]["good"]), (20, &true.into()));
}

#[test]
fn another_recording_in_the_same_file_is_an_error() {
    type Change = fn(&Path);
    let changes: [(&str, Change); 4] = [
        ("replaced", |path| {
            let other = path.with_extension("other");
            Collector::start(&other).record(50);
            fs::rename(&other, path).unwrap();
        }),
        ("written again", |path| {
            let mut other = Collector::start_as(path, [8; 16]);
            other.record(100);
        }),
        ("cut", |path| {
            OpenOptions::new()
                .write(true)
                .open(path)
                .unwrap()
                .set_len(200)
                .unwrap();
        }),
        ("removed", |path| fs::remove_file(path).unwrap()),
    ];
    for (name, change) in changes {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("live.sbt");
        let mut collector = Collector::start(&path);
        collector.record(10);
        let server = start(&[&path]);
        let layout = until(&server, |layout| slices(layout) == 10);
        drop(collector);
        change(&path);
        let tiles = format!("t/0/{}/tiles?level=0&first=0&count=1&rows=0", generation(&layout));
        for path in [tiles.as_str(), "t/0/layout", "t/0/shapes"] {
            let error = server.get(path).error(409);
            assert_eq!(error, "live.sbt changed while it was open", "{name}");
        }
    }
}

#[test]
fn bytes_that_change_below_a_growing_end_are_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("live.sbt");
    let mut collector = Collector::start(&path);
    collector.record(100);
    let length = fs::metadata(&path).unwrap().len();
    let server = start(&[&path]);
    until(&server, |layout| slices(layout) == 100);
    // Within the block of the kernels, which is the last one.
    let mut file = OpenOptions::new().write(true).open(&path).unwrap();
    file.seek(SeekFrom::Start(length - 20)).unwrap();
    file.write_all(&[0xa5; 8]).unwrap();
    assert_eq!(collector.path, path);
    collector.record(100);
    let begin = Instant::now();
    while server.get("t/0/layout").status != 409 {
        assert!(begin.elapsed() < LIMIT);
        thread::sleep(Duration::from_millis(20));
    }
    // A page that is loaded sees what is left, and that something is missing.
    server.json("session");
    let again = server.ready(0);
    assert_eq!((slices(&again), &again["health"]["good"]), (100, &false.into()));
}

#[test]
fn a_page_that_reads_slowly_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("live.sbt");
    let mut collector = Collector::start(&path);
    collector.record(10);
    let server = start(&[&path]);
    until(&server, |layout| slices(layout) == 10);
    let mut stream = server.connect();
    let request = format!(
        "GET /api/v1/events HTTP/1.1\r\n{}\r\n{}\r\n\r\n",
        server.host(),
        server.key_line()
    );
    stream.write_all(request.as_bytes()).unwrap();
    // It does not read for many generations.
    for _ in 0..6 {
        collector.record(50);
        thread::sleep(Duration::from_millis(500));
    }
    collector.writer.seal().unwrap();
    let last = until(&server, |layout| layout["live"].is_null());
    assert_eq!(slices(&last), 310);
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let begin = Instant::now();
    let told = lines.find(|line| {
        let value: Option<Value> = serde_json::from_str(line).ok();
        let is_last = value.is_some_and(|value| value["generation"] == last["generation"]);
        is_last || begin.elapsed() > LIMIT
    });
    assert!(told.unwrap().contains(generation(&last)));
    let row = &self::stream(&last, ".7")["first_row"];
    assert_eq!(starts(&server, generation(&last), row).len(), 310);
}

#[test]
fn a_file_without_a_header_yet_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("live.sbt");
    let file = File::create(&path).unwrap();
    file.try_lock().unwrap();
    let server = start(&[&path]);
    assert_eq!(server.json("t/0/layout")["state"], "reading");
    thread::sleep(Duration::from_millis(300));
    let mut collector = Collector {
        writer: Writer::new(file, WriterOptions::default()).unwrap(),
        path,
        kernels: 0,
    };
    collector.record(3);
    until(&server, |layout| slices(layout) == 3);
    // One that nobody writes is no trace.
    let empty = folder.path().join("empty.sbt");
    File::create(&empty).unwrap();
    let server = start(&[&empty]);
    assert_eq!(server.ready(0)["state"], "failed");
}
