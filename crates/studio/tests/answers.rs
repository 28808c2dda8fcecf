//! What pages ask about a trace: search, events, areas, tables.

use serde_json::Value;

use crate::support::{Running, start, synthetic, traces, train};

fn track<'l>(layout: &'l Value, kind: &str) -> &'l Value {
    let tracks = layout["tracks"].as_array().unwrap();
    tracks
        .iter()
        .filter(|track| track["kind"] == kind)
        .max_by_key(|track| track["slices"].as_u64())
        .unwrap()
}

/// The first slice of a track after a time.
fn next(server: &Running, track: &Value, time: u64) -> Value {
    server.json(&format!(
        "t/0/neighbor?row={}&time={time}&direction=next",
        track["first_row"]
    ))
}

fn event(server: &Running, slice: &Value) -> Value {
    server.json(&format!(
        "t/0/event?row={}&start={}&shape={}",
        slice["row"], slice["start"], slice["shape"]
    ))
}

#[test]
fn a_layout_has_groups_and_rows_in_order() {
    let server = start(&[&train()]);
    let layout = server.ready(0);
    assert_eq!(
        (&layout["state"], &layout["progress"], &layout["health"]["good"]),
        (&"ready".into(), &1.0.into(), &true.into())
    );
    let (groups, tracks) = (
        layout["groups"].as_array().unwrap(),
        layout["tracks"].as_array().unwrap(),
    );
    let listed: usize = groups
        .iter()
        .map(|group| group["tracks"].as_array().unwrap().len())
        .sum();
    assert_eq!(listed, tracks.len());
    for group in groups {
        for id in group["tracks"].as_array().unwrap() {
            let track = &tracks[id.as_u64().unwrap() as usize];
            assert_eq!((&track["id"], &track["group"]), (id, &group["id"]));
        }
    }
    let mut keys: Vec<&str> = tracks
        .iter()
        .map(|track| track["key"].as_str().unwrap())
        .collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), tracks.len());
    let mut rows: Vec<u64> = tracks
        .iter()
        .flat_map(|track| {
            let first = track["first_row"].as_u64().unwrap();
            first..first + track["rows"].as_u64().unwrap()
        })
        .collect();
    rows.sort_unstable();
    assert!(
        rows.iter().enumerate().all(|(at, row)| at as u64 == *row),
        "{rows:?}"
    );
    let shapes = server.json("t/0/shapes");
    let some = server.json("t/0/shapes?from=3");
    assert_eq!(shapes.as_array().unwrap()[3..], some.as_array().unwrap()[..]);
}

