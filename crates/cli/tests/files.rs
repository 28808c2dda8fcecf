//! Commands that write traces, and traces that are damaged or none at all.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use crate::support;

use std::fs;
use std::io::Write;
use std::path::Path;

use insta::assert_snapshot;
use serde_json::Value;
use support::{FIXTURE, command, root, run, tracesmith, tracesmith_with_input};
use tempfile::TempDir;
use tracesmith_format::tables::{ApiCall, Clock, ClockKind, ClockPair, Host, Kernel, Place, Process};
use tracesmith_format::{
    ClockId, DeviceId, FileHeader, HostId, Memory, ProcessId, Reader, StreamId, Timestamp, Writer,
    WriterOptions,
};

fn fixture() -> Vec<u8> {
    fs::read(root().join(FIXTURE)).unwrap()
}

fn path(dir: &TempDir, name: &str) -> String {
    dir.path().join(name).to_str().unwrap().to_owned()
}

/// Rows without what differs between a trace and one made of it: the trace's own ids.
fn rows(file: &str, args: &[&str]) -> Vec<Value> {
    let all_args = [&["view", file, "--format", "json"], args].concat();
    let mut rows: Vec<Value> = serde_json::from_str(&tracesmith(all_args).ok()).unwrap();
    for row in &mut rows {
        let row = row.as_object_mut().unwrap();
        row.remove("process");
        for id in [
            "stack",
            "place.process",
            "place.device",
            "caller.process",
            "track.device",
            "shape.process",
        ] {
            row["fields"].as_object_mut().unwrap().remove(id);
        }
    }
    rows
}

#[test]
fn a_cut_holds_what_a_view_of_the_range_shows() {
    let dir = TempDir::new().unwrap();
    let out = path(&dir, "part.sbt");
    let range = ["--from", "2.5ms", "--to", "4ms"];
    let report = tracesmith(["cut", FIXTURE].iter().chain(&range).chain(&["-o", &out]));
    assert_snapshot!("cut", report.transcript());
    let (mut expected, mut found) = (rows(FIXTURE, &range), rows(&out, &[]));
    assert!(expected.len() > 50);
    // Events that start together may come in any order.
    expected.sort_by_key(Value::to_string);
    found.sort_by_key(Value::to_string);
    assert!(found == expected);
    let info = tracesmith(["info", &out, "--verify", "--format", "json"]).ok();
    let info: Value = serde_json::from_str(&info).unwrap();
    assert_eq!(info["metadata"]["command"], "python train.py --steps 3");
    assert_eq!(info["devices"].as_array().unwrap().len(), 2);
    let strings = |info: &Value| {
        info["tables"]
            .as_array()
            .unwrap()
            .iter()
            .find(|table| table["name"] == "strings")
            .unwrap()["rows"]
            .as_u64()
    };
    // Written anew too: the fixture is of a version with fewer tables, and so with fewer names of columns.
    let all = path(&dir, "all.sbt");
    tracesmith(["cut", FIXTURE, "--from", "0%", "--to", "100%", "-o", &all]).ok();
    let whole: Value = serde_json::from_str(&tracesmith(["info", &all, "--format", "json"]).ok()).unwrap();
    assert!(
        strings(&info) < strings(&whole),
        "only the strings in use are kept"
    );
}

#[test]
fn stacks_survive_a_cut() {
    let dir = TempDir::new().unwrap();
    let out = path(&dir, "part.sbt");
    tracesmith(["cut", FIXTURE, "--from", "50%", "-o", &out]).ok();
    let stack_of_a_kernel = |file: &Path| {
        let trace = tracesmith_trace::Trace::open(file).unwrap();
        let query = tracesmith_trace::Query {
            kinds: Some(vec![tracesmith_trace::EventKind::Kernel]),
            from: Some(tracesmith_format::Timestamp(5_004_500_000)),
            ..Default::default()
        };
        let event = trace.events(&query).next().unwrap();
        let stack = trace.stack(event.stack);
        stack
            .frames
            .iter()
            .map(|frame| match &frame.symbol {
                Some(symbol) => format!("{} {}", trace.string(symbol.function), symbol.line),
                None => format!(
                    "{} {} {:x}",
                    trace.string(frame.frame.function),
                    frame.frame.line,
                    frame.frame.address.0
                ),
            })
            .collect::<Vec<_>>()
    };
    let original = stack_of_a_kernel(&root().join(FIXTURE));
    assert_eq!(
        original,
        [" 0 12340020", "train_step 14 0", "main 31 0", "<module> 40 0"]
    );
    assert_eq!(stack_of_a_kernel(Path::new(&out)), original);
}

