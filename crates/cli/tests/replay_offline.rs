//! What can be done with a recorded window where there is no GPU, on the fixture that is shipped.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]
#![allow(missing_docs, reason = "nobody uses a test from outside")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// Where the window has its numbers.
const VALUES: &str = "0x7fc067e00000";

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/replay-h200.sbt")
}

/// Runs a command on the fixture, without any GPU that this machine may have.
fn tracesmith(folder: &TempDir, verb: &str, options: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tracesmith"))
        .arg(verb)
        .arg(fixture())
        .args(options.split_whitespace())
        .env("CUDA_VISIBLE_DEVICES", "")
        .current_dir(folder.path())
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The numbers of an array for NumPy.
fn numbers(file: &Path) -> Vec<f32> {
    let bytes = std::fs::read(file).unwrap();
    assert!(bytes.starts_with(b"\x93NUMPY"));
    let header = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let words = bytes[header..].as_chunks::<4>().0.iter();
    words.map(|word| f32::from_le_bytes(*word)).collect()
}

#[test]
fn it_is_shown_with_its_calls_and_can_be_replayed() {
    let folder = TempDir::new().unwrap();
    let info = tracesmith(&folder, "info", "");
    let info = text(&info.stdout);
    assert!(info.contains("7 calls on 3 buffers"), "{info}");
    let plan = tracesmith(&folder, "replay", "--mode dry-run");
    assert_eq!(plan.status.code(), Some(0));
    let plan = text(&plan.stdout);
    for words in [
        "    #4  scale(float*, int)                (4, 1, 1)  (256, 1, 1)     0x0",
        "total(float const*, float*, int)",
        VALUES,
        "\nreplayable\n",
    ] {
        assert!(plan.contains(words), "{plan}");
    }
}

#[test]
fn memory_is_written_where_the_file_says_what_it_holds() {
    let folder = TempDir::new().unwrap();
    let dumped = |options: &str| {
        let run = tracesmith(
            &folder,
            "replay",
            &format!("--dump {VALUES} --type f32 -o out.npy --force {options}"),
        );
        assert_eq!(run.status.code(), Some(0), "{options}: {}", text(&run.stderr));
        numbers(&folder.path().join("out.npy"))
    };
    let copied: Vec<f32> = (0..1024_u16).map(|index| f32::from(index % 10)).collect();
    // The first call copies the numbers, and the fourth is a kernel that scales them.
    let before = dumped("--until 1");
    assert_ne!(before, copied);
    assert_eq!(dumped("--until 2"), copied);
    assert_eq!(dumped("--until 4"), copied);
    let weights = [0.5_f32, 1.0, 1.5, 2.0].into_iter().cycle();
    let scaled: Vec<f32> = copied
        .iter()
        .zip(weights)
        .map(|(value, weight)| value * weight)
        .collect();
    assert_ne!(before, scaled);
    assert_eq!(dumped(""), scaled);
    assert_eq!(dumped("--until 6"), scaled, "no kernel follows");
    assert!(
        (scaled.iter().sum::<f32>() - 5875.0).abs() < 0.5,
        "as the program printed"
    );
}

#[test]
fn memory_that_a_kernel_may_have_written_needs_a_replay() {
    let folder = TempDir::new().unwrap();
    let run = tracesmith(
        &folder,
        "replay",
        &format!("--until 5 --dump {VALUES} -o out.npy"),
    );
    assert_eq!(run.status.code(), Some(2));
    let words = text(&run.stderr);
    assert!(words.contains("#4 _Z5scalePfi may have written"), "{words}");
    assert!(!folder.path().join("out.npy").exists());
}

/// What another kernel leaves is not in the file.
#[test]
fn a_dump_with_another_kernel_is_not_answered_from_the_file() {
    let folder = TempDir::new().unwrap();
    std::fs::write(
        folder.path().join("new.ptx"),
        ".version 7.0\n.visible .entry scale(){ret;}",
    )
    .unwrap();
    let options = format!("--replace scale=new.ptx --dump {VALUES} -o out.npy");
    let run = tracesmith(&folder, "replay", &options);
    assert_eq!(run.status.code(), Some(2));
    assert!(!folder.path().join("out.npy").exists());
}

#[test]
fn a_launch_is_extracted_with_the_inputs_that_the_file_has() {
    let folder = TempDir::new().unwrap();
    let run = tracesmith(&folder, "extract", "--kernel scale -o scale");
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    let words = text(&run.stdout);
    assert!(words.contains("not compared (no GPU)"), "{words}");
    let file = |name: &str| folder.path().join("scale").join(name);
    let launch = std::fs::read_to_string(file("launch.txt")).unwrap();
    assert!(
        launch.contains(&format!("buffer {VALUES} 4096 buffers/")),
        "{launch}"
    );
    assert!(launch.contains("variable weights 16 buffers/"), "{launch}");
    assert!(
        launch.lines().filter(|line| line.ends_with(" -")).count() == 2,
        "{launch}"
    );
    assert!(
        std::fs::read(file("kernel.cubin"))
            .unwrap()
            .starts_with(b"\x7fELF")
    );
    // The pointer and the count.
    assert_eq!(std::fs::read(file("parameters.bin")).unwrap().len(), 12);
}

#[test]
fn a_launch_behind_another_kernel_is_not_extracted_with_a_guess() {
    let folder = TempDir::new().unwrap();
    let run = tracesmith(&folder, "extract", "--kernel total -o total");
    assert_eq!(run.status.code(), Some(2));
    let words = text(&run.stderr);
    assert!(words.contains("known only after a replay on a GPU"), "{words}");
    assert!(words.contains("#4 _Z5scalePfi may have written it"), "{words}");
}

#[test]
fn a_dry_run_of_a_part_lists_that_part() {
    let folder = TempDir::new().unwrap();
    let plan = text(&tracesmith(&folder, "replay", "--mode dry-run --kernel scale").stdout);
    assert!(
        plan.contains("scale(float*, int)") && !plan.contains("total("),
        "{plan}"
    );
    assert!(plan.contains("selected: 1 of these calls"), "{plan}");
    let numbers = |options: &str| -> (usize, serde_json::Value) {
        let plan = text(&tracesmith(&folder, "replay", options).stdout);
        let plan: serde_json::Value = serde_json::from_str(&plan).unwrap();
        (plan["commands"].as_array().unwrap().len(), plan["part"].clone())
    };
    let (all, whole) = numbers("--mode dry-run --format json");
    assert_eq!((all, whole), (7, serde_json::Value::Null));
    let (all, part) = numbers("--mode dry-run --format json --ops 2..4");
    assert_eq!((all, part), (7, serde_json::json!([2, 3])));
}

/// Issue 28: launches come first, all counts agree, and the needs are stated.
#[test]
fn a_dry_run_lists_launches_first_and_what_the_replay_needs() {
    let folder = TempDir::new().unwrap();
    let plan = text(&tracesmith(&folder, "replay", "--mode dry-run").stdout);
    assert!(plan.starts_with("launch  kernel"), "{plan}");
    assert!(
        plan.find("total(").unwrap() < plan.find("synchronize").unwrap(),
        "{plan}"
    );
    for words in [
        "7 calls (2 launches, 5 other) on 3 buffers, 1 of them a module global\n",
        "needs a GPU of compute capability 9.0, or a higher 9.x\n",
        "needs 4.0 KiB of GPU memory (twice as much for a part, three times with --replace)\n",
        "recorded on NVIDIA H200 (compute capability 9.0) with driver 580.159.04",
    ] {
        assert!(plan.contains(words), "{words}: {plan}");
    }
    let info = text(&tracesmith(&folder, "info", "").stdout);
    assert!(
        info.contains("7 calls on 3 buffers, 1 of them a module global; 4.0 KiB before"),
        "{info}"
    );
    let json = text(&tracesmith(&folder, "replay", "--mode dry-run --format json").stdout);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["needs"]["capabilities"], serde_json::json!(["9.0"]));
    assert_eq!(
        (&json["buffer_count"], &json["module_globals"]),
        (&3.into(), &1.into())
    );
}

