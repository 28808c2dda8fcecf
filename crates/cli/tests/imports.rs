//! Importing files of other tools: what is reported.

use tempfile::TempDir;

use crate::support::{Run, command, root, run, tracesmith};

const KINETO: &str = "fixtures/kineto-training.json";

fn import(folder: &TempDir, files: &[&str]) -> Run {
    let out = folder.path().join("out.sbt");
    let out = out.to_str().unwrap();
    tracesmith(["import"].iter().chain(files).chain(&["-o", out]).copied())
}

#[test]
fn a_trace_need_not_be_imported() {
    let folder = TempDir::new().unwrap();
    let refused = import(&folder, &["fixtures/demo-h200.sbt"]);
    assert_eq!(refused.code, Some(2));
    let words = "fixtures/demo-h200.sbt is already a TraceSmith trace";
    assert!(refused.stderr.contains(words), "{refused:?}");
}

#[test]
fn an_error_of_the_input_names_the_input() {
    let folder = TempDir::new().unwrap();
    let bad = folder.path().join("bad.json");
    std::fs::write(&bad, "{\"traceEvents\": 7}").unwrap();
    let failed = import(&folder, &[KINETO, bad.to_str().unwrap()]);
    assert_eq!(failed.code, Some(2));
    assert!(failed.stderr.starts_with("error: reading "), "{failed:?}");
    assert!(failed.stderr.contains("bad.json: bad chrome file"), "{failed:?}");
    assert!(!failed.stderr.contains("writing"), "{failed:?}");
    assert!(!folder.path().join("out.sbt").exists());
}

#[test]
fn hosts_of_several_files_all_have_names() {
    let folder = TempDir::new().unwrap();
    let imported = import(&folder, &[KINETO, KINETO, KINETO, KINETO]).ok();
    assert!(
        imported.contains("rows of events from 4 kineto files"),
        "{imported}"
    );
    let info = tracesmith(["info".as_ref(), folder.path().join("out.sbt").as_os_str()]).ok();
    for number in 1..=4 {
        assert!(
            info.contains(&format!("host       host of file {number}\n")),
            "{info}"
        );
    }
}

#[test]
fn a_truncated_file_is_reported_as_truncated() {
    let folder = TempDir::new().unwrap();
    let bytes = std::fs::read(root().join(KINETO)).unwrap();
    std::fs::write(folder.path().join("t.json"), &bytes[..bytes.len() / 2]).unwrap();
    let tracesmith = |line: &str| run(command().args(line.split(' ')).current_dir(folder.path()));
    let analyzed = tracesmith("analyze t.json");
    assert!(
        analyzed.stderr.contains("the imported file was truncated"),
        "{analyzed:?}"
    );
    assert!(!analyzed.stderr.contains("lost while recording"), "{analyzed:?}");
    let repaired = tracesmith("repair t.json -o t.sbt").ok();
    assert!(repaired.contains("the imported file was truncated"), "{repaired}");
    assert!(!repaired.contains("nothing was damaged"), "{repaired}");
}

/// Issue 28: what the file is, not what it was converted to.
#[test]
fn info_of_another_tools_file_describes_that_file() {
    let folder = TempDir::new().unwrap();
    let plain = std::fs::read(root().join(KINETO)).unwrap();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut packed, &plain).unwrap();
    let packed = packed.finish().unwrap();
    std::fs::write(folder.path().join("t.json.gz"), &packed).unwrap();
    let tracesmith = |line: &str| run(command().args(line.split(' ')).current_dir(folder.path())).ok();
    let info = tracesmith("info t.json.gz");
    assert!(
        info.contains("PyTorch profiler (Kineto) JSON, schema 1"),
        "{info}"
    );
    assert!(info.contains(" KiB (gzip)\n"), "{info}");
    assert!(info.contains("events      rows\nkernels       57\n"), "{info}");
    for word in ["of file", "ratio", "schema  ", "strings"] {
        assert!(!info.contains(word), "{word}: {info}");
    }
    let json: serde_json::Value = serde_json::from_str(&tracesmith("info t.json.gz --format json")).unwrap();
    assert_eq!(json["format"], "PyTorch profiler (Kineto) JSON");
    assert_eq!(json["compression"], "gzip");
    assert_eq!(json["bytes"].as_u64(), Some(packed.len() as u64));
    let tables = json["tables"].as_array().unwrap();
    assert_eq!(
        tables[0],
        serde_json::json!({ "name": "kernels", "kind": tables[0]["kind"], "rows": 57 })
    );
    let csv = tracesmith("info t.json.gz --format csv");
    assert!(
        csv.contains("\nkernels,,57,,\n") && !csv.contains("strings"),
        "{csv}"
    );
    // An imported trace is a trace, and names its origin.
    tracesmith("import t.json.gz -o t.sbt");
    let info = tracesmith("info t.sbt");
    assert!(info.contains("file       SBT 1.0, "), "{info}");
    assert!(
        info.contains("imported   PyTorch profiler (Kineto) JSON t.json.gz\n"),
        "{info}"
    );
    assert!(info.contains("of file"), "{info}");
}
