//! JSON exports as their readers see them: Perfetto's trace processor, HolisticTraceAnalysis, Python's own parser; and
//! files of PyTorch's profiler on their way in and out again.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use crate::support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use insta::assert_snapshot;
use serde_json::Value;
use support::{FIXTURE, perfetto, root, tracesmith};
use tempfile::TempDir;
use tracesmith_format::tables::{ApiCall, ApiShape, Kernel, KernelShape, Marker, MarkerShape};
use tracesmith_format::{ClockId, Columns, StringId, Timestamp, Writer, WriterOptions};
use tracesmith_trace::Trace;

const DEMO: &str = "fixtures/demo-h200.sbt";
/// A small file in the format of PyTorch's profiler. The comparisons below run on it everywhere, and on real files where
/// they are at hand.
const TRAINING: &str = "fixtures/kineto-training.json";
const ERRORS: &str = "select name, value from stats where severity in ('error', 'data_loss') and value > 0";

fn path(dir: &TempDir, name: &str) -> PathBuf {
    dir.path().join(name)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Exports a trace and gives the file.
fn export(dir: &TempDir, trace: &Path, format: &str) -> PathBuf {
    let out = path(
        dir,
        &format!("{}.{format}.json", trace.file_name().unwrap().display()),
    );
    let single = (format == "kineto").then_some("--single-file");
    let words = ["export", text(trace), "-f", format, "-o", text(&out)];
    tracesmith(words.into_iter().chain(single)).ok();
    out
}

/// A file of the collection of other tools' files, which is not part of the project.
fn data(name: &str) -> Option<PathBuf> {
    let folder =
        std::env::var_os("TRACESMITH_DATA").map_or_else(|| root().join("../shared/data"), PathBuf::from);
    let path = folder.join("kineto").join(name);
    if !path.exists() {
        tracesmith_skip::without("data", path.display());
        return None;
    }
    Some(path)
}

/// Imports a file of PyTorch's profiler and gives the trace.
fn import(dir: &TempDir, file: &Path) -> PathBuf {
    let out = path(dir, &format!("{}.sbt", file.file_name().unwrap().display()));
    tracesmith(["import", text(file), "-o", text(&out)]).ok();
    out
}

fn events(file: &Path) -> Vec<Value> {
    let json: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    json["traceEvents"].as_array().unwrap().clone()
}

/// A decimal number of microseconds in nanoseconds. The file's doubles hold times of a few hours to the nanosecond.
fn nanos(value: &Value) -> i64 {
    (value.as_f64().unwrap_or_default() * 1000.0).round() as i64
}

/// Number and total duration of the slices of each thread track, counted in the file.
fn tracks_of_file(events: &[Value]) -> BTreeMap<(u64, u64), (i64, i64)> {
    let mut tracks = BTreeMap::new();
    for event in events {
        if ["X", "i"].contains(&event["ph"].as_str().unwrap()) {
            let key = (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap());
            let (count, total) = tracks.entry(key).or_insert((0, 0));
            *count += 1;
            *total += nanos(&event["dur"]);
        }
    }
    tracks
}

/// Arrows whose start and end are both in the file.
fn arrows_of_file(events: &[Value]) -> usize {
    let ends = |phase: &str| {
        let ends = events.iter().filter(|event| event["ph"] == phase);
        ends.map(|event| (event["cat"].to_string(), event["id"].to_string()))
            .collect::<Vec<_>>()
    };
    let starts = ends("s");
    ends("f").iter().filter(|end| starts.contains(end)).count()
}

#[test]
fn perfetto_sees_every_slice_arrow_and_counter() {
    let dir = TempDir::new().unwrap();
    for fixture in [FIXTURE, DEMO] {
        for format in ["json", "kineto"] {
            let out = export(&dir, &root().join(fixture), format);
            let queries = [
                ERRORS,
                "select process.pid, thread.tid, count(*), sum(slice.dur) from slice join thread_track \
                 on slice.track_id = thread_track.id join thread using (utid) join process using (upid) \
                 group by 1, 2 order by 1, 2",
                "select count(*) from flow",
                "select count(*) from counter",
                "select count(*) from slice",
            ];
            let Some(answers) = perfetto::query(&out, &queries) else {
                return;
            };
            assert!(answers[0].is_empty(), "{fixture} {format}: {:?}", answers[0]);
            let events = events(&out);
            let seen: BTreeMap<(u64, u64), (i64, i64)> = answers[1]
                .iter()
                .map(|row| {
                    let number = |at: usize| row[at].as_i64().unwrap();
                    ((number(0) as u64, number(1) as u64), (number(2), number(3)))
                })
                .collect();
            assert_eq!(seen, tracks_of_file(&events), "{fixture} {format}");
            assert_eq!(answers[2][0][0], arrows_of_file(&events), "{fixture} {format}");
            let of_phase = |phase: &str| events.iter().filter(|event| event["ph"] == phase).count();
            assert_eq!(answers[3][0][0], of_phase("C"), "{fixture} {format}");
            let slices = of_phase("X") + of_phase("i") + of_phase("b") + of_phase("B");
            assert_eq!(answers[4][0][0], slices, "{fixture} {format}");
        }
    }
}

#[test]
fn the_file_holds_what_the_trace_holds() {
    let dir = TempDir::new().unwrap();
    let trace = Trace::open(&root().join(DEMO)).unwrap();
    let (mut count, mut total) = (0, 0);
    for (_, kernels) in trace.kernels.columns() {
        for row in 0..kernels.len() {
            count += 1;
            total += (kernels.end[row].0 - kernels.start[row].0) as i64;
        }
    }
    for format in ["json", "kineto"] {
        let events = events(&export(&dir, &root().join(DEMO), format));
        let kernels: Vec<_> = events.iter().filter(|event| event["cat"] == "kernel").collect();
        assert_eq!(kernels.len(), count, "{format}");
        let sum: i64 = kernels.iter().map(|kernel| nanos(&kernel["dur"])).sum();
        assert_eq!(sum, total, "{format}");
        let phases = ["X", "i", "C"].map(|phase| events.iter().filter(|event| event["ph"] == phase).count());
        assert_eq!(
            phases,
            [902, 22, if format == "json" { 83 } else { 61 }],
            "{format}"
        );
    }
}

#[test]
fn overlapping_work_of_real_files_is_on_lanes_of_its_own() {
    for name in [
        "h100_gaunernst_bert-small-uncased__1016001.json.gz",
        "nccl_parser_config_nccl_data.json.gz",
        "inference_sglang_decode_sglang_Qwen3-8B_decode.json.gz",
    ] {
        let Some(file) = data(name) else { return };
        overlapping_work_is_on_lanes_of_its_own(&file);
    }
}

#[test]
fn overlapping_work_of_our_file_is_on_lanes_of_its_own() {
    overlapping_work_is_on_lanes_of_its_own(&root().join(TRAINING));
}

fn overlapping_work_is_on_lanes_of_its_own(file: &Path) {
    let dir = TempDir::new().unwrap();
    let name = file.display();
    let trace = import(&dir, file);
    let queries = [ERRORS, "select count(*) from slice", "select count(*) from flow"];
    let json = export(&dir, &trace, "json");
    let Some(answers) = perfetto::query(&json, &queries) else {
        return;
    };
    assert!(answers[0].is_empty(), "{name}: {:?}", answers[0]);
    // Host events stay on their thread there, where Perfetto drops some of the original file, too.
    let kineto = export(&dir, &trace, "kineto");
    let (again, original) = (
        perfetto::query(&kineto, &queries).unwrap(),
        perfetto::query(file, &queries).unwrap(),
    );
    assert_eq!(again[..2], original[..2], "{name}");
    assert!(again[2][0][0].as_u64() >= original[2][0][0].as_u64(), "{name}");
}

#[test]
fn files_of_pytorch_come_back_as_they_were() {
    let Some(one) = data("b200_eager_trace.json.gz") else {
        return;
    };
    let mut files: Vec<PathBuf> = fs::read_dir(one.parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    assert!(files.len() >= 23);
    for file in files {
        comes_back_as_it_was(&file);
    }
}

#[test]
fn our_file_comes_back_as_it_was() {
    comes_back_as_it_was(&root().join(TRAINING));
}

fn comes_back_as_it_was(file: &Path) {
    let Some(python) = perfetto::python() else {
        return tracesmith_skip::without("python packages", "no environment");
    };
    let dir = TempDir::new().unwrap();
    let out = export(&dir, &import(&dir, file), "kineto");
    let compared = Command::new(&python)
        .arg(root().join("ci/readers/kineto_compare.py"))
        .args([file, &out])
        .output()
        .unwrap();
    let found = String::from_utf8_lossy(&compared.stdout);
    assert!(compared.status.success(), "{}: {found}", file.display());
}

/// What a reader in Python finds in files; `None` where it is not at hand.
fn found_by(script: &str, files: &[&Path]) -> Option<Value> {
    let Some(python) = perfetto::python() else {
        tracesmith_skip::without("python packages", script);
        return None;
    };
    let script = root().join("ci/readers").join(script);
    let output = Command::new(python).arg(&script).args(files).output().unwrap();
    let talk = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(3) {
        tracesmith_skip::without("python packages", talk);
        return None;
    }
    assert!(output.status.success(), "{files:?}: {talk}");
    Some(serde_json::from_slice(&output.stdout).unwrap())
}

/// What HolisticTraceAnalysis finds.
fn breakdown(file: &Path) -> Option<Value> {
    found_by("hta_breakdown.py", &[file])
}

#[test]
fn tensorboard_shows_the_same_of_an_export() {
    for (name, tables) in [
        ("b200_eager_trace.json.gz", ALL_TABLES),
        ("h100_gaunernst_bert-small-uncased__1016001.json.gz", ALL_TABLES),
        ("mi210_gpu_only_trace_gpu_only_trace.json.gz", ALL_TABLES),
        ("nccl_parser_config_nccl_data.json.gz", ALL_TABLES),
        (
            "ns_resolution_trace_rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz",
            ALL_TABLES,
        ),
        // These say how well kernels fill a device that they do not describe.
        ("timeline_analysis_sampled_rank-0.json.gz", ALL_TABLES),
        ("trace_compare_base_base.json.gz", ALL_TABLES),
        // Its kernels have no shape: ours have that of the call.
        (
            "amd_trace_mi250_minitoy_train_ROCm6_2_kineto.json.gz",
            &["views", "overview", "kernels", "operators"],
        ),
        // Of 2021: the plugin joins calls to operators by the names that categories had then, and has not learned others.
        (
            "resnet50_num_workers_0_worker0.1623143089861.pt.trace.json.gz",
            &["kernels"],
        ),
    ] {
        let Some(file) = data(name) else { return };
        tensorboard_shows_the_same(&file, tables);
    }
}

#[test]
fn tensorboard_shows_the_same_of_an_export_of_our_file() {
    tensorboard_shows_the_same(&root().join(TRAINING), ALL_TABLES);
}

fn tensorboard_shows_the_same(file: &Path, tables: &[&str]) {
    let dir = TempDir::new().unwrap();
    let again = export(&dir, &import(&dir, file), "kineto");
    let Some(shown) = found_by("tensorboard_breakdown.py", &[file, &again]) else {
        return;
    };
    assert!(!shown[0]["kernels"].is_null(), "{}", file.display());
    for table in tables {
        assert_eq!(shown[1][table], shown[0][table], "{}: {table}", file.display());
    }
}

/// The views of TensorBoard's plugin.
const ALL_TABLES: &[&str] = &[
    "views",
    "overview",
    "kernels",
    "kernels by operator",
    "operators",
    "memory",
];

#[test]
fn holistic_trace_analysis_finds_the_same_in_an_export() {
    for name in [
        "ns_resolution_trace_rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz",
        "nccl_parser_config_nccl_data.json.gz",
        "amd_trace_mi250_minitoy_train_ROCm6_2_kineto.json.gz",
        "h100_gaunernst_bert-small-uncased__1016001.json.gz",
        "mi300_gaunernst_bert-small-uncased__1016001.json.gz",
    ] {
        let Some(file) = data(name) else { return };
        hta_finds_the_same_in_an_export(&file);
    }
}

#[test]
fn holistic_trace_analysis_finds_the_same_in_an_export_of_our_file() {
    hta_finds_the_same_in_an_export(&root().join(TRAINING));
}

fn hta_finds_the_same_in_an_export(file: &Path) {
    let dir = TempDir::new().unwrap();
    let Some(original) = breakdown(file) else { return };
    let again = breakdown(&export(&dir, &import(&dir, file), "kineto"));
    assert_eq!(again, Some(original), "{}", file.display());
}

/// HolisticTraceAnalysis takes whole microseconds within each kernel: from its start rounded up to its end rounded down.
#[test]
fn holistic_trace_analysis_finds_what_the_trace_holds() {
    let dir = TempDir::new().unwrap();
    let trace = Trace::open(&root().join(DEMO)).unwrap();
    let mut kernels: BTreeMap<String, i64> = BTreeMap::new();
    for (block, rows) in trace.kernels.columns() {
        for row in 0..rows.len() {
            let shape = rows.shape.get(row);
            let name = if shape.demangled.is_some() {
                shape.demangled
            } else {
                shape.name
            };
            let time = |time| trace.clock_map.convert(block.header.clock, time).time.0;
            let (start, end) = (time(rows.start[row]).div_ceil(1000), time(rows.end[row]) / 1000);
            *kernels.entry(trace.string(name).to_owned()).or_default() += end as i64 - start as i64;
        }
    }
    assert_eq!(kernels.len(), 5);
    let Some(found) = breakdown(&export(&dir, &root().join(DEMO), "kineto")) else {
        return;
    };
    for (name, total) in kernels {
        let mut rows = found["kernels"].as_array().unwrap().iter();
        let row = rows.find(|row| row["name"] == name.as_str());
        assert_eq!(
            row.map(|row| row["sum (us)"].as_f64()),
            Some(Some(total as f64)),
            "{name}"
        );
    }
}

#[test]
fn exports_look_as_they_did() {
    for format in ["json", "kineto"] {
        let part = tracesmith(["export", FIXTURE, "-f", format, "--to", "1.1ms", "-o", "-"]).ok();
        assert_snapshot!(format!("export_{format}"), part);
    }
}

#[test]
fn packed_exports_hold_the_same() {
    let dir = TempDir::new().unwrap();
    let plain = export(&dir, &root().join(FIXTURE), "json");
    for ending in ["gz", "zst"] {
        let packed = path(&dir, &format!("packed.json.{ending}"));
        tracesmith(["export", FIXTURE, "-o", text(&packed)]).ok();
        let bytes = fs::read(&packed).unwrap();
        let unpacked = match ending {
            "gz" => {
                let mut unpacked = Vec::new();
                std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&bytes[..]), &mut unpacked)
                    .unwrap();
                unpacked
            }
            _ => zstd::stream::decode_all(&bytes[..]).unwrap(),
        };
        assert!(bytes.len() * 5 < unpacked.len());
        assert!(unpacked == fs::read(&plain).unwrap(), "{ending}");
    }
}

