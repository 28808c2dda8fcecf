//! The commands about this machine, without a GPU and with the driver that is made for tests.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use crate::support;

use std::process::Command;

use insta::assert_snapshot;
use serde_json::Value;
use support::{Run, command, run, tracesmith};
use tempfile::TempDir;
use tracesmith_fake_cuda::{CuptiVersion, Options, install, variable};

/// A machine of its own: the fake's libraries and a runtime folder.
struct Machine {
    folder: TempDir,
    options: Options,
}

impl Machine {
    fn new(options: Options) -> Self {
        let folder = tempfile::tempdir().unwrap();
        install(&folder.path().join("lib")).unwrap();
        std::fs::create_dir(folder.path().join("work")).unwrap();
        Machine { folder, options }
    }

    fn command(&self) -> Command {
        let mut command = command();
        command
            .current_dir(self.folder.path().join("work"))
            .env("LD_LIBRARY_PATH", self.folder.path().join("lib"))
            .env("TRACESMITH_RUNTIME_DIR", self.folder.path().join("run"))
            .envs(self.options.variables());
        for name in [
            "CUDA_VISIBLE_DEVICES",
            "CUDA_INJECTION64_PATH",
            "NVTX_INJECTION64_PATH",
            "LD_PRELOAD",
            "TRACESMITH_CUPTI_PATH",
        ] {
            command.env_remove(name);
        }
        command
    }

    fn run(&self, args: &[&str]) -> Run {
        run(self.command().args(args))
    }

    fn json(&self, args: &[&str]) -> (Option<i32>, Value) {
        let run = run(self.command().args(args).args(["--format", "json"]));
        let value = serde_json::from_str(&run.stdout);
        (
            run.code,
            value.unwrap_or_else(|error| panic!("{error}: {} {}", run.stdout, run.stderr)),
        )
    }
}

fn check<'a>(report: &'a Value, name: &str) -> &'a Value {
    let checks = report["checks"].as_array().unwrap();
    checks
        .iter()
        .find(|check| check["name"] == name)
        .unwrap_or_else(|| panic!("no {name}"))
}

#[test]
fn a_machine_without_a_gpu_says_so() {
    let devices = tracesmith(["devices", "--format", "json"]);
    if devices.code == Some(0) {
        // The other tests show the same of the fake driver's device.
        return tracesmith_skip::without("a machine without a GPU", "");
    }
    assert_eq!(devices.code, Some(1));
    let mut report: Value = serde_json::from_str(&devices.stdout).unwrap();
    report["topology"]["numa_nodes"] = Value::Null;
    assert_snapshot!("no_gpu_devices", serde_json::to_string_pretty(&report).unwrap());
    assert_snapshot!("no_gpu_devices_table", tracesmith(["devices"]).transcript());
    assert_snapshot!(
        "no_gpu_benchmark",
        tracesmith(["benchmark", "-n", "10"]).transcript()
    );

    let folder = tempfile::tempdir().unwrap();
    let demo = run(command().arg("demo").current_dir(folder.path()));
    assert_snapshot!("no_gpu_demo", demo.transcript());
    assert!(folder.path().join("tracesmith-demo.sbt").exists());

    let doctor = tracesmith(["doctor", "--format", "json"]);
    assert_eq!(doctor.code, Some(1));
    let report: Value = serde_json::from_str(&doctor.stdout).unwrap();
    assert_eq!(report["can_record"], false);
    // For records, and for stacks.
    assert_eq!(report["target_memory_bytes"], (64 + 32) << 20);
    for name in ["driver.library", "gpu.present"] {
        assert_eq!(check(&report, name)["state"], "no");
        assert!(check(&report, name)["remedy"].is_string(), "{name}");
    }
    for name in [
        "tools.injection",
        "system.kernel",
        "system.calls",
        "system.runtime_directory",
    ] {
        assert!(check(&report, name)["found"].is_string(), "{name}");
    }
    let told = tracesmith(["doctor"]);
    assert!(
        told.stdout.ends_with("recording does not work here\n"),
        "{}",
        told.stdout
    );
}

