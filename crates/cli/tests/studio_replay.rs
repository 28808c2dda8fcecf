//! The tab that looks into the memory of a recording, in a browser: its values are those that commands print.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::reader::{Browser, answer, node_package};
use crate::support::replay::WINDOW;
use crate::support::root;
use crate::support::stage::{Place, run, stage};
use crate::support::studio::{Studio, start, studio};

/// What the script reports; `None` if something that it needs is not at hand.
fn looked_at(start: impl FnOnce() -> Studio, more: &[&str]) -> Option<Value> {
    let (Some(browser), Some(axe)) = (Browser::find(), node_package("axe-core")) else {
        tracesmith_skip::without("browser", "no playwright-core, axe-core or Chromium");
        return None;
    };
    let studio = start();
    studio.ready();
    let mut command = Command::new("node");
    command
        .arg(root().join("crates/studio/ui/test/replay.mjs"))
        .args([&browser.playwright, &browser.chromium])
        .arg(&studio.url)
        .arg(axe.join("axe.min.js"))
        .args(more);
    answer("browser", &mut command, b"")
}

/// The numbers of a table on the page: index, value, and whether it is marked as different.
fn numbers(report: &Value) -> Vec<(usize, f32, bool)> {
    let cells = report.as_array().unwrap().iter();
    cells
        .map(|cell| {
            let number = cell[1].as_str().unwrap().parse().unwrap();
            (
                cell[0].as_u64().unwrap() as usize,
                number,
                cell[2].as_bool().unwrap(),
            )
        })
        .collect()
}

fn floats(file: &[u8]) -> Vec<f32> {
    let header = 10 + usize::from(u16::from_le_bytes([file[8], file[9]]));
    let words = file[header..].as_chunks::<4>().0.iter();
    words.map(|word| f32::from_le_bytes(*word)).collect()
}

fn is_clean(report: &Value) {
    for list in ["/axe/light", "/axe/dark", "/console", "/foreign", "/dialogs"] {
        assert_eq!(report.pointer(list), Some(&json!([])), "{list}");
    }
}