#[test]
fn a_kernel_has_its_launch_and_its_launch_has_the_kernel() {
    let server = start(&[&train()]);
    let layout = server.ready(0);
    let stream = track(&layout, "stream");
    let mut slice = next(&server, stream, 0);
    let kernel = loop {
        let found = event(&server, &slice);
        if found["kind"] == "kernel" && !found["launch"].is_null() {
            break found;
        }
        slice = next(&server, stream, slice["start"].as_u64().unwrap());
    };
    assert_eq!(
        (&kernel["row"], &kernel["start"], &kernel["duration"]),
        (&slice["row"], &slice["start"], &slice["duration"])
    );
    assert_eq!(kernel["table"], "kernels");
    let fields: Vec<&str> = kernel["fields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|field| field[0].as_str().unwrap())
        .collect();
    for wanted in ["grid_x", "block_x", "stream", "correlation"] {
        assert!(fields.contains(&wanted), "{fields:?}");
    }
    let runs = &kernel["runs"];
    let counted: u64 = runs["bins"]
        .as_array()
        .unwrap()
        .iter()
        .map(|bin| bin["count"].as_u64().unwrap())
        .sum();
    assert_eq!(counted, runs["count"].as_u64().unwrap());
    assert!(
        runs["min_ns"].as_u64() <= runs["p50_ns"].as_u64()
            && runs["p95_ns"].as_u64() <= runs["max_ns"].as_u64()
    );
    let call = event(&server, &kernel["launch"]);
    assert_eq!(
        (&call["kind"], &call["table"]),
        (&"api".into(), &"api_calls".into())
    );
    let launched = call["ops"].as_array().unwrap();
    assert!(
        launched
            .iter()
            .any(|op| (&op["row"], &op["start"]) == (&kernel["row"], &kernel["start"])),
        "{call}"
    );
    let after = &kernel["waited_by"];
    let follows = after
        .as_array()
        .unwrap()
        .iter()
        .find(|tie| tie["why"] == "stream_order")
        .unwrap();
    let back = event(&server, follows);
    let before = back["waited_for"].as_array().unwrap();
    assert!(
        before
            .iter()
            .any(|tie| tie["why"] == "stream_order" && tie["start"] == kernel["start"]),
        "{back}"
    );
}

#[test]
fn a_call_that_waits_has_the_work_that_it_waited_for() {
    let server = start(&[&train()]);
    server.ready(0);
    let found = server.json("t/0/search?q=Synchronize&in=names&limit=50");
    let waits = found["results"].as_array().unwrap();
    assert!(!waits.is_empty());
    let mut with_work = 0;
    for call in waits {
        let call = event(&server, call);
        for op in call["waited_for"].as_array().unwrap() {
            with_work += 1;
            assert_eq!(op["why"], "host_wait");
            let op = event(&server, op);
            let waiting = op["waited_by"].as_array().unwrap();
            assert!(
                waiting
                    .iter()
                    .any(|tie| tie["why"] == "host_wait" && tie["start"] == call["start"]),
                "{op}"
            );
        }
    }
    assert!(with_work > 0);
}

#[test]
fn a_gap_has_its_cause_and_what_ended_it() {
    let server = start(&[&train()]);
    let layout = server.ready(0);
    let idle = track(&layout, "idle");
    let gap = event(&server, &next(&server, idle, 0));
    assert_eq!(gap["kind"], "idle");
    assert!(!gap["cause"].as_str().unwrap().is_empty() && !gap["name"].as_str().unwrap().contains('_'));
    let end = gap["start"].as_u64().unwrap() + gap["duration"].as_u64().unwrap();
    assert_eq!(gap["ops"][0]["start"], end);
    assert!(gap["runs"]["count"].as_u64().unwrap() > 0);
}

#[test]
fn every_kind_of_slice_can_be_described() {
    let server = start(&[&synthetic()]);
    let layout = server.ready(0);
    let mut kinds = Vec::new();
    for track in layout["tracks"].as_array().unwrap() {
        let slice = next(&server, track, 0);
        let first = server.json(&format!(
            "t/0/neighbor?row={}&time=0&direction=previous",
            track["first_row"]
        ));
        assert!(first.is_null(), "{first}");
        if slice.is_null() {
            continue;
        }
        let found = event(&server, &slice);
        assert_eq!(
            (&found["row"], &found["start"], &found["duration"]),
            (&slice["row"], &slice["start"], &slice["duration"])
        );
        if track["kind"] != "idle" {
            assert!(
                found["table"].is_string() && !found["fields"].as_array().unwrap().is_empty(),
                "{found}"
            );
        }
        kinds.push(track["kind"].as_str().unwrap().to_owned());
    }
    for wanted in ["stream", "calls", "markers"] {
        assert!(kinds.iter().any(|kind| kind == wanted), "{kinds:?}");
    }
    server.get("t/0/event?row=0&start=1").error(404);
    server.get("t/0/event?row=9999&start=1").error(400);
}

#[test]
fn searches_find_names_and_functions() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.sbt");
    let kernels = [
        ("gemm", 1_000, 50),
        ("copy_kernel", 1_100, 20),
        ("GEMM_big", 1_200, 500),
        ("gemm", 2_000, 60),
    ];
    std::fs::write(&file, traces::kernels(&kernels, &["train.py"])).unwrap();
    let server = start(&[&file]);
    server.ready(0);
    let found = server.json("t/0/search?q=gemm&in=names");
    assert_eq!((&found["total"], &found["truncated"]), (&3.into(), &false.into()));
    let starts: Vec<u64> = found["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|hit| hit["start"].as_u64().unwrap())
        .collect();
    assert_eq!(starts, [0, 200, 1_000]);
    assert_eq!(found["results"][0]["where"], "name");
    assert_eq!(
        (&found["shapes"][0]["count"], &found["shapes"][0]["total_ns"]),
        (&1.into(), &500.into())
    );
    assert_eq!(
        (&found["shapes"][1]["count"], &found["shapes"][1]["total_ns"]),
        (&2.into(), &110.into())
    );
    let regex = server.json("t/0/search?q=%2F%5Egemm%24%2F&in=names");
    assert_eq!(regex["total"], 2);
    server.get("t/0/search?q=%2F%5B%2F").error(400);
    let limited = server.json("t/0/search?q=gemm&in=names&limit=1");
    assert_eq!(
        (&limited["total"], &limited["truncated"]),
        (&3.into(), &true.into())
    );
    let part = server.json("t/0/search?q=gemm&in=names&from=150&to=900");
    assert_eq!(
        (&part["total"], &part["results"][0]["name"]),
        (&1.into(), &"GEMM_big".into())
    );
    let row = &found["results"][0]["row"];
    let near = |way: &str| server.json(&format!("t/0/neighbor?row={row}&{way}"));
    let shape = &found["results"][0]["shape"];
    assert_eq!(near("time=-1&direction=next")["start"], 0);
    assert_eq!(near("time=0&direction=next")["start"], 100);
    assert_eq!(
        near(&format!("time=0&direction=next&shape={shape}"))["start"],
        1_000
    );
    assert_eq!(
        near(&format!("time=1000&direction=previous&shape={shape}"))["start"],
        0
    );
    assert!(near("time=1000&direction=next").is_null() && near("time=-1&direction=previous").is_null());
    let by_stack = server.json("t/0/search?q=function_1");
    assert_eq!(
        (&by_stack["total"], &by_stack["results"][0]["where"]),
        (&4.into(), &"stack".into())
    );
    let not_there = server.json("t/0/search?q=function_1&in=names,markers");
    assert_eq!(not_there["total"], 0);
    assert_eq!(server.json("t/0/search?q=")["total"], 0);
}

#[test]
fn areas_and_graphs_add_up() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.sbt");
    std::fs::write(
        &file,
        traces::kernels(
            &[("a", 1_000, 50), ("b", 1_100, 20), ("a", 1_200, 30)],
            &["train.py"],
        ),
    )
    .unwrap();
    let server = start(&[&file]);
    let layout = server.ready(0);
    let row = &track(&layout, "stream")["first_row"];
    let area = server.json(&format!("t/0/area?rows={row}&from=0&to=110"));
    assert_eq!((&area["busy_ns"], &area["rows"]), (&60.into(), &1.into()));
    assert_eq!(
        (&area["shapes"][0]["name"], &area["shapes"][0]["busy_ns"]),
        (&"a".into(), &50.into())
    );
    let flame = server.json("t/0/flame?by=time");
    assert_eq!(
        (&flame["total"], &flame["unit"], &flame["root"]["value"]),
        (&100.into(), &"ns".into(), &100.into())
    );
    let function = &flame["root"]["children"][0];
    assert_eq!(
        (&function["name"], &function["kind"], &function["value"]),
        (&"function_1".into(), &"python".into(), &100.into())
    );
    assert_eq!(
        (&function["children"][0]["name"], &function["children"][0]["self"]),
        (&"a".into(), &80.into())
    );
    let count = server.json("t/0/flame?by=count&from=0&to=150");
    assert_eq!((&count["total"], &count["unit"]), (&2.into(), &"launches".into()));
}

