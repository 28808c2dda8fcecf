//! Arguments that cannot be meant: each is an error that names the problem.

use tempfile::TempDir;

use crate::support::{Run, command, root, run};

const DEMO: &str = "fixtures/demo-h200.sbt";

/// Runs a command whose output, `OUT`, is in a folder of its own.
fn tracesmith(folder: &TempDir, line: &str) -> Run {
    let out = folder.path().join("out");
    let line = line.replace("DEMO", DEMO).replace("OUT", out.to_str().unwrap());
    run(command().args(line.split(' ')))
}

#[test]
fn what_is_not_there_is_an_error() {
    let folder = TempDir::new().unwrap();
    let copy = folder.path().join("copy.sbt");
    std::fs::copy(root().join(DEMO), &copy).unwrap();
    let merge_copy = format!("merge DEMO {} -o OUT", copy.display());
    for (line, words) in [
        (
            "export -f kineto --stream 99 -o OUT DEMO",
            "the trace has no stream 99; it has stream 6, 7, ",
        ),
        (
            "symbolize --debug-dir ./missing -o OUT DEMO",
            "--debug-dir ./missing: no such directory",
        ),
        (
            "merge DEMO DEMO -o OUT",
            "are the same trace; name each trace once",
        ),
        (&merge_copy, "are the same trace; name each trace once"),
        ("profile -d 0 -o OUT -- true", "--duration 0 records nothing"),
        ("record --pid 999999999 -d 1s -o OUT", "no process 999999999"),
    ] {
        let run = tracesmith(&folder, line);
        assert_eq!(run.code, Some(2), "{line}: {run:?}");
        assert!(run.stderr.contains(words), "{line}: {run:?}");
        assert!(!folder.path().join("out").exists(), "{line}");
    }
}

#[test]
fn a_wrong_value_is_an_error_about_its_option() {
    let folder = TempDir::new().unwrap();
    for (line, words) in [
        (
            "view DEMO --limit -1",
            "invalid value '-1' for '--limit <N>': write a whole number of 0 or more",
        ),
        (
            "analyze DEMO --step -1",
            "invalid value '-1' for '--step <N>': write a whole number of 0 or more",
        ),
        (
            "diff DEMO DEMO --fail-over -5%",
            "invalid value '-5%' for '--fail-over <SHARE>': write a percentage of 0",
        ),
        (
            "export DEMO -f bogus",
            "invalid value 'bogus' for '-f, --as <FORMAT>'",
        ),
    ] {
        let run = tracesmith(&folder, line);
        assert_eq!(run.code, Some(2), "{line}: {run:?}");
        assert!(run.stderr.contains(words), "{line}: {run:?}");
        assert!(!run.stderr.contains("tip:"), "{line}: {run:?}");
    }
}