#[test]
fn a_merge_of_two_halves_is_the_whole() {
    let dir = TempDir::new().unwrap();
    let (first, second, whole) = (path(&dir, "a.sbt"), path(&dir, "b.sbt"), path(&dir, "all.sbt"));
    // At a moment when nothing runs, so that no event is in both halves.
    tracesmith(["cut", FIXTURE, "--to", "2.39ms", "-o", &first]).ok();
    tracesmith(["cut", FIXTURE, "--from", "2.39ms", "-o", &second]).ok();
    let report = tracesmith(["merge", &second, &first, "-o", &whole]);
    assert_snapshot!("merge", report.transcript());
    let (mut merged, mut original) = (rows(&whole, &[]), rows(FIXTURE, &[]));
    merged.sort_by_key(Value::to_string);
    original.sort_by_key(Value::to_string);
    assert!(merged == original);
    let info: Value = serde_json::from_str(&tracesmith(["info", &whole, "--format", "json"]).ok()).unwrap();
    for (list, count) in [("hosts", 1), ("devices", 2), ("processes", 2)] {
        assert_eq!(
            info[list].as_array().unwrap().len(),
            count,
            "the same {list} are one"
        );
    }
}

#[test]
fn a_cut_file_is_repaired_and_says_what_is_lost() {
    let dir = TempDir::new().unwrap();
    let (broken, saved) = (path(&dir, "broken.sbt"), path(&dir, "saved.sbt"));
    let bytes = fixture();
    let mut damaged = bytes[..bytes.len() * 3 / 4].to_vec();
    let kernels = Reader::open(Memory(&bytes[..])).unwrap();
    let block = kernels
        .blocks()
        .iter()
        .find(|block| block.header.kind.name() == Some("kernels"))
        .unwrap();
    damaged[block.offset as usize + 70] ^= 1;
    fs::write(&broken, &damaged).unwrap();

    let info = tracesmith(["info", &broken, "--verify"]);
    assert_eq!(info.code, Some(0));
    assert_snapshot!("broken_health", info.stdout.split_once("\nhealth ").unwrap().1);
    let repaired = tracesmith(["repair", &broken, "-o", &saved]);
    assert_snapshot!("repair", repaired.transcript());

    let reader = Reader::open(Memory(fs::read(&saved).unwrap())).unwrap();
    assert_eq!(reader.damage(), []);
    let info = tracesmith(["info", &saved, "--verify"]).ok();
    assert_snapshot!("repaired_health", info.split_once("\nhealth ").unwrap().1);
    // What both can read, they read alike; the reader of the broken one was warned.
    let of_broken = tracesmith(["view", &broken, "--format", "csv"]);
    assert!(of_broken.stderr.contains("warning: block"));
    assert_eq!(
        tracesmith(["view", &saved, "--format", "csv"]).ok(),
        of_broken.stdout
    );
}

#[test]
fn repairing_a_whole_file_loses_nothing() {
    let dir = TempDir::new().unwrap();
    let saved = path(&dir, "saved.sbt");
    let report = tracesmith(["repair", FIXTURE, "-o", &saved, "--format", "json"]).ok();
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(
        (report["rows_kept"].as_u64(), &report["damage"]),
        (Some(355), &Value::Array(vec![]))
    );
    assert_eq!(
        tracesmith(["view", &saved, "--format", "json"]).ok(),
        tracesmith(["view", FIXTURE, "--format", "json"]).ok()
    );
}