#[test]
fn tables_have_pages_and_times_that_count_from_the_origin() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.sbt");
    let second: u64 = 1_700_000_000_000_000_000;
    let kernels = [
        ("a", second, 50),
        ("b", second + 100, 20),
        ("c", second + 200, 30),
    ];
    std::fs::write(&file, traces::kernels(&kernels, &[])).unwrap();
    let server = start(&[&file]);
    assert_eq!(server.ready(0)["origin_ns"], second.to_string());
    let all = server.json("t/0/table/kernels?columns=name,start,end,duration");
    assert_eq!(
        all["columns"],
        serde_json::json!(["name", "start", "end", "duration"])
    );
    assert_eq!(
        all["rows"],
        serde_json::json!([["a", 0, 50, 50], ["b", 100, 120, 20], ["c", 200, 230, 30]])
    );
    let page = server.json("t/0/table/kernels?columns=name&limit=1&offset=1");
    assert_eq!(
        (&page["rows"], &page["total"]),
        (&serde_json::json!([["b"]]), &3.into())
    );
    let part = server.json("t/0/table/kernels?columns=name&from=150&to=300");
    assert_eq!(
        (&part["rows"], &part["total"]),
        (&serde_json::json!([["c"]]), &1.into())
    );
    server.get("t/0/table/kernels?columns=absent").error(404);
    server.get("t/0/table/kernels?from=400").error(400);
    let states = server.json("t/0/table/states");
    let columns: Vec<&str> = states["columns"]
        .as_array()
        .unwrap()
        .iter()
        .map(|name| name.as_str().unwrap())
        .collect();
    assert_eq!(columns[..5], ["kind", "device", "process", "context", "stream"]);
    let running = columns.iter().position(|name| *name == "running_ns").unwrap();
    let stream = states["rows"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row[0] == "stream")
        .unwrap();
    assert_eq!(stream[running], 100);
}
