//! The pages of Studio in a browser. The scripts in `crates/studio/ui/test` look at a page and report what they found; the
//! tests here say what that has to be.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error, and prints its figures"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::page_traces::{write_odd_trace, write_steps, write_trace, write_until};
use crate::support::reader::{Browser, answer, node_package};
use crate::support::studio::studio;
use crate::support::{root, tracesmith};

const TRAIN: &str = "fixtures/train-h200.sbt";
/// Stands for the path of axe in the arguments of a script.
const AXE: &str = "AXE";
const DEMO: &str = "fixtures/demo-h200.sbt";

/// What a script reports about the pages of a server; `None` if something that it needs is not at hand.
fn looked_at(script: &str, files: &[&str], more: &[&str]) -> Option<Value> {
    let (Some(browser), Some(axe)) = (Browser::find(), node_package("axe-core")) else {
        tracesmith_skip::without("browser", "no playwright-core, axe-core or Chromium");
        return None;
    };
    let studio = studio(&[files, &["--no-browser"]].concat());
    studio.ready();
    let mut command = Command::new("node");
    command
        .arg(root().join("crates/studio/ui/test").join(script))
        .args([&browser.playwright, &browser.chromium])
        .arg(&studio.url);
    let axe = axe.join("axe.min.js");
    let more: Vec<&str> = match more {
        [] => vec![AXE],
        more => more.to_vec(),
    };
    for argument in more {
        match argument {
            AXE => command.arg(&axe),
            argument => command.arg(argument),
        };
    }
    answer("browser", &mut command, b"")
}

/// The number at a place of a report.
fn number(report: &Value, place: &str) -> f64 {
    report
        .pointer(place)
        .and_then(Value::as_f64)
        .unwrap_or_else(|| panic!("no number at {place}: {report:#}"))
}

/// Fails unless a list of a report is empty.
fn is_empty(report: &Value, place: &str) {
    let list = report
        .pointer(place)
        .unwrap_or_else(|| panic!("nothing at {place}"));
    assert_eq!(list, &json!([]), "{place}");
}