#[test]
fn traces_flow_through_pipes() {
    let binary = env!("CARGO_BIN_EXE_tracesmith");
    let script = format!("'{binary}' cut {FIXTURE} --to 3ms -o - | '{binary}' view - --format json");
    let piped = run(std::process::Command::new("bash")
        .args(["-o", "pipefail", "-c", &script])
        .current_dir(root()));
    assert_eq!(piped.stderr, "");
    let piped: Vec<Value> = serde_json::from_str(&piped.ok()).unwrap();
    assert_eq!(piped.len(), rows(FIXTURE, &["--to", "3ms"]).len());
}

#[test]
fn files_are_not_destroyed_by_accident() {
    let dir = TempDir::new().unwrap();
    let copy = path(&dir, "copy.sbt");
    fs::write(&copy, fixture()).unwrap();
    let refused = tracesmith(["cut", &copy, "-o", &copy]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("is also the input"), "{}", refused.stderr);
    let other = path(&dir, "other.sbt");
    fs::write(&other, b"precious").unwrap();
    let refused = tracesmith(["cut", &copy, "-o", &other]);
    assert_eq!(refused.code, Some(2));
    assert!(
        refused.stderr.contains("exists; replace it with --force"),
        "{}",
        refused.stderr
    );
    assert_eq!(fs::read(&other).unwrap(), b"precious");
    tracesmith(["cut", &copy, "-o", &other, "--force"]).ok();
    assert_ne!(fs::read(&other).unwrap(), b"precious");
    let left: Vec<_> = fs::read_dir(dir.path())
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    assert_eq!(left.len(), 2, "nothing else is left behind: {left:?}");
}

