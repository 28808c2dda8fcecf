//! What the real Perfetto UI shows of the recording that we ship, in a browser. The picture is kept for those who want to
//! look for themselves: `perfetto-ui.png` in the target folder's `tmp`.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use crate::support;

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};
use support::{perfetto, root, tracesmith};
use tempfile::TempDir;

/// A track as the picture shows it.
struct Track {
    name: String,
    y: f64,
    /// The part of it that has a colour.
    covered: f64,
    /// Points that are not grey, by colour.
    colours: BTreeMap<String, u64>,
}

impl Track {
    fn new(seen: &Value) -> Self {
        let number = |key: &str| seen[key].as_f64().unwrap();
        let colours: BTreeMap<String, u64> = serde_json::from_value(seen["colours"].clone()).unwrap();
        Track {
            name: seen["name"].as_str().unwrap().to_owned(),
            y: number("y"),
            covered: colours.values().sum::<u64>() as f64 / (number("width") * number("height")),
            colours,
        }
    }
}

#[test]
fn the_gpu_of_the_recording_is_seen_in_the_user_interface() {
    let folder = TempDir::new().unwrap();
    let recording = root().join("fixtures/demo-h200.sbt");
    let out = folder.path().join("demo.pftrace");
    let args = [
        "export",
        recording.to_str().unwrap(),
        "-f",
        "perfetto",
        "-o",
        out.to_str().unwrap(),
    ];
    tracesmith(args).ok();
    let kernels = kernels(&recording);
    let number = |kernel: &Value, key: &str| kernel[key].as_u64().unwrap();
    let first = kernels
        .iter()
        .map(|kernel| number(kernel, "start_ns"))
        .min()
        .unwrap();
    let last = kernels
        .iter()
        .map(|kernel| number(kernel, "end_ns"))
        .max()
        .unwrap();
    let picture = Path::new(env!("CARGO_TARGET_TMPDIR")).join("perfetto-ui.png");
    let sql = "select count(*), sum(dur) from slice where category = 'kernel'";
    let Some(seen) = perfetto::show(&out, (first, last), &picture, sql) else {
        return;
    };
    // The interface's own engine has loaded what we wrote.
    let nanos: u64 = kernels.iter().map(|kernel| number(kernel, "duration_ns")).sum();
    assert_eq!(seen["rows"], json!([[kernels.len(), nanos]]));
    let tracks: Vec<Track> = seen["tracks"]
        .as_array()
        .unwrap()
        .iter()
        .map(Track::new)
        .collect();
    let named = |name: &str| {
        let found = tracks.iter().find(|track| track.name == name);
        found.unwrap_or_else(|| panic!("{name} is not among {:?}", names(&tracks)))
    };
    // From top to bottom.
    let order = [
        "GPU 0 NVIDIA H200",
        "Stream 13",
        "Stream 14",
        "Syncs of no stream",
        "power",
        "tracesmith 417",
    ];
    let heights: Vec<f64> = order.iter().map(|name| named(name).y).collect();
    assert!(heights.is_sorted(), "{:?}", names(&tracks));
    // Slices are really drawn: stream 13 is busy with kernels of several names, stream 14 now and then.
    for (name, covered, colours) in [("Stream 13", 0.2, 4), ("Stream 14", 0.05, 1)] {
        let track = named(name);
        assert!(track.covered > covered, "{name}: {}", track.covered);
        let broad = track.colours.values().filter(|points| **points >= 30).count();
        assert!(broad >= colours, "{name}: {:?}", track.colours);
    }
    assert!(std::fs::metadata(&picture).unwrap().len() > 10_000);
}

fn kernels(trace: &Path) -> Vec<Value> {
    let args = ["view", trace.to_str().unwrap(), "--format", "json", "-n", "0"];
    let events: Vec<Value> = serde_json::from_str(&tracesmith(args).ok()).unwrap();
    events
        .into_iter()
        .filter(|event| event["kind"] == "kernel")
        .collect()
}

fn names(tracks: &[Track]) -> Vec<&str> {
    tracks.iter().map(|track| track.name.as_str()).collect()
}