#[test]
fn the_timeline_draws_what_the_routes_answer() {
    let folder = TempDir::new().unwrap();
    let odd = folder.path().join("odd.sbt");
    write_odd_trace(&odd);
    let Some(report) = looked_at("timeline.mjs", &[TRAIN, DEMO, odd.to_str().unwrap()], &[]) else {
        return;
    };
    assert_eq!(report["first"]["key"], false, "the key stays in the address");
    assert!(number(&report, "/first/rows") >= 8.0);
    for part in ["/heights", "/slices", "/darkSlices"] {
        assert_eq!(
            number(&report, &format!("{part}/wrong")),
            0.0,
            "{:#}",
            report.pointer(part).unwrap()
        );
    }
    assert!(number(&report, "/heights/checked") >= 1_000.0);
    assert!(number(&report, "/slices/checked") >= 50.0, "{}", report["slices"]);
    assert!(number(&report, "/slices/gaps") >= 10.0, "{}", report["slices"]);
    assert_eq!(report["slices"]["wrongGaps"], 0);

    let keys = &report["keys"];
    assert!(
        number(keys, "/zoom") > 1.2 && number(keys, "/pan") > 0.05,
        "{keys:#}"
    );
    for (place, start) in [("live", "Window"), ("selected", "Selected")] {
        assert!(keys[place].as_str().unwrap().starts_with(start), "{keys:#}");
    }
    let address = &keys["address"];
    assert!(
        (number(address, "/from") - number(address, "/window/from")).abs() <= 1.0,
        "{address}"
    );
    assert!(
        (number(address, "/to") - number(address, "/window/to")).abs() <= 1.0,
        "{address}"
    );
    for name in ["same", "focused", "cleared", "whole", "treeFocus"] {
        assert_eq!(keys[name], true, "{name}: {keys:#}");
    }
    assert_eq!(keys["marks"], 1);
    assert_eq!(
        (number(keys, "/goTo/from"), number(keys, "/goTo/to")),
        (1_000.0, 3_000.0)
    );
    assert_eq!(keys["folded"], "false");

    let pointer = &report["pointer"];
    let near = |place: &str, wanted: f64| (number(pointer, place) - wanted).abs() < 0.01;
    assert!(
        near("/time/0", 0.25) && near("/time/1", 0.5) && near("/area/0", 0.5) && near("/area/1", 0.75),
        "{pointer:#}"
    );
    assert!(
        number(pointer, "/area/2") >= 1.0 && pointer["time"][2] == 0,
        "{pointer:#}"
    );
    assert!(
        number(pointer, "/zoom") > 1.2 && number(pointer, "/drift") < 0.01,
        "{pointer:#}"
    );
    assert_eq!(pointer["cleared"], true);

    assert_eq!(
        report["restored"],
        json!({"differ": true, "reload": true, "back": true, "forward": true})
    );
    assert!(number(&report, "/table/rows") > 0.0);
    assert_eq!(
        (&report["table"]["images"], &report["table"]["closed"]),
        (&json!(0), &json!(true))
    );
    for scheme in ["light", "dark"] {
        is_empty(&report, &format!("/axe/{scheme}"));
    }
    assert_eq!(report["lost"]["after"], true);
    assert!(!report["lost"]["during"].as_str().unwrap().is_empty());
    assert_eq!(report["switched"], json!({"opened": true, "back": true}));
    let traces = report["traces"].as_array().unwrap();
    assert_eq!(traces.len(), 3);
    for trace in traces {
        assert_eq!(trace["holes"], 0, "{trace}");
        assert!(number(trace, "/rows") >= 2.0, "{trace}");
    }
    for list in ["/console", "/foreign", "/dialogs"] {
        is_empty(&report, list);
    }
}