#[test]
fn nothing_is_left_of_a_command_that_was_interrupted() {
    let dir = TempDir::new().unwrap();
    let out = path(&dir, "out.sbt");
    // The trace never comes to an end: the command waits for the rest of it.
    let mut child = command()
        .args(["repair", "-", "-o", &out])
        .stdin(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.as_mut().unwrap().write_all(&fixture()).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(100));
    let interrupted = std::process::Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(interrupted.success());
    assert_eq!(child.wait().unwrap().code(), None, "it ends by the signal");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    // A command that fails while it writes leaves nothing, either.
    let script = format!(
        "ulimit -f 1; '{}' repair {FIXTURE} -o {out}",
        env!("CARGO_BIN_EXE_tracesmith")
    );
    let failed = run(std::process::Command::new("bash")
        .args(["-c", &script])
        .current_dir(root()));
    assert_ne!(failed.code, Some(0));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_full_disk_is_an_error() {
    let full = tracesmith(["cut", FIXTURE, "-o", "/dev/full"]);
    assert_eq!(full.code, Some(2));
    assert_snapshot!("full_disk", full.stderr);
    let full = run(std::process::Command::new("sh")
        .args([
            "-c",
            &format!(
                "'{}' view {FIXTURE} > /dev/full",
                env!("CARGO_BIN_EXE_tracesmith")
            ),
        ])
        .current_dir(root()));
    assert_eq!(full.code, Some(2));
    assert!(full.stderr.contains("No space left on device"), "{}", full.stderr);
}

/// Bad input: a name for the message, and the bytes.
fn bad_files() -> Vec<(&'static str, Vec<u8>)> {
    let newer = FileHeader {
        major: 7,
        minor: 2,
        ..FileHeader::unfinished([0; 16])
    };
    let mut cut_header = fixture();
    cut_header.truncate(40);
    vec![
        ("empty", Vec::new()),
        ("json", b"{\"hello\": [{\"ph\": 1}]}".to_vec()),
        ("zeros", vec![0; 100_000]),
        ("newer", newer.to_bytes().to_vec()),
        ("cut_header", cut_header),
    ]
}

#[test]
fn bad_input_gives_one_clear_line_and_exit_code_2() {
    let dir = TempDir::new().unwrap();
    let mut transcript = String::new();
    let mut try_on = |name: &str, file: &str| {
        for args in [
            vec!["info", file],
            vec!["view", file],
            vec!["repair", file, "-o", "/nonexistent/x.sbt"],
        ] {
            let failed = tracesmith(&args);
            assert_eq!((failed.code, failed.stdout.as_str()), (Some(2), ""), "{args:?}");
            assert_eq!(
                failed
                    .stderr
                    .lines()
                    .filter(|line| line.starts_with("error: "))
                    .count(),
                1
            );
            if args[0] == "info" {
                let message = failed.stderr.replace(dir.path().to_str().unwrap(), "DIR");
                transcript += &format!("# {name}\n{message}\n");
            }
        }
    };
    for (name, bytes) in bad_files() {
        let file = path(&dir, &format!("{name}.sbt"));
        fs::write(&file, bytes).unwrap();
        try_on(name, &file);
    }
    try_on("directory", dir.path().to_str().unwrap());
    try_on("missing", &path(&dir, "missing.sbt"));
    assert_snapshot!("bad_input", transcript);
    let failed = tracesmith_with_input(["info", "-"], b"nonsense");
    assert_eq!(
        (failed.code, failed.stderr.as_str()),
        (
            Some(2),
            format!(
                "error: reading trace from standard input: not a trace: this looks like text\n\nhint: {}\n",
                formats()
            )
            .as_str()
        )
    );
}

/// What the hint for an unknown file says.
fn formats() -> String {
    let names: Vec<&str> = tracesmith_interop::import::IMPORTERS
        .iter()
        .map(|importer| importer.name)
        .collect();
    format!(
        "tracesmith reads its own .sbt files and {}; 'tracesmith import --help' describes these formats",
        names.join(", ")
    )
}

/// Issue 26: a file of an unknown kind was only called no SBT trace.
#[test]
fn a_file_of_another_kind_is_called_what_it_looks_like() {
    let dir = TempDir::new().unwrap();
    for (name, bytes, what) in [
        (
            "program",
            b"\x7fELF\x02\x01\x01\0".as_slice(),
            "an ELF program or library",
        ),
        (
            "config.json",
            b"{\"model\": \"resnet\"}",
            "JSON without \"traceEvents\" (its first key is \"model\")",
        ),
        ("page.html", b"<!DOCTYPE html><title>x</title>", "an HTML page"),
    ] {
        let file = path(&dir, name);
        fs::write(&file, bytes).unwrap();
        for args in [
            vec!["analyze", file.as_str()],
            vec!["import", file.as_str(), "-o", "/nonexistent/x.sbt"],
        ] {
            let failed = tracesmith(&args);
            assert_eq!(failed.code, Some(2), "{args:?}");
            assert!(
                failed
                    .stderr
                    .contains(&format!("not a trace: this looks like {what}\n")),
                "{args:?}: {}",
                failed.stderr
            );
            assert!(failed.stderr.contains(&formats()), "{}", failed.stderr);
        }
    }
}

/// Few bytes that claim to be many: each block is sound by itself.
fn bomb() -> Vec<u8> {
    let mut seed = Writer::new(
        Vec::new(),
        WriterOptions {
            rows_per_block: 1 << 17,
            ..Default::default()
        },
    )
    .unwrap();
    seed.string(&"A".repeat(8 << 20)).unwrap();
    for id in 1..100_000 {
        seed.define(&Process {
            id: ProcessId(id),
            ..Default::default()
        })
        .unwrap();
        seed.push(
            ClockId(1),
            &Kernel {
                start: Timestamp(5),
                end: Timestamp(6),
                ..Default::default()
            },
        )
        .unwrap();
    }
    let seed = Reader::open(Memory(seed.finish().unwrap())).unwrap();
    let mut bomb = Writer::without_schema(Vec::new(), WriterOptions::default()).unwrap();
    let mut decoder = seed.decoder();
    for block in seed.blocks() {
        let payload = decoder.payload(block).unwrap().to_vec();
        let copies = if block.header.payload_length < 10_000 {
            300
        } else {
            1
        };
        for copy in 0..copies {
            let mut block = *block;
            block.header.base += copy * u64::from(block.header.rows);
            bomb.copy_block(&block, &payload).unwrap();
        }
    }
    bomb.finish().unwrap()
}

#[test]
fn memory_is_bounded_by_the_files_size() {
    let dir = TempDir::new().unwrap();
    let file = path(&dir, "bomb.sbt");
    let bytes = bomb();
    assert!(bytes.len() < 1 << 21, "{} bytes", bytes.len());
    fs::write(&file, bytes).unwrap();
    // 2.4 GB of strings and as much of processes, if one believed it; what is allowed is 64 MiB and 64 times the file.
    for args in [
        format!("info {file}"),
        format!("view {file} --limit 3"),
        format!("repair {file} -o {file}.saved"),
    ] {
        let script = format!("ulimit -v 1000000; '{}' {args}", env!("CARGO_BIN_EXE_tracesmith"));
        let limited = run(std::process::Command::new("bash")
            .args(["-c", &script])
            .env("RAYON_NUM_THREADS", "2"));
        assert_eq!(limited.code, Some(0), "{args}: {}", limited.stderr);
        assert!(
            args.starts_with("repair") || limited.transcript().contains("more than the"),
            "{args}: {limited:?}"
        );
    }
}

/// A kernel of a host whose clock is paired with UTC, if its error is known.
fn of_host(name: &str, error: Option<u64>) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), WriterOptions::default()).unwrap();
    let name = writer.string(name).unwrap();
    let host = HostId(1);
    writer
        .define(&Host {
            id: host,
            name,
            ..Default::default()
        })
        .unwrap();
    for (id, kind, host) in [(1, ClockKind::MONOTONIC, host), (2, ClockKind::UTC, HostId::NONE)] {
        let id = ClockId(id);
        writer
            .define(&Clock {
                id,
                kind,
                host,
                ..Default::default()
            })
            .unwrap();
    }
    if let Some(uncertainty) = error {
        let pair = ClockPair {
            first: ClockId(1),
            second: ClockId(2),
            first_time: Timestamp(1_000),
            second_time: Timestamp(9_000),
            uncertainty,
        };
        writer.define(&pair).unwrap();
    }
    let kernel = Kernel {
        start: Timestamp(1_000),
        end: Timestamp(1_100),
        ..Default::default()
    };
    writer.push(ClockId(1), &kernel).unwrap();
    writer.finish().unwrap()
}