/// Names that would break a writer of text, and a detail that only looks like JSON.
#[test]
fn hostile_names_survive() {
    let long = "x".repeat(300_000);
    let names = [
        "\"quoted\\",
        "line\nbreak\r\t\u{0}\u{1f}\u{7f}",
        "é\u{1F600}\u{2028}",
        &long,
        "",
    ];
    let mut writer = Writer::new(Vec::new(), WriterOptions::default()).unwrap();
    let broken = writer.string("{\"a\":1},{\"b\":\"}").unwrap();
    for (at, name) in names.iter().enumerate() {
        let name: StringId = writer.string(name).unwrap();
        let (start, end) = (
            Timestamp(1_000 + at as u64 * 10),
            Timestamp(1_005 + at as u64 * 10),
        );
        let shape = KernelShape {
            name,
            ..KernelShape::default()
        };
        writer
            .push(
                ClockId(1),
                &Kernel {
                    start,
                    end,
                    shape,
                    ..Kernel::default()
                },
            )
            .unwrap();
        let shape = ApiShape {
            name,
            ..ApiShape::default()
        };
        writer
            .push(
                ClockId(1),
                &ApiCall {
                    start,
                    end,
                    shape,
                    ..ApiCall::default()
                },
            )
            .unwrap();
        let shape = MarkerShape {
            name,
            domain: name,
            category_name: name,
            ..MarkerShape::default()
        };
        let row = Marker {
            start,
            end: start,
            shape,
            detail: broken,
            ..Marker::default()
        };
        writer.push(ClockId(1), &row).unwrap();
    }
    let dir = TempDir::new().unwrap();
    let trace = path(&dir, "hostile.sbt");
    fs::write(&trace, writer.finish().unwrap()).unwrap();
    for format in ["json", "kineto"] {
        let out = export(&dir, &trace, format);
        let events = events(&out);
        for name in names {
            let of_name = events
                .iter()
                .filter(|event| event["name"] == name && event["ph"] != "M");
            assert_eq!(of_name.count(), 3, "{format} {:.20}", name);
        }
        let Some(python) = perfetto::python() else {
            tracesmith_skip::without("python packages", "no environment");
            continue;
        };
        let script = "import json, sys; print(len(json.load(open(sys.argv[1]))['traceEvents']))";
        let read = Command::new(python)
            .args(["-c", script, text(&out)])
            .output()
            .unwrap();
        assert_eq!(
            String::from_utf8_lossy(&read.stdout).trim(),
            events.len().to_string()
        );
    }
}