#[test]
fn a_recording_is_stepped_through_on_the_gpu() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    place.profiled(WINDOW, "launcher window 1000 1");
    let ptx = ".version 7.0\n.target sm_52\n.address_size 64\n\
        .visible .entry saxpy_near(.param .u64 y, .param .u64 x, .param .f32 a, .param .u32 n) { exit; }\n";
    fs::write(place.path("near.ptx"), ptx).unwrap();
    let serve = || start(&mut place.tracesmith("studio t.sbt --control --no-browser"));
    let Some(report) = looked_at(serve, &["run", "saxpy", "near.ptx"]) else {
        return;
    };
    assert_eq!(report["opened"]["canRun"], true);
    assert_eq!(
        (&report["badge"], &report["calls"]),
        (&json!("On the GPU"), &json!(17))
    );
    assert_eq!(report["selected"], "saxpy");
    let number = report["number"].as_u64().unwrap();
    let address = report["buffer"]
        .as_str()
        .unwrap()
        .trim_start_matches("replay-buffer-")
        .to_owned();
    let dumped = |until: u64| {
        let line = format!("replay t.sbt --until {until} --dump {address} --type f32 -o d.npy --force");
        let dump = run(&mut place.tracesmith(&line));
        assert_eq!(dump.code, Some(0), "{}", dump.stderr);
        floats(&fs::read(place.path("d.npy")).unwrap())
    };
    let (before, after) = (dumped(number), dumped(number + 1));
    let shown = numbers(&report["after"]);
    assert_eq!(shown.len(), 512);
    for (index, number, is_marked) in &shown {
        assert_eq!(number.to_bits(), after[*index].to_bits(), "element {index}");
        assert_eq!(
            *is_marked,
            before[*index].to_bits() != after[*index].to_bits(),
            "element {index}"
        );
    }
    let shown = numbers(&report["before"]);
    assert!(
        shown
            .iter()
            .all(|(index, number, _)| number.to_bits() == before[*index].to_bits())
    );
    assert_eq!(report["reloaded"], report["before"]);
    assert!(
        report["address"]
            .as_str()
            .unwrap()
            .contains(&format!("replay%2dcall.{number}")),
        "{report:#}"
    );
    let keys: Vec<&str> = report["keys"]
        .as_array()
        .unwrap()
        .iter()
        .map(|key| key.as_str().unwrap())
        .collect();
    let expected = [
        "Home 1",
        "ArrowDown 2",
        "ArrowDown 3",
        "ArrowUp 2",
        ". 3",
        ", 2",
        "End 17",
        "b Before",
        "b After",
        "first 1 true",
    ];
    assert_eq!(keys, expected);
    let looks = &report["looks"];
    let hex: String = after[..4]
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!(looks["hex"][0], hex);
    let statistics = &looks["statistics"];
    assert_eq!(
        (&statistics["elements"], &statistics["nan"]),
        (&json!("1,000"), &json!("0")),
        "{statistics}"
    );
    assert!(
        looks["heat"]
            .as_str()
            .unwrap()
            .starts_with("Heat map: 31 × 32 blocks of 31 × 32 elements"),
        "{looks}"
    );
    assert!(
        looks["pointed"]
            .as_str()
            .unwrap()
            .starts_with("Row 0, column 1: mean "),
        "{looks}"
    );
    assert!(looks["colors"].as_u64().unwrap() > 100, "{looks}");
    let changed = before
        .iter()
        .zip(&after)
        .filter(|(before, after)| before.to_bits() != after.to_bits())
        .count();
    assert!(
        looks["changes"]
            .as_str()
            .unwrap()
            .starts_with(&format!("{changed} of 1,000 elements differ")),
        "{looks}"
    );
    assert_eq!(looks["shape"], json!(["[0, 0]", "[1, 0]"]));
    assert_eq!(
        (&looks["column"], &looks["invalid"]),
        (&json!("+16"), &json!("true"))
    );
    let live = &report["live"];
    assert!(
        live["compared"]
            .as_str()
            .unwrap()
            .starts_with("Same as recorded: 7 buffers"),
        "{live:#}"
    );
    assert!(
        live["checked"]
            .as_str()
            .unwrap()
            .starts_with("No call differs: 3 runs"),
        "{live:#}"
    );
    assert_eq!(live["problem"], Value::Null);
    assert!(
        live["replaced"][5].as_str().unwrap().starts_with("differs"),
        "{live:#}"
    );
    assert_eq!(live["restored"], report["after"]);
    assert_eq!(report["followed"], json!({ "chosen": number, "tab": "true" }));
    assert!(
        report["stopped"]
            .as_str()
            .unwrap()
            .contains("The replay was stopped"),
        "{report:#}"
    );
    is_clean(&report);
}

#[test]
fn recorded_contents_are_shown_without_a_gpu() {
    let fixture = root().join("fixtures/replay-h200.sbt");
    let serve = || studio(&[fixture.to_str().unwrap(), "--no-browser"]);
    let Some(report) = looked_at(serve, &["look", "total"]) else {
        return;
    };
    assert_eq!(report["opened"]["canRun"], false);
    assert!(
        report["opened"]["words"].as_str().unwrap().contains("--control"),
        "{report:#}"
    );
    assert_eq!(
        (&report["badge"], &report["calls"]),
        (&json!("Recorded contents"), &json!(7))
    );
    assert_eq!(report["selected"], "total(float const*, float*, int)");
    // The numbers that the program left. Before the last kernel, nobody knows them.
    let weights = [0.5_f32, 1.0, 1.5, 2.0].into_iter().cycle();
    let scaled: Vec<f32> = (0..1024_u16)
        .map(|at| f32::from(at % 10))
        .zip(weights)
        .map(|(one, other)| one * other)
        .collect();
    let shown = numbers(&report["after"]);
    assert_eq!(shown.len(), 512);
    assert!(shown.iter().all(|(index, number, _)| *number == scaled[*index]));
    assert_eq!(report["before"], json!([]));
    assert!(
        report["looks"]["changes"]
            .as_str()
            .unwrap()
            .contains("only after a replay on a GPU"),
        "{report:#}"
    );
    assert_eq!(report["followed"], json!({ "chosen": 5, "tab": "true" }));
    is_clean(&report);
}