#[test]
fn a_merge_says_how_well_hosts_compare() {
    let dir = TempDir::new().unwrap();
    let merged = |error: Option<u64>| {
        for (name, error) in [("a", Some(1_000)), ("b", error)] {
            fs::write(path(&dir, name), of_host(name, error)).unwrap();
        }
        let out = path(&dir, "out");
        let files = [path(&dir, "a"), path(&dir, "b")];
        let args = ["merge", &files[0], &files[1], "-o", &out, "--force"];
        let answer = tracesmith(args);
        let json = tracesmith(args.iter().chain(&["--format", "json"])).ok();
        let json: Value = serde_json::from_str(&json).unwrap();
        (answer.stderr, json["hosts"][0].clone())
    };
    let (words, host) = merged(Some(2_000));
    assert!(words.contains("host b are accurate to 3.00 µs"), "{words}");
    assert_eq!(host, serde_json::json!({"name": "b", "uncertainty_ns": 3_000}));
    let (words, _) = merged(Some(16_000_000_000));
    assert!(words.contains("is not synchronized"), "{words}");
    let (words, host) = merged(None);
    assert!(words.contains("no clock pairs link them"), "{words}");
    assert_eq!(host["uncertainty_ns"], Value::Null);
}

/// A file of constant columns, which take next to nothing: many copies of one block.
fn row_bomb(copies: u64) -> Vec<u8> {
    let options = WriterOptions {
        rows_per_block: 1 << 17,
        ..Default::default()
    };
    let mut seed = Writer::new(Vec::new(), options).unwrap();
    for _ in 0..1 << 17 {
        let call = ApiCall {
            start: Timestamp(5),
            end: Timestamp(6),
            ..Default::default()
        };
        seed.push(ClockId(1), &call).unwrap();
    }
    let seed = Reader::open(Memory(seed.finish().unwrap())).unwrap();
    let mut bomb = Writer::without_schema(Vec::new(), WriterOptions::default()).unwrap();
    let mut decoder = seed.decoder();
    for block in seed.blocks() {
        let payload = decoder.payload(block).unwrap().to_vec();
        for copy in 0..copies {
            let mut block = *block;
            block.header.base += copy * u64::from(block.header.rows);
            bomb.copy_block(&block, &payload).unwrap();
        }
    }
    bomb.finish().unwrap()
}