#[test]
fn devices_and_what_lies_between_them_are_shown() {
    let machine = Machine::new(Options {
        devices: 2,
        ..Options::default()
    });
    let (code, report) = machine.json(&["devices"]);
    assert_eq!(code, Some(0));
    let devices = report["devices"].as_array().unwrap();
    assert_eq!(devices.len(), 2);
    let names: Vec<&String> = devices[0].as_object().unwrap().keys().collect();
    assert_snapshot!("devices_json_fields", format!("{names:#?}"));
    assert_eq!(devices[1]["capability"], serde_json::json!([9, 0]));
    let connections = &report["topology"]["connections"];
    assert_eq!(connections[0][0], "X");
    assert_eq!(connections[0][1], connections[1][0]);
    let table = machine.run(&["devices"]).ok();
    for word in ["GPU0", "GPU1", "Hopper (cc 9.0)", "NUMA node", "CUDA 13.0"] {
        assert!(table.contains(word), "{word}: {table}");
    }
    let csv = machine.run(&["devices", "--format", "csv"]).ok();
    assert_eq!(csv.lines().count(), 3);

    let mut command = machine.command();
    let hidden = run(command
        .args(["devices", "--format", "json"])
        .env("CUDA_VISIBLE_DEVICES", "1"));
    let hidden: Value = serde_json::from_str(&hidden.ok()).unwrap();
    assert_eq!(hidden["devices"].as_array().unwrap().len(), 2);
}

#[test]
fn the_doctor_finds_what_is_amiss() {
    let healthy = Machine::new(Options::default());
    let (code, report) = healthy.json(&["doctor", "sh"]);
    assert_eq!((code, &report["can_record"]), (Some(0), &Value::Bool(true)));
    assert_eq!(check(&report, "program.linking")["state"], "ok");
    let counters = check(&report, "gpu.counters")["found"].as_str().unwrap();
    assert!(
        counters.contains("power") && counters.contains("a sample"),
        "{counters}"
    );
    let version = check(&report, "cupti.version")["found"].as_str().unwrap();
    assert!(version.starts_with("CUDA 13.0 in "), "{version}");

    let mut command = healthy.command();
    let other = run(command
        .args(["doctor", "--format", "json"])
        .env("NVTX_INJECTION64_PATH", "/opt/libToolsInjection64.so"));
    assert_eq!(other.code, Some(0), "a warning is no reason to fail");
    let other: Value = serde_json::from_str(&other.stdout).unwrap();
    assert_eq!(check(&other, "tools.nvtx")["state"], "warning");

    let mismatched = Machine::new(Options {
        init_error: 803,
        ..Options::default()
    });
    let (code, report) = mismatched.json(&["doctor"]);
    assert_eq!(code, Some(1));
    let initialises = check(&report, "driver.initialises");
    assert_eq!(initialises["state"], "no");
    assert!(initialises["remedy"].as_str().unwrap().contains("reboot"));

    let mut command = healthy.command();
    let old_driver = run(command
        .args(["doctor", "--format", "json"])
        .env(variable::DRIVER_VERSION, "12080"));
    assert_eq!(
        old_driver.code,
        Some(1),
        "CUPTI 13 does not fit a driver of CUDA 12"
    );
    let report: Value = serde_json::from_str(&old_driver.stdout).unwrap();
    assert_eq!(check(&report, "cupti.version")["state"], "no");
}

#[test]
fn the_benchmark_receives_every_kernel_it_launched() {
    for cupti_version in [CuptiVersion::V12_4, CuptiVersion::V13_0] {
        let machine = Machine::new(Options {
            cupti_version,
            ..Options::default()
        });
        let (code, report) = machine.json(&["benchmark", "-n", "1000", "--streams", "4", "-o", "kept.sbt"]);
        assert_eq!(code, Some(0), "{report}");
        assert_eq!(report["kernels"], 1000);
        assert_eq!(report["records"], 1000);
        assert_eq!(report["dropped"], 0);
        assert!(report["bare"]["kernels_per_second"].as_f64().unwrap() > 0.0);
        assert!(report["recorded"]["kernels_per_second"].as_f64().unwrap() > 0.0);
        machine.run(&["info", "kept.sbt"]).ok();
        let again = machine.run(&["benchmark", "-n", "10", "-o", "kept.sbt"]);
        assert_eq!(again.code, Some(2), "a file is not replaced unasked");
    }
}

