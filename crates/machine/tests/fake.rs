//! Everything that asks a GPU, against the driver that is made for tests.
//!
//! The libraries are opened as they always are, by name: each test starts
//! itself again with the fake's folder on the loader's path.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    reason = "a test may stop on any error"
)]

use std::process::Command;

use tracesmith_fake_cuda::{Options, install};
use tracesmith_machine::workload::benchmark::{self, BenchmarkPlan};
use tracesmith_machine::workload::demo::{self, DemoPlan};
use tracesmith_machine::{Counters, DevicesReport, TopologyReport};

/// Says to a test that it runs where the fake is.
const INSIDE: &str = "TRACESMITH_TEST_UNDER_FAKE";

/// Runs the rest of a test in a process that finds the fake.
fn under_fake(test: &str, options: &Options, inside: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        return inside();
    }
    let folder = tempfile::tempdir().unwrap();
    install(folder.path()).unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .env("LD_LIBRARY_PATH", folder.path())
        .env_remove("CUDA_VISIBLE_DEVICES")
        .envs(options.variables())
        .output()
        .unwrap();
    let told = [output.stdout, output.stderr].concat();
    let told = String::from_utf8_lossy(&told);
    assert!(output.status.success() && told.contains("1 passed"), "{told}");
}

fn devices(count: u32) -> Options {
    Options {
        devices: count,
        ..Options::default()
    }
}

#[test]
fn devices_are_told_by_both_libraries() {
    under_fake("devices_are_told_by_both_libraries", &devices(2), || {
        let report = DevicesReport::new();
        assert_eq!(report.problems, Vec::<String>::new());
        assert_eq!(report.devices.len(), 2);
        let device = &report.devices[1];
        assert_eq!(device.cuda_ordinals, [1]);
        assert_eq!(device.capability, Some((9, 0)));
        assert_eq!(device.architecture.as_deref(), Some("Hopper"));
        assert_eq!(device.multiprocessors, Some(132));
        assert!(device.memory_free_bytes <= device.memory_bytes);
        assert!(device.power_watts.is_some() && device.sm_mhz.is_some());
        assert!(report.driver.is_some() && report.cuda.is_some());

        let topology = TopologyReport::new(&report);
        assert_eq!(topology.pairs.len(), 2);
        assert_eq!(topology.pairs[0][0].label(), "X");
        assert_ne!(topology.pairs[0][1].label(), "?");
        assert_eq!(topology.pairs[0][1], topology.pairs[1][0]);
    });
}

#[test]
fn counters_have_units_times_and_rates() {
    under_fake("counters_have_units_times_and_rates", &devices(2), || {
        let mut counters = Counters::open().unwrap();
        let known: Vec<_> = counters.devices().map(|device| device.uuid).collect();
        assert_eq!(known.len(), 2);
        let first = counters.sample();
        let second = counters.sample();
        assert!(second.values.iter().all(|value| known.contains(&value.device)));
        for (name, unit) in [
            ("GPU utilization", "%"),
            ("memory used", "B"),
            ("power", "W"),
            ("temperature", "°C"),
            ("SM clock", "MHz"),
        ] {
            let values = second
                .values
                .iter()
                .filter(|value| (value.name, value.unit) == (name, unit));
            assert_eq!(values.count(), 2, "{name} of both");
        }
        assert!(first.values[0].time_nanos <= second.values[0].time_nanos);
        assert!(first.values.iter().all(|value| !value.name.starts_with("NVLink")));
    });
}

#[test]
fn the_demo_computes_what_a_cpu_does() {
    under_fake("the_demo_computes_what_a_cpu_does", &devices(1), || {
        let plan = DemoPlan {
            steps: 2,
            elements: 1000,
            side: 33,
            device: 0,
        };
        let report = demo::run(plan).unwrap();
        assert_eq!(report.kernels, 2 * 3 + 2 * 4 * 3);
        assert_eq!((report.copies, report.sets, report.graphs), (8, 4, 8));
        assert_eq!(report.checked, 1000 + 1 + 4 * 33);
        assert_eq!(demo::run(DemoPlan { steps: 0, ..plan }).unwrap().checked, 0);
    });
}

#[test]
fn the_benchmark_launches_what_was_asked_for() {
    under_fake("the_benchmark_launches_what_was_asked_for", &devices(1), || {
        let plan = BenchmarkPlan {
            kernels: 500,
            streams: 3,
            device: 0,
        };
        let report = benchmark::run(plan).unwrap();
        assert_eq!((report.kernels, report.streams), (500, 3));
        assert!(report.launched <= report.done);
        assert!(report.kernels_per_second() > 0.0);
        let no_such = benchmark::run(BenchmarkPlan { device: 7, ..plan }).unwrap_err();
        assert_eq!(
            no_such.to_string(),
            "cuDeviceGet failed with 101 (CUDA_ERROR_INVALID_DEVICE)"
        );
    });
}

#[test]
fn a_launch_that_fails_is_told() {
    let options = Options {
        launch_failure_every: 100,
        ..Options::default()
    };
    under_fake("a_launch_that_fails_is_told", &options, || {
        let plan = BenchmarkPlan {
            kernels: 500,
            streams: 1,
            device: 0,
        };
        let error = benchmark::run(plan).unwrap_err().to_string();
        assert!(error.starts_with("cuLaunchKernel failed with 701"), "{error}");
    });
}
