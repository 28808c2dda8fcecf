//! The commands that say what a trace means, on fixtures.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use crate::support;

use insta::assert_snapshot;
use serde_json::Value;
use support::tracesmith;
use tracesmith_trace::analysis::ANALYZERS;

const DEMO: &str = "fixtures/demo-h200.sbt";
const TRAINING: &str = "fixtures/train-h200.sbt";
const SYNTHETIC: &str = "fixtures/synthetic-v1.sbt";

fn json(args: &str) -> Value {
    let answer = tracesmith(args.split(' ').chain(["--format", "json"])).ok();
    serde_json::from_str(&answer).unwrap()
}

#[test]
fn analyze_shows_a_summary_with_findings() {
    assert_snapshot!("analyze_demo", tracesmith(["analyze", DEMO]).transcript());
    assert_snapshot!(
        "analyze_synthetic",
        tracesmith(["analyze", SYNTHETIC]).transcript()
    );
}

#[test]
fn every_analysis_can_be_had_alone_in_every_form() {
    for only in ANALYZERS.iter().map(|analyzer| analyzer.name) {
        // The demo has nothing that shows where the CPU was.
        let file = if only == "host" { TRAINING } else { DEMO };
        let table = tracesmith(["analyze", file, "--only", only]);
        assert!(
            !table.stdout.is_empty() && table.code == Some(0),
            "{only}: {table:?}"
        );
        let answer = json(&format!("analyze {file} --only {only}"));
        assert!(answer["doubts"]["without_time"] == 0, "{only}");
        // The launches are several tables, and nothing is wrong with this trace.
        if !["launches", "findings"].contains(&only) {
            let csv = tracesmith(["analyze", file, "--only", only, "--format", "csv"]).ok();
            let widths: Vec<usize> = csv.lines().map(|line| line.split(',').count()).collect();
            assert!(widths.len() > 1 && widths[0] > 2, "{only}: {csv}");
        }
    }
    let refused = tracesmith(["analyze", DEMO, "--format", "csv"]);
    assert_eq!(refused.code, Some(2));
}

#[test]
fn the_reference_lists_every_analysis() {
    let page = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference/commands.md"
    ))
    .unwrap();
    let names: Vec<&str> = ANALYZERS.iter().map(|analyzer| analyzer.name).collect();
    let line = format!("| `--only NAME` | one analysis: {} |", names.join(", "));
    assert!(page.contains(&line), "docs/reference/commands.md lacks:\n{line}");
}

