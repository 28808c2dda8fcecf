//! Predicted timelines over HTTP: what the library predicts, in the form of every other trace.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tracesmith_trace::analysis::{Analysis, WhatIf};
use tracesmith_trace::grid::TrackKind;
use tracesmith_trace::overview::RowKey;
use tracesmith_trace::reconstruct::Window;
use tracesmith_trace::{Trace, grid};

use crate::support::{Running, start, synthetic, train};

/// The GPU work takes three times as long, and the CPU does not wait.
const CHANGES: &str = r#"{"scales": [{"name": "*", "factor": 3.0}], "host_waits": "left"}"#;

/// Asks for a prediction and waits for it. Gives its number and its layout.
fn predicted(server: &Running, changes: &str) -> (u64, Value) {
    let id = server.post("t/0/predict", changes).good()["id"].as_u64().unwrap();
    let begin = Instant::now();
    loop {
        let layout = server.json(&format!("t/{id}/layout"));
        if layout["state"] != "reading" {
            return (id, layout);
        }
        assert!(begin.elapsed() < Duration::from_secs(120), "{layout}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Start, duration and name of every slice of a track.
fn slices(server: &Running, id: u64, layout: &Value, track: &Value) -> Vec<(u64, u64, String)> {
    let shapes = server.json(&format!("t/{id}/shapes"));
    let first = track["first_row"].as_u64().unwrap();
    let last = first + track["rows"].as_u64().unwrap() - 1;
    let path = format!(
        "t/{id}/{}/slices?rows={first}-{last}&from=0&to={}&limit=100000",
        layout["generation"].as_str().unwrap(),
        u64::MAX
    );
    let bytes = server.get(&path).body;
    assert_eq!(&bytes[..4], b"TSSL");
    let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let time = |at: usize| f64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as u64;
    let (mut found, mut at) = (Vec::new(), 16);
    for _ in 0..number(8) {
        let count = number(at + 4) as usize;
        assert_eq!(number(at + 8), 0, "there are more");
        at += 16;
        for slice in 0..count {
            let shape = number(at + 16 * count + 4 * slice) as usize;
            let name = shapes[shape][0].as_str().unwrap().to_owned();
            found.push((time(at + 8 * slice), time(at + 8 * count + 8 * slice), name));
        }
        at = (at + 20 * count).next_multiple_of(8);
    }
    found.sort();
    found
}

#[test]
fn a_predicted_timeline_has_the_slices_that_the_library_predicts() {
    let server = start(&[&train()]);
    let measured = server.ready(0);
    let (id, layout) = predicted(&server, CHANGES);
    assert_eq!(
        (&layout["state"], &layout["predicted_of"], &layout["origin_ns"]),
        (&"ready".into(), &0.into(), &measured["origin_ns"])
    );
    assert!(layout["span_ns"].as_u64() > Some(0));
    assert_eq!(
        server.json("t/0/layout"),
        measured,
        "what was measured stays as it is"
    );

    let trace = Arc::new(Trace::open(&train()).unwrap());
    let analysis = Analysis::of(&trace, Window::default()).unwrap();
    let what_if: WhatIf = serde_json::from_str(CHANGES).unwrap();
    let expected = analysis.predicted(&what_if, &|_| Ok(())).unwrap();
    let origin: u64 = layout["origin_ns"].as_str().unwrap().parse().unwrap();
    let activity = &analysis.activity;
    let mut streams: BTreeMap<String, Vec<(u64, u64, String)>> = BTreeMap::new();
    for (op, (from, to)) in expected.ops() {
        let lane = activity.lane(activity.ops.get(op).lane);
        let key = format!(
            "stream:{}.{}.{}.{}",
            lane.device.0, lane.process.0, lane.context.0, lane.stream.0
        );
        let name = activity.name(&trace, op).to_owned();
        streams
            .entry(key)
            .or_default()
            .push((from - origin, to - from, name));
    }
    let tracks = layout["tracks"].as_array().unwrap();
    let mut compared = 0;
    for (key, mut ops) in streams {
        ops.sort();
        let track = tracks.iter().find(|track| track["key"] == key.as_str());
        let track = track.unwrap_or_else(|| panic!("no {key} in {tracks:?}"));
        compared += ops.len();
        assert_eq!(slices(&server, id, &layout, track), ops, "{key}");
    }
    assert_eq!(compared, activity.ops.len());

    // Calls and ranges: those of the library's grid.
    let grid = grid::Grid::new(&trace, grid::GridOptions::default()).unwrap();
    let grid = grid.predicted(&expected, &|_| Ok(())).unwrap();
    for track in grid.tracks().iter().filter(|track| {
        matches!(
            track.kind,
            TrackKind::Calls | TrackKind::Markers | TrackKind::Host
        )
    }) {
        assert!(matches!(track.key, grid::TrackKey::Row(RowKey::Thread { .. })));
        let mut of_library = Vec::new();
        for row in track.first_row..track.first_row + track.rows {
            let found = grid.slices(row, 0, u64::MAX, usize::MAX);
            for at in 0..found.starts.len() {
                let name = grid.shapes()[found.shapes[at] as usize].name.clone();
                of_library.push((found.starts[at], found.durations[at], name));
            }
        }
        of_library.sort();
        let shown = tracks
            .iter()
            .find(|shown| shown["key"] == track.address.as_str())
            .unwrap();
        assert_eq!(
            slices(&server, id, &layout, shown),
            of_library,
            "{}",
            track.address
        );
        compared += of_library.len();
    }
    assert!(compared > 2 * activity.ops.len());
    assert_eq!(layout["span_ns"], grid.span());

    // The command's answer for the whole trace has the same end.
    let report = server.json(&format!("t/0/analysis/what-if?what_if={}", encoded(CHANGES)));
    assert_eq!(report["what_if"][0]["changed_ns"], expected.total());
}

/// Text as a part of a request.
fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

#[test]
fn a_predicted_timeline_has_tiles_neighbors_and_areas() {
    let server = start(&[&train()]);
    server.ready(0);
    let (id, layout) = predicted(&server, CHANGES);
    let device = &layout["tracks"][0];
    assert_eq!(device["kind"], "device");
    let generation = layout["generation"].as_str().unwrap();
    // The first tile of this level has the whole trace.
    let level = (layout["span_ns"].as_u64().unwrap() / 1024).ilog2() + 1;
    let tiles = server.get(&format!(
        "t/{id}/{generation}/tiles?level={level}&first=0&count=1&rows=0"
    ));
    assert_eq!((tiles.status, &tiles.body[..4]), (200, &b"TSTL"[..]));
    let cells = &tiles.body[32 + 8..];
    let counts = &cells[6 * 1024..7 * 1024];
    assert!(counts.iter().any(|count| *count > 0), "ops start on the device");
    let stream = layout["tracks"]
        .as_array()
        .unwrap()
        .iter()
        .find(|track| track["kind"] == "stream")
        .unwrap();
    let next = server.json(&format!(
        "t/{id}/neighbor?row={}&time=0&direction=next",
        stream["first_row"]
    ));
    let all = slices(&server, id, &layout, stream);
    assert_eq!(
        (next["start"].as_u64(), next["duration"].as_u64()),
        (Some(all[0].0), Some(all[0].1))
    );
    let area = server.json(&format!(
        "t/{id}/area?rows={}&from=0&to={}",
        stream["first_row"],
        u64::MAX
    ));
    assert!(area["busy_ns"].as_u64() > Some(0));
    // It has rows and nothing else.
    for other in [
        "analysis/summary",
        "event?row=0&start=0",
        "search?text=a",
        "flame",
        "table/kernels",
    ] {
        let refused = server.get(&format!("t/{id}/{other}"));
        assert_eq!(refused.status, 400, "{other}: {}", refused.text());
    }
    let (session, changes) = (server.json("session"), server.get("t/1048999/layout"));
    assert_eq!(session["traces"].as_array().unwrap().len(), 1);
    assert!(changes.error(404).contains("no prediction with number 1048999"));
    server.post("t/0/predict", r#"{"scales": 3}"#).error(400);
    let backwards = r#"{"scales": [{"name": "*", "factor": -1}]}"#;
    assert!(
        server
            .post("t/0/predict", backwards)
            .error(400)
            .contains("0 or more")
    );
    server.post("t/7/predict", CHANGES).error(404);
}

#[test]
fn a_question_has_one_number_as_long_as_it_is_kept() {
    let server = start(&[&synthetic()]);
    server.ready(0);
    let with = |factor: u32| format!(r#"{{"scales": [{{"name": "*", "factor": {factor}}}]}}"#);
    let (first, layout) = predicted(&server, &with(2));
    assert_eq!(predicted(&server, &with(2)), (first, layout));
    for factor in 3..7 {
        assert_ne!(predicted(&server, &with(factor)).0, first);
    }
    server.get(&format!("t/{first}/layout")).error(404);
    assert!(predicted(&server, &with(2)).0 > first);
}

#[test]
fn an_event_is_found_in_the_other_timeline() {
    let server = start(&[&train()]);
    let measured = server.ready(0);
    let (id, layout) = predicted(&server, CHANGES);
    let tracks = measured["tracks"].as_array().unwrap();
    let mut moved = 0;
    for track in tracks.iter().filter(|track| track["rows"].as_u64() > Some(0)) {
        let kind = track["kind"].as_str().unwrap();
        let next = server.json(&format!(
            "t/0/neighbor?row={}&time=80000000&direction=next",
            track["first_row"]
        ));
        if next.is_null() || kind == "device" {
            continue;
        }
        let question = |slice: &Value, side: &str| {
            format!(
                "t/{id}/moved?row={}&start={}&shape={}&side={side}",
                slice["row"], slice["start"], slice["shape"]
            )
        };
        let found = server.json(&question(&next, "measured"));
        if !["stream", "calls", "markers", "host"].contains(&kind) {
            assert!(found.is_null(), "{kind} {found}");
            continue;
        }
        if found.is_null() {
            // Waits that a stream reports, and threads without launches, have no predicted times.
            continue;
        }
        assert_eq!(found["measured"]["start"], next["start"], "{kind}");
        assert_eq!(found["measured"]["name"], found["predicted"]["name"], "{kind}");
        let back = server.json(&question(&found["predicted"], "predicted"));
        assert_eq!(back, found, "{kind}");
        moved += u32::from(found["measured"]["start"] != found["predicted"]["start"]);
        let there = layout["tracks"]
            .as_array()
            .unwrap()
            .iter()
            .find(|other| other["key"] == track["key"]);
        let first = there.unwrap()["first_row"].as_u64().unwrap();
        assert!(found["predicted"]["row"].as_u64() >= Some(first));
    }
    assert!(moved >= 2, "{moved}");
}
