//! Commands that show stacks, on a recording that was just made.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    clippy::print_stdout,
    reason = "a test may stop on any error and say what it skips"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use crate::support;

use serde_json::Value;
use support::rows::joined_kernels;
use support::stacks::functions;
use support::stage::{Place, run, stage};

#[test]
fn view_shows_who_captured_a_node_and_who_launched_its_graph() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    place.profiled("--stacks native", "launcher graph 1 1");
    let text = run(&mut place.tracesmith("view t.sbt --kind kernel --stacks")).ok();
    let captured = text.find("launch_noops").unwrap();
    let launched = text.find("launched by").unwrap();
    assert!(captured < launched, "{text}");
    assert!(text[launched..].contains("mode_graph"), "{text}");
    let json = run(&mut place.tracesmith("view t.sbt --kind kernel --stacks --format json")).ok();
    let rows: Value = serde_json::from_str(&json).unwrap();
    let names = |key: &str| -> Vec<String> {
        let frames = rows[0][key].as_array().unwrap();
        frames
            .iter()
            .map(|frame| frame["function"].as_str().unwrap().to_owned())
            .collect()
    };
    assert!(names("stack").contains(&"launch_noops".to_owned()));
    assert!(!names("launch_stack").contains(&"launch_noops".to_owned()));
    assert!(names("launch_stack").contains(&"mode_graph".to_owned()));
    let without = run(&mut place.tracesmith("view t.sbt --kind kernel")).ok();
    assert!(!without.contains("launch_noops"));
}

#[test]
fn a_flame_graph_has_every_function_and_the_kernels_below_them() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    place.profiled("--stacks native", "launcher compute 1024");
    for by in ["gpu-time", "launches", "allocated-bytes"] {
        run(&mut place.tracesmith(&format!("flame t.sbt --by {by} --force -o flame.svg"))).ok();
        let picture = std::fs::read_to_string(place.path("flame.svg")).unwrap();
        assert!(picture.starts_with("<?xml") && picture.ends_with("</svg>\n"));
        quick_xml_is_well_formed(&picture);
        for name in ["mode_compute", "main"] {
            assert!(picture.contains(&format!("<title>{name}\n")), "{by}: {name}");
        }
        assert_eq!(picture.contains("<title>matmul\n"), by != "allocated-bytes");
    }
    let folded = run(&mut place.tracesmith("flame t.sbt --folded --by launches -o -")).ok();
    let line = folded.lines().find(|line| line.contains("matmul")).unwrap();
    assert!(
        line.contains("main;mode_compute;") && line.ends_with("matmul 1"),
        "{line}"
    );
}

/// Every element that is opened is closed, in order.
fn quick_xml_is_well_formed(picture: &str) {
    let body = picture.split("<![CDATA[").next().unwrap();
    let mut open = Vec::new();
    for part in body.split('<').skip(1) {
        let element = part.split('>').next().unwrap();
        if let Some(name) = element.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name));
        } else if !element.starts_with('?') && !element.ends_with('/') {
            open.push(element.split_whitespace().next().unwrap());
        }
    }
    assert_eq!(open, ["svg", "script"]);
}

#[test]
fn names_can_be_added_later_from_a_folder() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let stripped = place.path("stripped");
    let tool = |name: &str, arguments: &[&str]| {
        let mut command = std::process::Command::new(name);
        let status = command.args(arguments).arg(stage.path("launcher")).status();
        status.is_ok_and(|status| status.success())
    };
    if !tool("strip", &["-o", stripped.to_str().unwrap()]) {
        return tracesmith_skip::without("cc", "strip");
    }
    let mut profile = place.tracesmith("profile -o t.sbt --stacks native --");
    run(profile.arg(&stripped).args(["launch", "3"])).ok();
    let trace = place.trace("t.sbt");
    let image = trace
        .images
        .columns()
        .map(|(_, columns)| columns.clone())
        .next()
        .unwrap();
    let build_id = image
        .path
        .iter()
        .zip(&image.build_id)
        .find(|(path, _)| trace.string(**path).ends_with("/stripped"))
        .map(|(_, id)| trace.string(*id).to_owned())
        .unwrap();
    let folder = place.path(&format!("debug/.build-id/{}", &build_id[..2]));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::copy(
        stage.path("launcher"),
        folder.join(format!("{}.debug", &build_id[2..])),
    )
    .unwrap();
    std::fs::remove_file(&stripped).unwrap();
    let said = run(&mut place.tracesmith("symbolize t.sbt -o same.sbt")).ok();
    assert!(
        said.contains("stripped") && said.contains("file not found"),
        "{said}"
    );
    let said = run(&mut place.tracesmith("symbolize t.sbt --debug-dir debug -o named.sbt")).ok();
    assert!(said.starts_with("symbolized "), "{said}");
    let named = place.trace("named.sbt");
    let names: Vec<String> = functions(&named, joined_kernels(&named)[0].stack)
        .into_iter()
        .map(|function| function.name)
        .collect();
    assert!(names.contains(&"mode_launch".to_owned()), "{names:?}");
    assert_eq!(joined_kernels(&named).len(), 3);
    // What has a name keeps it where nothing is found, and is not listed.
    let said = run(&mut place.tracesmith("symbolize named.sbt -o again.sbt")).ok();
    assert!(said.contains("keep their symbols"), "{said}");
    let again = place.trace("again.sbt");
    let kept: Vec<String> = functions(&again, joined_kernels(&again)[0].stack)
        .into_iter()
        .map(|function| function.name)
        .collect();
    assert_eq!(kept, names);
}

#[test]
fn view_reports_a_trace_without_stacks() {
    let demo = support::root().join("fixtures/demo-h200.sbt");
    let demo = demo.to_str().unwrap();
    let shown = support::tracesmith(["view", demo, "--stacks", "--limit", "1"]);
    assert!(shown.stderr.contains("this trace has no stacks"), "{shown:?}");
    let hidden = support::tracesmith(["view", demo, "--limit", "1"]);
    assert!(!hidden.stderr.contains("no stacks"), "{hidden:?}");
}

#[test]
fn info_names_the_format_and_size_of_another_tools_file() {
    let file = support::root().join("fixtures/kineto-training.json");
    let size = std::fs::metadata(&file).unwrap().len();
    let info = support::tracesmith(["info", file.to_str().unwrap()]).ok();
    let line = info.lines().find(|line| line.starts_with("file")).unwrap();
    assert!(line.contains(&tracesmith_trace::units::bytes(size)), "{line}");
    assert!(!line.contains("SBT"), "{line}");
}

#[test]
fn a_flame_graph_of_a_trace_without_stacks_says_so() {
    let flame = |file: &str| crate::support::tracesmith(["flame", file, "--folded", "-o", "-"]);
    let without = flame("fixtures/demo-h200.sbt");
    assert_eq!(without.code, Some(0), "{without:?}");
    assert!(without.stderr.contains("this trace has no stacks"), "{without:?}");
    let with = flame(crate::support::FIXTURE);
    assert!(!with.stderr.contains("no stacks"), "{with:?}");
}