#[test]
fn figures_of_the_summary_agree_with_each_other() {
    let report = json(&format!("analyze {DEMO}"));
    let device = &report["utilization"]["devices"][0];
    let number = |value: &Value| value.as_u64().unwrap();
    assert_eq!(
        number(&device["busy_ns"]) + number(&device["idle_ns"]),
        number(&device["span_ns"])
    );
    assert!(device["utilization"].as_f64().unwrap() <= 1.0);
    let idle = &report["idle"]["devices"][0];
    let causes: u64 = idle["causes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cause| number(&cause["total_ns"]))
        .sum();
    assert_eq!(causes, number(&idle["idle_ns"]));
    assert_eq!(
        number(&idle["idle_ns"]) + number(&device["busy_ns"]),
        number(&idle["span_ns"])
    );
    let kernels: u64 = report["kernels"]["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| number(&row["total_ns"]))
        .sum();
    assert_eq!(kernels, number(&report["kernels"]["total_ns"]));
    let stats = json(&format!("view {DEMO} --stats"));
    let of_kernels = stats["by_kind"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["kind"] == "kernel")
        .unwrap();
    assert_eq!(number(&of_kernels["totals"]["total_ns"]), kernels);
}

#[test]
fn nothing_changed_takes_the_measured_time() {
    for file in [DEMO, SYNTHETIC] {
        let answer = json(&format!("analyze {file} --only what-if"));
        let what_if = &answer["what_if"][0];
        let (measured, unchanged) = (&what_if["measured_ns"], &what_if["unchanged_ns"]);
        let off = unchanged.as_f64().unwrap() / measured.as_f64().unwrap() - 1.0;
        assert!(off.abs() <= 0.02, "{file}: {off}");
    }
    let scaled = json(&format!("analyze {DEMO} --scale matmul=100"));
    let what_if = &scaled["what_if"][0];
    assert_eq!(what_if["scaled_ops"], 20);
    assert!(what_if["changed_ns"].as_u64() > what_if["measured_ns"].as_u64());
    for wrong in ["matmul", "matmul=", "matmul=-1", "matmul=x"] {
        assert_eq!(
            tracesmith(["analyze", DEMO, "--scale", wrong]).code,
            Some(2),
            "{wrong}"
        );
    }
}

#[test]
fn a_step_or_a_stretch_can_be_asked_for() {
    let whole = json(&format!("analyze {DEMO} --only steps"));
    let step = &whole["steps"][3];
    let part = json(&format!("analyze {DEMO} --step 3 --only utilization"));
    assert_eq!(part["devices"][0]["busy_ns"], step["devices"][0]["busy_ns"]);
    let missing = tracesmith(["analyze", DEMO, "--step", "999"]);
    assert_eq!(missing.code, Some(2));
    assert!(
        missing.stderr.contains("there is no step 999"),
        "{}",
        missing.stderr
    );
    let empty = tracesmith(["analyze", DEMO, "--from", "90%", "--to", "10%"]);
    assert_eq!(empty.code, Some(2));
}

#[test]
fn what_means_nothing_is_said() {
    let scaled = tracesmith(["analyze", DEMO, "--scale", "nobody*=0.5"]);
    assert_eq!(scaled.code, Some(0));
    assert!(
        scaled.stderr.contains("no GPU work matches --scale"),
        "{}",
        scaled.stderr
    );
    let stream = tracesmith(["states", DEMO, "--stream", "99"]);
    assert_eq!(stream.code, Some(0));
    assert!(
        stream.stderr.contains("no work in these streams"),
        "{}",
        stream.stderr
    );
    let copies = tracesmith(["analyze", DEMO, "--only", "copies"]).ok();
    assert!(
        copies.contains("unknown"),
        "no trace knows a link's peak:\n{copies}"
    );
}

#[test]
fn states_are_shown_in_total_over_time_and_at_a_moment() {
    assert_snapshot!("states", tracesmith(["states", DEMO]).transcript());
    let stretch = ["states", DEMO, "--stream", "14", "--intervals", "--limit", "8"];
    assert_snapshot!("states_intervals", tracesmith(stretch).transcript());
    let answer = json(&format!("states {DEMO}"));
    let lines = answer["states"].as_array().unwrap();
    let sums: Vec<u64> = lines
        .iter()
        .map(|line| {
            line["totals"]
                .as_object()
                .unwrap()
                .values()
                .map(|nanos| nanos.as_u64().unwrap())
                .sum()
        })
        .collect();
    assert!(sums.windows(2).all(|pair| pair[0] == pair[1]), "{sums:?}");
    let intervals = json(&format!("states {DEMO} --stream 14 --intervals"));
    let intervals = intervals["states"][0]["intervals"].as_array().unwrap();
    let running = intervals
        .iter()
        .find(|interval| interval["state"] == "running")
        .unwrap();
    let now = json(&format!("states {DEMO} --stream 14 --at @{}", running["from_ns"]));
    let now = &now["states"][0];
    assert_eq!(
        (&now["state"], &now["work"]["name"]),
        (&Value::from("running"), &Value::from("matmul"))
    );
    assert_eq!(
        (&now["work"], &now["queued"]),
        (&running["work"], &Value::from(0))
    );
    let shown = tracesmith(["states", DEMO, "--at", &format!("@{}", running["from_ns"])]);
    assert_snapshot!("states_at", shown.transcript());
    assert_eq!(tracesmith(["states", DEMO, "--at", "99s"]).code, Some(2));
}

#[test]
fn a_diff_fails_over_a_limit() {
    let same = tracesmith(["diff", DEMO, DEMO, "--fail-over", "5%"]);
    assert_eq!(same.code, Some(0));
    let cut = std::env::temp_dir().join(format!("tracesmith-diff-{}.sbt", std::process::id()));
    let path = cut.to_str().unwrap();
    tracesmith(["cut", DEMO, "--to", "50%", "--force", "-o", path]).ok();
    let longer = tracesmith(["diff", path, DEMO, "--fail-over", "5%"]);
    let shorter = tracesmith(["diff", DEMO, path, "--fail-over", "5%"]);
    std::fs::remove_file(&cut).unwrap();
    assert_eq!(longer.code, Some(1), "{longer:?}");
    assert_eq!(shorter.code, Some(0), "{shorter:?}");
    let answer = json(&format!("diff {DEMO} {DEMO}"));
    assert_eq!(
        (answer["time"]["change_ns"].as_f64(), &answer["is_over"]),
        (Some(0.0), &Value::Null)
    );
}

#[test]
fn times_that_are_printed_can_be_asked_for() {
    let idle = tracesmith(["analyze", DEMO, "--only", "idle"]).ok();
    let gap = idle
        .lines()
        .skip_while(|line| !line.starts_with("Longest gaps"))
        .nth(2)
        .unwrap();
    let words: Vec<&str> = gap.split_whitespace().collect();
    assert_eq!(
        words[3], "ms",
        "the longest gap is long enough to look into: {gap}"
    );
    let middle: f64 = words[0].parse::<f64>().unwrap() + words[2].parse::<f64>().unwrap() / 2.0;
    let at = format!("{middle:.2}ms");
    let states = json(&format!("states {DEMO} --at {at}"));
    assert_eq!(states["states"][0]["state"], "idle", "{at}: {states}");
    let length =
        states["states"][0]["to_ns"].as_u64().unwrap() - states["states"][0]["from_ns"].as_u64().unwrap();
    assert!(length > 8_000_000, "the gap that was printed: {states}");
}

#[test]
fn a_step_can_be_asked_for_everything() {
    for only in ["critical-path", "what-if"] {
        let answer = json(&format!("analyze {DEMO} --only {only} --step 3"));
        let whole = json(&format!("analyze {DEMO} --only steps"));
        let step = &whole["steps"][3];
        let step_ns = step["end_ns"].as_u64().unwrap() - step["start_ns"].as_u64().unwrap();
        let answer = if only == "what-if" {
            &answer["what_if"][0]["unchanged_ns"]
        } else {
            &answer["path_ns"]
        };
        // The launches of its first work may stand before it, and its last work may end behind it.
        assert!(
            answer.as_u64().unwrap() < 2 * step_ns,
            "{only}: {answer} of {step_ns}"
        );
    }
    let memory = json(&format!("analyze {DEMO} --only memory --step 3"));
    assert_eq!(memory["pools"][0]["allocations"], 0, "{memory}");
    assert!(memory["pools"][0]["peak_bytes"].as_u64().unwrap() > 0, "{memory}");
    let states = json(&format!("states {DEMO} --step 3"));
    let idle = states["states"][0]["totals"]["idle_ns"].as_u64().unwrap();
    assert!(idle < 1_000_000, "{states}");
}

#[test]
fn what_if_says_when_nothing_is_asked() {
    let answer = tracesmith(["analyze", DEMO, "--only", "what-if"]);
    assert!(answer.stderr.contains("no change to simulate"), "{answer:?}");
    let answer = tracesmith(["analyze", DEMO, "--without-sync"]);
    assert!(!answer.stderr.contains("no change to simulate"), "{answer:?}");
}

#[test]
fn what_if_suggests_names_and_explains_a_zero() {
    let typo = tracesmith(["analyze", DEMO, "--scale", "acumulate=0.5"]);
    let suggestion = "no GPU work matches --scale 'acumulate'; did you mean accumulate?";
    assert!(typo.stderr.contains(suggestion), "{}", typo.stderr);
    let typo = tracesmith(["analyze", DEMO, "--without-sync=cuStreamSyncronize"]);
    let suggestion = "did you mean cuStreamSynchronize";
    assert!(typo.stderr.contains(suggestion), "{}", typo.stderr);
    let little = tracesmith(["analyze", DEMO, "--scale", "accumulate=0.1"]).ok();
    assert!(
        little.contains("20 GPU operations match") && little.contains("the GPU waits for the CPU"),
        "{little}"
    );
}

/// Issue 29: one row of 100 % without a word.
#[test]
fn kernels_without_operators_or_lines_have_a_note() {
    let note = |file: &str, by: &str| tracesmith(["analyze", file, "--only", "kernels", "--by", by]).stderr;
    for (by, missing) in [("operator", "operators"), ("line", "stacks and no operators")] {
        let expected = "so all kernels are in one row; use --by short or --by shape\n";
        let expected = format!("the trace has no {missing}, {expected}");
        assert!(note(DEMO, by).starts_with(&expected), "{}", note(DEMO, by));
    }
    let limited = tracesmith([
        "analyze", TRAINING, "--only", "kernels", "--by", "line", "-n", "1",
    ]);
    assert!(!limited.stderr.contains("in one row"), "{}", limited.stderr);
}

/// Issue 29: `flash*` did not match `void flash…`, which tables show without `void`.
#[test]
fn a_name_is_matched_as_it_is_shown() {
    let dir = tempfile::TempDir::new().unwrap();
    let (file, _) = with_long_names(&dir);
    let scaled = tracesmith(["analyze", &file, "--scale", "at::native::vec*=0.5"]);
    assert!(!scaled.stderr.contains("no GPU work matches"), "{scaled:?}");
    let viewed = tracesmith(["view", &file, "--name", "at::native::vec*", "-n", "2"]).ok();
    assert!(viewed.contains("vectorized_elementwise_kernel"), "{viewed}");
}

/// Issue 29: what a step launches and what runs in it stood in one row without a label.
#[test]
fn steps_label_what_they_launch_and_what_runs_in_them() {
    let table = tracesmith(["analyze", SYNTHETIC, "--only", "steps"]).ok();
    let head = table.lines().find(|line| line.contains("number")).unwrap();
    assert!(
        head.contains("launched") && head.contains("busy during the step"),
        "{head}"
    );
    let kernels = tracesmith(["analyze", SYNTHETIC]).ok();
    assert!(kernels.contains("per step and GPU"), "{kernels}");
}

#[test]
fn a_summary_names_the_time_that_its_shares_are_of_once() {
    let whole = tracesmith(["analyze", DEMO]).ok();
    assert_eq!(whole.matches("Analyzed time: ").count(), 1, "{whole}");
    // The idle table and the finding have the same share of it.
    assert!(
        whole.contains("  9.74 ms  54.6 %    23  CPU busy between calls"),
        "{whole}"
    );
    assert!(whole.contains("saves at most 9.74 ms (54.6 %)"), "{whole}");
    let step = tracesmith(["analyze", DEMO, "--step", "3"]).ok();
    assert!(step.contains(", as selected."), "{step}");
    // What is drawn as busy and is not counted is noted on both sides.
    let counted = tracesmith(["analyze", SYNTHETIC]);
    assert!(
        counted.stderr.contains("6 collectives have no kernels"),
        "{}",
        counted.stderr
    );
    let drawn = tracesmith(["view", "--timeline", SYNTHETIC]);
    assert!(
        drawn.stderr.contains("6 collectives count as communication"),
        "{}",
        drawn.stderr
    );
}

/// Issue 29: `-n` did not limit the list of gaps, and a note about rows did not name its table.
#[test]
fn a_limit_holds_for_every_list_and_notes_name_it() {
    let gaps = |limit: &str| {
        let idle = tracesmith(["analyze", DEMO, "--only", "idle", "-n", limit]);
        let gaps = idle
            .stdout
            .lines()
            .skip_while(|line| !line.starts_with("Longest gaps"));
        let rows = gaps.skip(2).take_while(|line| !line.is_empty()).count();
        (rows, idle.stderr)
    };
    let (rows, notes) = gaps("9");
    assert_eq!(rows, 9);
    assert!(
        notes.contains("1 more gap of GPU 0 NVIDIA H200; --limit 0 shows all"),
        "{notes}"
    );
    let (rows, notes) = gaps("3");
    assert_eq!(rows, 3);
    assert!(notes.contains("7 more gaps of GPU 0 NVIDIA H200;"), "{notes}");
    let (rows, notes) = gaps("0");
    assert_eq!((rows, notes.contains("more gap")), (10, false));
    let host = tracesmith(["analyze", TRAINING, "--only", "host", "-n", "1"]).stderr;
    assert!(host.contains("rows of 'line of the next CUDA call';"), "{host}");
    assert!(!host.contains("more rows;"), "{host}");
}

/// Issue 29: CSV had no causes, and ranges named devices by another number than everything else.
#[test]
fn csv_has_the_causes_and_devices_have_one_name() {
    let csv = tracesmith(["analyze", DEMO, "--only", "idle", "--format", "csv"]).ok();
    let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
    let value = |name: &str| -> u64 {
        let place = names.iter().position(|other| *other == name);
        values[place.unwrap()].parse().unwrap()
    };
    let answer = json(&format!("analyze {DEMO} --only idle"));
    let device = &answer["devices"][0];
    let mut sum = 0;
    for cause in device["causes"].as_array().unwrap() {
        let nanos = value(&format!("idle_{}_ns", cause["cause"].as_str().unwrap()));
        assert_eq!(Some(nanos), cause["total_ns"].as_u64(), "{cause}");
        sum += nanos;
    }
    assert_eq!(sum, value("idle_ns"));
    assert_eq!(value("idle_host_lock_ns"), 0, "a cause that it does not have");
    let begin = json(&format!("info {DEMO}"))["first_ns"].as_u64().unwrap();
    let gap = &device["longest"][0];
    assert_eq!(
        gap["offset_ns"].as_u64(),
        Some(gap["from_ns"].as_u64().unwrap() - begin)
    );
    let launches = json(&format!("analyze {TRAINING} --only launches"));
    assert_eq!(launches["launch_bound"][0]["device_name"], "GPU 0 NVIDIA H200");
    let shown = tracesmith(["analyze", TRAINING, "--only", "launches"]).ok();
    let range = shown
        .lines()
        .skip_while(|line| !line.starts_with("Launch-bound ranges"));
    assert!(
        range.clone().nth(2).unwrap().starts_with("GPU 0 NVIDIA H200 "),
        "{shown}"
    );
    let copies = tracesmith(["analyze", SYNTHETIC, "--only", "copies"]).ok();
    assert!(
        !copies.contains("limit") && !copies.contains("unknown"),
        "no limit is known: {copies}"
    );
}

/// Kernels of PyTorch, whose names differ in the middle of their template arguments.
fn with_long_names(dir: &tempfile::TempDir) -> (String, Vec<String>) {
    use tracesmith_format::tables::{Kernel, KernelShape};
    use tracesmith_format::{ClockId, Timestamp, Writer, WriterOptions};
    let array = "std::array<char*, 3ul>";
    let names: Vec<String> = ["add", "mul", "div"]
        .iter()
        .map(|operation| {
            let functor = format!("at::native::CUDAFunctor_{operation}<c10::complex<double> >");
            format!(
                "void at::native::vectorized_elementwise_kernel<4, {functor}, {array}, {array} >(int, {functor}, {array})"
            )
        })
        .collect();
    let mut writer = Writer::new(Vec::new(), WriterOptions::default()).unwrap();
    for (at, name) in (1u64..).zip(names.iter().cycle().take(1_500)) {
        let kernel = Kernel {
            start: Timestamp(at * 100),
            end: Timestamp(at * 100 + 50),
            shape: KernelShape {
                name: writer.string(name).unwrap(),
                ..KernelShape::default()
            },
            ..Kernel::default()
        };
        writer.push(ClockId(1), &kernel).unwrap();
    }
    let file = dir.path().join("names.sbt").to_str().unwrap().to_owned();
    std::fs::write(&file, writer.finish().unwrap()).unwrap();
    (file, names)
}

/// Issue 26: the heading had only the kernels' time, and names were as long as they are.
#[test]
fn kernels_are_counted_and_their_names_shortened_unless_wide() {
    let dir = tempfile::TempDir::new().unwrap();
    let (file, names) = with_long_names(&dir);
    let last_words = |text: &str| -> Vec<String> {
        let shown = text.lines().filter(|line| line.contains("at::native"));
        shown
            .map(|line| line[line.find("at::native").unwrap()..].to_owned())
            .collect()
    };
    for columns in [None, Some(130usize), Some(100)] {
        let mut command = support::command();
        command.args(["analyze", &file, "--only", "kernels"]);
        if let Some(columns) = columns {
            command.env("COLUMNS", columns.to_string());
        }
        let table = support::run(&mut command).ok();
        assert!(
            table.starts_with("Kernels: 1,500 with 75.00 µs of GPU time\n"),
            "{table}"
        );
        let mut shown = last_words(&table);
        assert_eq!(shown.len(), 3, "{table}");
        shown
            .iter()
            .for_each(|name| assert!(name.chars().count() <= 120, "{name}"));
        let width = table.lines().map(|line| line.chars().count()).max();
        assert!(columns.is_none_or(|columns| width <= Some(columns)), "{table}");
        shown.sort_unstable();
        shown.dedup();
        assert_eq!(shown.len(), 3, "different names stay different: {table}");
    }
    let wide = tracesmith(["analyze", &file, "--only", "kernels", "--wide"]).ok();
    let answer = json(&format!("analyze {file} --only kernels"));
    let csv = tracesmith(["analyze", &file, "--only", "kernels", "--format", "csv"]).ok();
    assert_eq!(answer["count"], 1_500);
    for name in &names {
        assert!(wide.contains(name), "{wide}");
        assert!(csv.contains(name), "{csv}");
        let rows = answer["rows"].as_array().unwrap();
        assert!(rows.iter().any(|row| row["name"] == name.as_str()), "{answer}");
    }
}

#[test]
fn every_stretch_of_a_state_is_valid_json_on_a_line_of_its_own() {
    let answer = json(&format!("states {DEMO} --intervals"));
    let all = answer["states"].as_array().unwrap();
    assert!(all.len() > 2);
    let at = json(&format!("states {DEMO} --at 50%"));
    for (line, at) in all.iter().zip(at["states"].as_array().unwrap()) {
        assert_eq!(line["of"], at["of"]);
        let intervals = line["intervals"].as_array().unwrap();
        let mut expected = at.clone();
        let members = expected.as_object_mut().unwrap();
        members.retain(|key, _| !["of", "queued"].contains(&key.as_str()));
        assert!(intervals.contains(&expected), "{expected}");
    }
    assert!(answer["doubts"]["without_time"] == 0);
    let limited = json(&format!("states {DEMO} --intervals --limit 2"));
    let lines = limited["states"].as_array().unwrap();
    assert!(
        lines
            .iter()
            .all(|line| line["intervals"].as_array().unwrap().len() == 2)
    );
    let none = json(&format!("states {DEMO} --intervals --stream 4711"));
    assert_eq!(none["states"], Value::Array(Vec::new()));
}

#[test]
fn one_step_is_shown_alone() {
    let demo = "fixtures/demo-h200.sbt";
    let shown = tracesmith(["analyze", demo, "--step", "12"]).ok();
    assert!(
        shown.contains("Step 12: 282.28 µs, from a repeating pattern of 18 GPU operations"),
        "{shown}"
    );
    assert!(!shown.contains("Steps: "), "{shown}");
    let row = shown
        .lines()
        .find(|line| line.contains("host to device  pinned"))
        .unwrap();
    assert_eq!(row.split_whitespace().nth(9), Some("1"), "{row}");
    assert_eq!(shown.matches("   host to device at +").count(), 1, "{shown}");
    let steps = tracesmith(["analyze", demo, "--only", "steps", "--step", "12"]).ok();
    assert!(
        steps
            .lines()
            .any(|line| line.trim_start().starts_with("12  +545")),
        "{steps}"
    );
}

#[test]
fn a_single_step_has_no_spread_over_steps() {
    let file = "fixtures/kineto-training.json";
    let spreads = |options: &[&str]| -> Vec<Value> {
        let line = ["analyze", file, "--only", "kernels", "--format", "json"];
        let answer = tracesmith(line.iter().chain(options).copied()).ok();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        let rows = answer["rows"].as_array().unwrap();
        rows.iter().map(|row| row["step_spread"].clone()).collect()
    };
    assert!(spreads(&["--step", "1"]).iter().all(Value::is_null));
    let whole = spreads(&[]);
    assert!(
        whole.iter().all(|spread| spread.as_f64().unwrap() < 0.01),
        "{whole:?}"
    );
}

#[test]
fn a_trace_without_gpu_work_says_so() {
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("empty.json");
    std::fs::write(&file, "{\"traceEvents\": []}").unwrap();
    for only in ["utilization", "kernels", "idle", "copies", "launches", "streams"] {
        let run = tracesmith(["analyze", file.to_str().unwrap(), "--only", only]);
        assert_eq!(run.code, Some(0), "{run:?}");
        assert!(run.stderr.contains("no GPU work"), "{only}: {run:?}");
    }
}
