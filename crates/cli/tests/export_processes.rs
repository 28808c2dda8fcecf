//! Kineto exports of traces with several processes: a file for each, or one with numbers that differ.

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{Run, command, root, run};

const TWO_RANKS: &str = "fixtures/synthetic-v1.sbt";

fn export(folder: &TempDir, words: &str) -> Run {
    let trace = root().join(TWO_RANKS);
    let mut words: Vec<&str> = words.split(' ').collect();
    words.push(trace.to_str().unwrap());
    run(command().args(words).current_dir(folder.path()))
}

fn names(folder: &TempDir) -> Vec<String> {
    let entries = std::fs::read_dir(folder.path()).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Kernels by process, as `info` and `sql` see them after an import.
fn kernels_by_rank(folder: &TempDir, files: &[&str]) -> String {
    let import: Vec<&str> = ["import", "-o", "again.sbt", "--force"]
        .iter()
        .chain(files)
        .copied()
        .collect();
    run(command().args(import).current_dir(folder.path())).ok();
    let query = "select p.pid, p.rank, count(*) n, sum(k.\"end\" - k.start) ns from kernels k \
                 join processes p on p.id = k.process group by p.pid order by p.pid";
    run(command()
        .args(["sql", "again.sbt", query, "--format", "csv"])
        .current_dir(folder.path()))
    .ok()
}

const KERNELS: &str = "pid,rank,n,ns\n4000,0,36,1530612\n4001,1,36,1530612\n";

#[test]
fn each_process_gets_a_kineto_file_named_after_its_rank() {
    let folder = TempDir::new().unwrap();
    let written = export(&folder, "export -f kineto -o train.pt.trace.json.gz").ok();
    assert!(written.contains("to 2 files, one per process"), "{written}");
    let files = ["train.rank0.pt.trace.json.gz", "train.rank1.pt.trace.json.gz"];
    assert_eq!(names(&folder), files);
    assert_eq!(kernels_by_rank(&folder, &files), KERNELS);
    // Nothing is written if one of the files is in the way.
    std::fs::remove_file(folder.path().join(files[0])).unwrap();
    let refused = export(&folder, "export -f kineto -o train.pt.trace.json.gz");
    assert!(
        refused.stderr.contains("rank1.pt.trace.json.gz exists"),
        "{refused:?}"
    );
    assert!(!folder.path().join(files[0]).exists());
}

#[test]
fn a_single_kineto_file_keeps_processes_apart() {
    let folder = TempDir::new().unwrap();
    export(&folder, "export -f kineto --single-file -o all.json").ok();
    assert_eq!(names(&folder), ["all.json"]);
    assert_eq!(kernels_by_rank(&folder, &["all.json"]), KERNELS);
    let streamed = export(&folder, "export -f kineto -o -").ok();
    let file = std::fs::read_to_string(folder.path().join("all.json")).unwrap();
    assert!(streamed == file, "standard output gets the single file");
    let refused = export(&folder, "export -f json --single-file -o x.json");
    assert!(
        refused
            .stderr
            .contains("--single-file applies to the format kineto"),
        "{refused:?}"
    );
}

#[test]
fn answers_for_programs_list_the_files() {
    let folder = TempDir::new().unwrap();
    let json: Value =
        serde_json::from_str(&export(&folder, "export -f kineto -o a.json --format json").ok()).unwrap();
    let files = json["files"].as_array().unwrap();
    assert_eq!(files[0]["file"], "a.rank0.json");
    assert_eq!(files[1]["process"], "rank1");
    let events: u64 = files.iter().map(|file| file["events"].as_u64().unwrap()).sum();
    assert_eq!(Some(events), json["events"].as_u64());
    let csv = export(&folder, "export -f kineto -o a.json --force --format csv").ok();
    assert!(csv.starts_with("format,file,process,events,"), "{csv}");
    assert_eq!(csv.lines().count(), 3);
}