#[test]
fn the_panels_show_what_the_routes_answer() {
    let Some(report) = looked_at("panels.mjs", &[TRAIN], &[]) else {
        return;
    };
    let tabs = report["tabs"].as_object().unwrap();
    assert!(tabs["names"].as_array().unwrap().len() >= 14, "{tabs:#?}");
    for (name, tab) in tabs.iter().filter(|(name, _)| *name != "names") {
        assert!(tab.is_string(), "{name}: {tab:#}");
    }
    for (name, part) in report["numbers"].as_object().unwrap() {
        assert!(
            name == "memory" || number(part, "/compared") > 0.0,
            "{name}: {part}"
        );
        assert_eq!(part["missing"], json!([]), "{name}");
    }
    let table = &report["table"];
    assert!(number(table, "/rows") >= 3.0, "{table:#}");
    assert_eq!(
        (&table["isReversed"], &table["filtered"]),
        (&json!(true), &json!(true)),
        "{table:#}"
    );
    assert_eq!(table["sort"], json!(["descending"]), "{table:#}");
    assert!(!table["wrongPattern"].as_str().unwrap().is_empty());
    assert!(
        number(table, "/copied/lines") >= number(table, "/rows"),
        "{table:#}"
    );
    assert_eq!(
        number(table, "/keys/0") - number(table, "/keys/1"),
        1.0,
        "{table:#}"
    );
    assert!(table["opened"].is_object(), "{table:#}");

    assert!(number(&report, "/findings/buttons") >= 1.0);
    assert_eq!(report["findings"]["isInWindow"], true);
    assert!(report["findings"]["selected"].is_object());
    for (name, value) in report["details"].as_object().unwrap() {
        assert!(name == "frames" || value == true, "details, {name}: {value}");
    }
    for (name, value) in report["history"].as_object().unwrap() {
        assert_eq!(value, true, "history, {name}");
    }
    let search = &report["search"];
    for name in ["first", "second", "closed"] {
        assert_eq!(search[name], true, "{name}: {search:#}");
    }
    assert_eq!(search["focused"], "combobox", "{search:#}");
    let total = search["total"].as_u64().unwrap();
    assert!(
        total > 1
            && search["words"]
                .as_str()
                .unwrap()
                .replace([',', '\u{202f}'], "")
                .contains(&total.to_string()),
        "{search:#}"
    );

    let commands = &report["commands"];
    assert_eq!(commands["by"], json!(["kernels", "shape"]));
    assert!(
        number(commands, "/range/0").abs() <= 1.0 && number(commands, "/range/1").abs() <= 1.0,
        "{commands:#}"
    );
    assert_eq!(
        (&commands["all"], &commands["step"]),
        (&json!(true), &json!(true)),
        "{commands:#}"
    );
    assert_eq!(commands["whatIf"][0], "what-if");
    for name in ["unknown", "unknownOption", "wrongTime"] {
        assert!(
            !commands[name].as_str().unwrap().is_empty(),
            "{name}: {commands:#}"
        );
    }
    assert!(
        commands["completed"].as_str().unwrap().starts_with(":analyze"),
        "{commands:#}"
    );
    assert_eq!(
        report["sql"]["count"]
            .as_str()
            .map(|count| count.replace([',', '\u{202f}'], "")),
        report["sql"]["expected"].as_str().map(str::to_owned)
    );
    assert!(report["sql"]["wrong"].as_str().unwrap().contains("selec"));
    assert_eq!(report["area"]["rows"], report["area"]["expected"]);
    let printed = report["area"]["commands"].as_array().unwrap();
    assert!(
        printed.iter().any(|line| line
            .as_str()
            .unwrap()
            .starts_with("tracesmith analyze FILE --from")),
        "{printed:?}"
    );
    assert_eq!(
        (&report["keysList"]["opened"], &report["keysList"]["closed"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(report["markup"]["names"], report["markup"]["shown"]);
    assert_eq!(report["markup"]["elements"], 0);
    for scheme in ["light", "dark"] {
        for (tab, found) in report["axe"][scheme].as_object().unwrap() {
            assert_eq!(found, &json!([]), "{tab}, {scheme}");
        }
    }
    for list in ["/console", "/foreign", "/dialogs"] {
        is_empty(&report, list);
    }
}

/// If gemm takes half the time, each step ends 1 ms sooner than the one before.
#[test]
fn a_what_if_is_a_timeline_beneath_the_measured_one() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("steps.sbt");
    write_steps(&file);
    let file = file.to_str().unwrap();
    let Some(report) = looked_at("ghost.mjs", &[file], &[]) else {
        return;
    };
    assert_eq!(report["begun"], json!({"address": true, "pressed": "true"}));
    let rows = &report["rows"];
    assert_eq!(
        rows["tracks"],
        json!(["device", "stream", "markers", "calls"]),
        "{rows:#}"
    );
    assert_eq!(
        (number(rows, "/items"), &rows["beneath"], &rows["named"]),
        (4.0, &json!(true), &json!(true)),
        "{rows:#}"
    );
    for part in ["/pixels", "/darkPixels"] {
        assert_eq!(number(&report, &format!("{part}/checked")), 24.0);
        is_empty(&report, &format!("{part}/wrong"));
    }
    let verdict = report["verdict"].as_str().unwrap();
    assert!(
        verdict
            .starts_with("Median step 9.00 ms → 8.00 ms, saves 1.00 ms (11.1 %). Then critical: CPU code "),
        "{verdict}"
    );
    // Five steps after the warm-up, 1 ms of gemm in each. The path ends with the last wait, not with the last step.
    assert!(
        verdict.ends_with(" 77.8 %, gemm 14.4 %, norm 7.2 %."),
        "{verdict}"
    );
    let command = ["analyze", file, "--scale", "gemm=0.5", "--format", "json"];
    let printed: Value = serde_json::from_str(&tracesmith(command).ok()).unwrap();
    assert_eq!(report["answer"], printed);
    assert_eq!(printed["what_if"][0]["step"]["changed_ns"], 8_000_000);
    assert_eq!(
        report["switched"],
        json!({"hidden": {"pressed": "false", "same": true}, "address": true, "again": true})
    );
    assert_eq!(report["restored"], json!({"same": true, "verdict": true}));
    let moved = &report["moved"];
    assert_eq!(
        (
            &moved["same"],
            &moved["layer"],
            &moved["duration"],
            &moved["restored"]
        ),
        (&json!(true), &json!("ghost"), &json!(1_000_000), &json!(true)),
        "{moved:#}"
    );
    // The third step: 2 ms sooner, and half as long.
    assert_eq!(
        (
            &moved["measured"][1],
            &moved["measured"][3],
            &moved["measured"][4],
            &moved["measured"][5]
        ),
        (
            &json!("2.00 ms"),
            &json!("1.00 ms"),
            &json!("−2.00 ms"),
            &json!("−1.00 ms")
        ),
        "{moved:#}"
    );
    let copies = &report["copies"];
    assert!(
        copies["verdict"].as_str().unwrap().contains("9.00 ms → 9.00 ms"),
        "{copies:#}"
    );
    assert_eq!(copies["answer"], printed["what_if"][0]["measured_ns"]);
    assert_eq!(report["removed"], json!({"hidden": true, "same": true}));
    for scheme in ["light", "dark"] {
        is_empty(&report, &format!("/axe/{scheme}"));
    }
    for list in ["/console", "/foreign"] {
        is_empty(&report, list);
    }
}

#[test]
fn notes_are_kept_and_saved_next_to_the_trace() {
    let folder = TempDir::new().unwrap();
    let trace = folder.path().join("train.sbt");
    std::fs::copy(root().join(TRAIN), &trace).unwrap();
    let Some(report) = looked_at("notes.mjs", &[trace.to_str().unwrap(), "--control"], &[]) else {
        return;
    };
    // The counters of this trace begin long before the work of the GPU, which is shown at first.
    let first = &report["window"];
    let (from, to) = (number(first, "/window/from"), number(first, "/window/to"));
    let work = (number(first, "/work/0"), number(first, "/work/1"));
    assert!(from < work.0 && to > work.1, "{first:#}");
    assert!(
        to - from < 1.2 * (work.1 - work.0) && to - from < 0.1 * number(first, "/span"),
        "{first:#}"
    );

    let markup = "<img src=x onerror=alert(1)>";
    let (note, gap) = (&report["about"]["note"], &report["about"]["selection"]);
    assert_eq!(note["text"], markup);
    assert_eq!(note["from_ns"], gap["start"]);
    assert_eq!(
        number(note, "/to_ns"),
        number(gap, "/start") + number(gap, "/duration")
    );
    assert_eq!(report["draft"], json!([markup]), "a reload lost the note");
    assert_eq!(report["unsaved"], "Not saved");
    assert_eq!(
        (&report["saved"], &report["canSaveAgain"]),
        (&json!("Saved next to the trace"), &json!(false))
    );
    let written = std::fs::read(folder.path().join("train.sbt.notes.json")).unwrap();
    let written: Value = serde_json::from_slice(&written).unwrap();
    let notes = written["notes"].as_array().unwrap();
    assert_eq!(notes.len(), 2, "{written:#}");
    assert!(notes.contains(note), "{written:#}");

    assert_eq!(
        report["other"].as_array().unwrap().len(),
        2,
        "another browser: {}",
        report["other"]
    );
    let flag = &report["flag"];
    assert_eq!(
        (&flag["title"], &flag["field"]),
        (&report["other"][0], &report["other"][0])
    );
    assert_eq!(flag["tab"], "notes");
    assert_eq!(
        (&report["shown"], &report["deleted"], &report["images"]),
        (&json!(true), &json!([1, 2]), &json!(0))
    );
    for list in ["/axe", "/axeDark", "/console", "/dialogs", "/foreign"] {
        is_empty(&report, list);
    }
}

#[test]
fn two_traces_are_aligned_by_steps_on_one_timeline() {
    let folder = TempDir::new().unwrap();
    let part = folder.path().join("part.sbt");
    let part = part.to_str().unwrap();
    tracesmith(["cut", DEMO, "--from", "542.95ms", "--to", "547ms", "-o", part]).ok();
    let Some(report) = looked_at("compare.mjs", &[DEMO, part], &[]) else {
        return;
    };
    assert_eq!(
        report["begun"],
        json!({"b": 1, "align": "steps", "address": true})
    );
    let rows = &report["rows"];
    let (a, b) = (number(rows, "/tracks/0"), number(rows, "/tracks/1"));
    assert_eq!(number(rows, "/items"), a + b, "{rows:#}");
    assert_eq!(number(rows, "/distinct"), a + b, "{rows:#}");
    assert_eq!((number(rows, "/a"), number(rows, "/b")), (a, b), "{rows:#}");
    assert!(number(rows, "/neighbors") >= b - 1.0, "{rows:#}");
    assert_eq!(rows["named"], true, "{rows:#}");
    let steps = &report["steps"];
    assert!(number(steps, "/checked") >= 20.0, "{steps:#}");
    assert_eq!(number(steps, "/wrong"), 0.0, "{steps:#}");
    assert!(number(steps, "/offsets") >= 3.0, "{steps:#}");
    assert!(number(&report, "/requests/count") > 0.0, "{}", report["requests"]);
    assert_eq!(report["requests"]["repeated"], 0);
    let colors = &report["colors"];
    assert!(number(colors, "/checked") >= 5.0, "{colors:#}");
    assert_eq!(number(colors, "/wrong"), 0.0, "{colors:#}");
    for part in ["selected", "restored"] {
        for (name, value) in report[part].as_object().unwrap() {
            assert_eq!(value, true, "{part}, {name}");
        }
    }
    let aligned = &report["aligned"];
    assert_eq!(
        (
            number(aligned, "/start"),
            number(aligned, "/hand"),
            &aligned["steps"]
        ),
        (0.0, -1_500_000.0, &json!("steps")),
        "{aligned:#}"
    );
    assert!((number(aligned, "/nudge") - 0.01).abs() < 0.001, "{aligned:#}");
    assert_eq!(
        (&aligned["step"], &aligned["address"]),
        (&json!(true), &json!(true)),
        "{aligned:#}"
    );
    let tab = &report["tab"];
    assert!(
        number(tab, "/wanted") >= 10.0 && number(tab, "/kernels") >= 2.0,
        "{tab:#}"
    );
    is_empty(&report, "/tab/missing");
    assert!(
        tab["command"].as_str().unwrap().starts_with("tracesmith diff "),
        "{tab:#}"
    );
    assert_eq!(
        tab["pair"],
        json!({"layers": ["a", "b"], "same": true, "isSeen": true, "step": [true, true]})
    );
    for scheme in ["light", "dark"] {
        is_empty(&report, &format!("/axe/{scheme}"));
    }
    is_empty(&report, "/file/axe");
    assert!(number(&report, "/file/files") >= 1.0 && report["file"]["closed"] == true);
    assert_eq!(report["swapped"], json!({"offset": 0, "window": true, "back": 0}));
    assert_eq!(report["ended"], json!({"rows": true, "same": true}));
    assert_eq!(
        report["changed"],
        json!({"text": "The file changed. Reload.", "after": ""})
    );
    assert_eq!(
        report["absent"],
        json!({"text": "Cannot compare: no trace with number 77 is open.", "compare": null})
    );
    for list in ["/console", "/foreign"] {
        is_empty(&report, list);
    }
}

#[test]
fn a_recording_grows_at_the_right_edge_and_can_be_held() {
    let folder = TempDir::new().unwrap();
    let [path, stop] = ["live.sbt", "stop"].map(|name| folder.path().join(name));
    let (file, until) = (path.clone(), stop.clone());
    let (begun, has_begun) = std::sync::mpsc::channel();
    let recording = std::thread::spawn(move || write_until(&file, &until, &begun));
    has_begun.recv().unwrap();
    let report = looked_at(
        "live.mjs",
        &[path.to_str().unwrap()],
        &["AXE", stop.to_str().unwrap()],
    );
    std::fs::write(&stop, "").unwrap();
    let kernels = recording.join().unwrap();
    let Some(report) = report else { return };
    assert_eq!(report["button"], "Live");
    let grown = &report["grown"];
    for name in ["generations", "atEdge", "edgeDrawn", "kept", "moved"] {
        assert_eq!(grown[name], 3, "{name}: {grown:#}");
    }
    assert_eq!(grown["rowsAdded"], true, "{grown:#}");
    assert_eq!(report["requests"]["held"], 0, "{report:#}");
    assert_eq!(report["zoomed"]["following"], true, "{report:#}");
    assert!(number(&report, "/zoomed/share") < 0.6, "{report:#}");
    let held = &report["held"];
    assert_eq!(
        (&held["following"], &held["same"]),
        (&json!(false), &json!(true)),
        "{held:#}"
    );
    assert!(number(held, "/behind") > 0.0, "{held:#}");
    assert!(
        held["button"].as_str().unwrap().starts_with("Paused, "),
        "{held:#}"
    );
    let resumed = &report["resumed"];
    assert_eq!(
        (&resumed["following"], &resumed["atEdge"], &resumed["button"]),
        (&json!(true), &json!(true), &json!("Live")),
        "{resumed:#}"
    );
    let ended = &report["ended"];
    assert_eq!(
        (&ended["slices"], &ended["button"]),
        (&json!(kernels), &json!("")),
        "{ended:#}"
    );
    assert_eq!(ended["sameAsNew"], true, "{ended:#}");
    for list in ["/axe", "/console", "/foreign"] {
        is_empty(&report, list);
    }
}

#[test]
fn a_flight_has_no_holes_and_the_number_of_events_does_not_matter() {
    let folder = TempDir::new().unwrap();
    let [few, many] = [5_000, 500_000].map(|kernels| {
        let path = folder.path().join(format!("{kernels}.sbt"));
        write_trace(&path, kernels);
        path
    });
    let files = [few.to_str().unwrap(), many.to_str().unwrap()];
    let Some(report) = looked_at("flight.mjs", &files, &["0", "1"]) else {
        return;
    };
    let flight = &report["flight"];
    print_figures(&report);
    assert!(number(flight, "/frames") >= 400.0, "{flight:#}");
    assert_eq!(
        (&flight["holes"], &flight["repeated"]),
        (&json!(0), &json!(0)),
        "{flight:#}"
    );
    assert!(number(flight, "/requests") <= 300.0, "{flight:#}");
    // About 2 on a machine that does nothing else.
    assert!(number(&report, "/draw/ratio") <= 2.5, "{:#}", report["draw"]);
    is_empty(&report, "/console");
}

/// What `cargo test -- --nocapture` shows of a flight. Times are those of this machine at this moment.
fn print_figures(report: &Value) {
    for (name, place, unit) in [
        ("frames of the flight", "/flight/frames", ""),
        ("frames with holes", "/flight/holes", ""),
        ("requests for tiles", "/flight/requests", ""),
        ("tiles requested twice", "/flight/repeated", ""),
        ("drawing a frame, median", "/flight/drawMedianMs", " ms"),
        (
            "drawing 100 times the events takes",
            "/draw/ratio",
            " times as long",
        ),
    ] {
        println!("{name}: {:.2}{unit}", number(report, place));
    }
}