fn limited(args: &str, kilobytes: u64) -> support::Run {
    let script = format!(
        "ulimit -v {kilobytes}; '{}' {args}",
        env!("CARGO_BIN_EXE_tracesmith")
    );
    run(std::process::Command::new("bash")
        .args(["-c", &script])
        .env("RAYON_NUM_THREADS", "2"))
}

/// Issue 26: 3 MB of constant columns took 117 GB.
#[test]
fn rows_of_constant_columns_are_bounded_by_the_files_size() {
    let dir = TempDir::new().unwrap();
    let file = path(&dir, "rows.sbt");
    let bytes = row_bomb(1_000);
    assert!(bytes.len() < 4 << 20, "{} bytes", bytes.len());
    fs::write(&file, bytes).unwrap();
    for args in [format!("analyze {file}"), format!("states {file}")] {
        let refused = limited(&args, 1_500_000);
        assert_eq!(refused.code, Some(2), "{args}: {}", refused.stderr);
        assert!(
            refused
                .stderr
                .contains("131072000 ops, calls, waits and ranges would take"),
            "{args}: {}",
            refused.stderr
        );
    }
    // Fewer rows, which a trace of this size might have, are looked at.
    fs::write(&file, row_bomb(30)).unwrap();
    let answered = limited(&format!("analyze {file}"), 1_500_000);
    assert_eq!(answered.code, Some(0), "{}", answered.stderr);
}

/// Issue 26: a timeline had all cells for every stream, however many there are.
#[test]
fn a_timeline_of_very_many_streams_is_bounded() {
    let dir = TempDir::new().unwrap();
    let file = path(&dir, "streams.sbt");
    let mut writer = Writer::new(Vec::new(), WriterOptions::default()).unwrap();
    for stream in 0..200_000 {
        let kernel = Kernel {
            start: Timestamp(5 + stream),
            end: Timestamp(6 + stream),
            place: Place {
                device: DeviceId(1),
                stream: StreamId(stream),
                ..Default::default()
            },
            ..Default::default()
        };
        writer.push(ClockId(1), &kernel).unwrap();
    }
    fs::write(&file, writer.finish().unwrap()).unwrap();
    let args = format!("view {file} --timeline --width 2000 --format json --limit 3");
    let answered = limited(&args, 1_500_000);
    assert_eq!(answered.code, Some(0), "{}", answered.stderr);
    let answer: Value = serde_json::from_str(&answered.stdout).unwrap();
    assert_eq!(answer["has_more_rows"], true);
    assert!(answer["cells"].as_u64().unwrap() <= 64, "{}", answer["cells"]);
}

#[test]
fn an_export_into_a_pipe_that_closes_is_no_error() {
    for line in [
        "export -f jsonl -o - fixtures/demo-h200.sbt",
        "export -f kineto -o - fixtures/demo-h200.sbt",
        "export -f sqlite -o - fixtures/demo-h200.sbt",
        "cut -o - fixtures/demo-h200.sbt",
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let run = support::command()
            .args(line.split(' '))
            .stdout(writer)
            .stderr(std::process::Stdio::piped())
            .output()
            .unwrap();
        let words = String::from_utf8_lossy(&run.stderr).into_owned();
        assert_eq!(run.status.code(), Some(0), "{line}: {words}");
        assert!(!words.contains("error"), "{line}: {words}");
    }
}