#[test]
fn the_benchmark_with_stacks_has_one_for_every_kernel() {
    let machine = Machine::new(Options::default());
    let (code, report) = machine.json(&["benchmark", "-n", "1000", "--stacks"]);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(report["stacks"]["records"], 1000);
    assert!(
        report["stacks"]["frames_per_stack"].as_f64().unwrap() > 7.0,
        "{report}"
    );
    let table = machine.run(&["benchmark", "-n", "1000", "--stacks"]).ok();
    for line in ["frames per stack", "records with a stack", "kernels per second"] {
        assert!(table.contains(line), "{table}");
    }
}

#[test]
fn the_benchmark_says_no_when_records_were_dropped() {
    let machine = Machine::new(Options {
        // Not a multiple of two: launches make a record of the call and one of the kernel in turns.
        drop_every: 7,
        ..Options::default()
    });
    let (code, report) = machine.json(&["benchmark", "-n", "1000"]);
    assert_eq!(code, Some(1));
    assert!(report["dropped"].as_u64().unwrap() > 0, "{report}");
    assert!(report["records"].as_u64().unwrap() < 1000);
}

#[test]
fn the_demo_shows_real_work_and_the_way_onward() {
    let machine = Machine::new(Options::default());
    // On a CPU, large matrices take long.
    let shown = machine.run(&["demo", "--live", "--side", "48"]).ok();
    for word in [
        "kernel ",
        "cuStreamSynchronize",
        "host to device",
        "tracesmith profile --",
    ] {
        assert!(shown.contains(word), "{word}: {shown}");
    }
    let again = machine.run(&[
        "view",
        "tracesmith-demo.sbt",
        "--kind",
        "kernel",
        "--format",
        "csv",
    ]);
    assert_eq!(again.ok().lines().count(), 1 + 300);
}

#[test]
fn the_range_that_a_live_demo_suggests_has_events() {
    let machine = Machine::new(Options::default());
    let demo = machine.run(&["demo", "--live", "--side", "48"]).ok();
    let line = demo.lines().find(|line| line.contains("--from")).unwrap();
    let args: Vec<&str> = line.split_whitespace().skip(1).collect();
    let shown = machine.run(&args);
    assert!(shown.stdout.contains("kernel"), "{line}: {shown:?}");
}

/// Each command that the demo prints, except those that need a GPU, answers what the demo says.
#[test]
fn the_commands_of_the_demo_answer_what_it_says() {
    let folder = TempDir::new().unwrap();
    let tracesmith = |args: &[&str]| run(command().args(args).current_dir(folder.path()));
    let demo = tracesmith(&["demo"]).ok();
    let commands: Vec<Vec<&str>> = demo
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("$ tracesmith "))
        .map(|line| line.split('#').next().unwrap().split_whitespace().collect())
        .collect();
    let answer = |start: &str| {
        let args = commands.iter().find(|args| args.join(" ").starts_with(start));
        let args = args.unwrap_or_else(|| panic!("no {start} in {demo}"));
        let run = tracesmith(args);
        assert_eq!(run.code, Some(0), "{args:?}: {run:?}");
        run.stdout
    };
    assert!(answer("analyze tracesmith-demo.sbt").contains("Steps: 10"));
    let findings = answer("analyze tracesmith-demo.sbt --only findings");
    let finding = demo.lines().find(|line| line.contains("is idle")).unwrap().trim();
    assert!(findings.contains(finding), "{finding}: {findings}");
    let host = answer("analyze tracesmith-demo.sbt --only host");
    assert!(host.contains("train.py:21 (load_batch)"), "{host}");
    assert!(
        demo.contains("before the CUDA call at train.py:21 (load_batch)"),
        "{demo}"
    );
    let compared = answer("diff tracesmith-demo.sbt tracesmith-demo-fixed.sbt");
    assert!(compared.contains("1.42 ms"), "{compared}");
    let plan = answer("replay tracesmith-demo.sbt --mode dry-run");
    assert!(plan.contains("triton_tem_fused_addmm"), "{plan}");
    assert!(
        demo.contains("210 calls") && demo.contains("; replayable"),
        "{demo}"
    );
    let again = tracesmith(&["demo", "--format", "json"]).ok();
    let again: Value = serde_json::from_str(&again).unwrap();
    assert_eq!(again["steps"], 10);
    assert!(again["fixed_step_ns"].as_f64().unwrap() < 0.2 * again["step_ns"].as_f64().unwrap());
}
