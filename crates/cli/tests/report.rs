//! A page about a trace: whole in itself, harmless, and with the figures that analysis gives.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error, and says what it skips"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use crate::support;

use std::fs;
use std::process::Command;

use serde_json::Value;
use support::reader::Browser;
use support::{FIXTURE, root, tracesmith};
use tempfile::TempDir;
use tracesmith_trace::units;

const RECORDED: &str = "fixtures/demo-h200.sbt";

fn page_of(file: &str, folder: &TempDir) -> String {
    page_about(file, &[], folder)
}

/// The page about a part of a trace.
fn page_about(file: &str, part: &[&str], folder: &TempDir) -> String {
    let out = folder.path().join("report.html");
    let fixed = ["report", file, "--force", "-o", out.to_str().unwrap()];
    tracesmith(fixed.iter().chain(part)).ok();
    fs::read_to_string(out).unwrap()
}

fn analysis_of(file: &str, part: &[&str]) -> Value {
    let fixed = ["analyze", file, "--format", "json"];
    let answer = tracesmith(fixed.iter().chain(part)).ok();
    serde_json::from_str(&answer).unwrap()
}

#[test]
fn a_page_needs_nothing_from_elsewhere_and_runs_nothing() {
    let folder = TempDir::new().unwrap();
    for file in [RECORDED, FIXTURE] {
        let page = page_of(file, &folder);
        assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"));
        for foreign in [
            "http:", "https:", "<script", "<link", "<img", " src=", "@import", "url(",
        ] {
            assert!(!page.contains(foreign), "{file}: {foreign}");
        }
        for heading in [
            "Findings",
            "GPU utilization",
            "Timeline",
            "Causes of idle time",
            "Kernels",
        ] {
            assert!(page.contains(&format!("<h2>{heading}</h2>")), "{file}: {heading}");
        }
    }
}

#[test]
fn its_figures_are_those_of_analysis() {
    let folder = TempDir::new().unwrap();
    let parts: [(&str, &[&str]); 4] = [
        (RECORDED, &[]),
        (FIXTURE, &[]),
        (FIXTURE, &["--step", "1"]),
        (RECORDED, &["--from", "543ms", "--to", "545ms"]),
    ];
    for (file, part) in parts {
        let page = page_about(file, part, &folder);
        let analysis = analysis_of(file, part);
        let says_part = page.contains("only step ") || page.contains("only from ");
        assert_eq!(says_part, !part.is_empty(), "{file}: {part:?}");
        for device in analysis["utilization"]["devices"].as_array().unwrap() {
            let time = |key: &str| units::nanos(device[key].as_u64().unwrap());
            let words = format!("{} of {} busy", time("busy_ns"), time("span_ns"));
            assert!(page.contains(&words), "{file}: {words}");
        }
        let kernels = analysis["kernels"]["rows"].as_array().unwrap();
        assert!(!kernels.is_empty());
        for kernel in kernels.iter().take(25) {
            let total = units::nanos(kernel["total_ns"].as_u64().unwrap());
            assert!(page.contains(&format!("<td>{total}</td>")), "{file}: {kernel}");
        }
        for finding in analysis["findings"].as_array().unwrap() {
            let sentence = finding["sentence"].as_str().unwrap().replace('\'', "&#39;");
            assert!(page.contains(&sentence), "{file}: {sentence}");
        }
    }
}

#[test]
fn names_cannot_become_part_of_the_page() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("hostile.json");
    let name = "<script>alert('x')</script>&\\\"";
    let trace = format!(
        r#"{{"traceEvents":[
        {{"ph":"X","cat":"kernel","name":"{name}","ts":1,"dur":5,"pid":0,"tid":7,"args":{{"device":0,"stream":7,"correlation":1}}}}]}}"#
    );
    fs::write(&file, trace).unwrap();
    let page = page_of(file.to_str().unwrap(), &folder);
    assert!(!page.contains("<script"));
    assert!(
        page.contains("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;"),
        "{page}"
    );
    let title = ["--title", "<b>bold</b>"];
    let out = folder.path().join("titled.html");
    let mut words = vec!["report", file.to_str().unwrap(), "-o", out.to_str().unwrap()];
    words.extend(title);
    tracesmith(words).ok();
    assert!(
        fs::read_to_string(out)
            .unwrap()
            .contains("<h1>&lt;b&gt;bold&lt;/b&gt;</h1>")
    );
}

#[test]
fn a_trace_without_device_work_has_a_page_too() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("empty.json");
    fs::write(&file, r#"{"traceEvents":[]}"#).unwrap();
    let page = page_of(file.to_str().unwrap(), &folder);
    assert!(page.contains("The trace contains no GPU work."));
}

#[test]
fn a_file_that_is_there_is_not_replaced_unasked() {
    let folder = TempDir::new().unwrap();
    let out = folder.path().join("report.html");
    fs::write(&out, "mine").unwrap();
    let run = tracesmith(["report", RECORDED, "-o", out.to_str().unwrap()]);
    assert_eq!(run.code, Some(2));
    assert_eq!(fs::read_to_string(&out).unwrap(), "mine");
}

/// A browser lays it out without complaint: every row of the timeline and of the table of kernels is there.
#[test]
fn a_browser_shows_it() {
    let Some(browser) = Browser::find() else {
        return tracesmith_skip::without("browser", "");
    };
    let folder = TempDir::new().unwrap();
    page_of(RECORDED, &folder);
    let shown = Command::new(&browser.chromium)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
        .arg(format!(
            "--user-data-dir={}",
            folder.path().join("profile").display()
        ))
        .arg(format!("file://{}", folder.path().join("report.html").display()))
        .current_dir(root())
        .output()
        .unwrap();
    let dom = String::from_utf8_lossy(&shown.stdout);
    let kernels = analysis_of(RECORDED, &[])["kernels"]["rows"]
        .as_array()
        .unwrap()
        .len();
    assert_eq!(
        dom.matches("<td class=\"name\">").count(),
        kernels + 2,
        "with two tables of memory"
    );
    assert!(
        dom.matches("<rect ").count() > 50 && dom.matches("<svg ").count() == 4,
        "{dom}"
    );
}