#[test]
fn a_dry_run_as_csv_has_a_row_per_selected_call() {
    let folder = TempDir::new().unwrap();
    let csv = text(&tracesmith(&folder, "replay", "--mode dry-run --format csv").stdout);
    let lines: Vec<&str> = csv.lines().collect();
    assert!(
        lines[0].starts_with("number,kind,function,stream,grid_x,"),
        "{csv}"
    );
    assert_eq!(lines.len(), 8);
    assert!(
        lines[4].starts_with("4,launch,_Z5scalePfi,0,4,1,1,256,1,1,"),
        "{csv}"
    );
    let csv = text(&tracesmith(&folder, "replay", "--mode dry-run --format csv --kernel total").stdout);
    assert_eq!(csv.lines().count(), 2, "{csv}");
}

#[test]
fn a_dry_run_shows_what_a_replacement_changes() {
    let folder = TempDir::new().unwrap();
    std::fs::write(
        folder.path().join("new.ptx"),
        ".version 7.0\n.visible .entry twice()\n{ret;}",
    )
    .unwrap();
    let plan = text(&tracesmith(&folder, "replay", "--mode dry-run --replace scale=new.ptx").stdout);
    assert!(plan.contains("replaced: 1 launch by twice (#4)"), "{plan}");
    let refused = tracesmith(&folder, "replay", "--mode dry-run --replace scale=new.ptx:other");
    assert_eq!(refused.status.code(), Some(2));
    let words = text(&refused.stderr);
    assert!(words.contains("no kernel \"other\"; it has twice"), "{words}");
}
