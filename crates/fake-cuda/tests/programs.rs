//! The target programs against the fake: each does what it says.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    clippy::print_stdout,
    reason = "a test may stop on any error and say what it skips"
)]

use crate::stage;

use std::os::unix::process::ExitStatusExt;

use stage::{finished, stage};
use tracesmith_fake_cuda::Options;

#[test]
fn every_mode_does_what_it_says() {
    let Some(stage) = stage() else { return };
    let expected = [
        ("launch 1000", "launched 1000\n"),
        ("threads 4 200", "launched 800 threads 4\n"),
        ("streams 3 50", "launched 150 streams 3\n"),
        ("graph 20 10", "graph nodes 20 launches 10 kernels 200\n"),
        ("diamond 4", "diamond launches 4 kernels 20\n"),
        ("copies 10", "copied 30 sets 10 bytes 1966080\n"),
        ("compute", "computed 6 wrong 0 sum 523776\n"),
        ("memory", "allocated 4 freed 4\n"),
        ("virtual", "mapped 524288 wrong 0 same address 1\n"),
        ("runtime", "runtime calls 11 result 0 value 5\n"),
        ("runtime_launch 7", "launched 7 by the runtime result 0\n"),
        ("events", "events recorded 3 waited 2 kernels 20 ordered 1\n"),
        ("modules", "modules loaded 4 unloaded 3 kernels 4\n"),
        ("profiler", "launched 10 20 30\n"),
        ("nvtx", "nvtx ranges 4 marks 2 kernels 9 levels -2 -2 -2\n"),
        ("fork", "launched 200 child 0\n"),
        ("sleep 0", "launched 1\n"),
        ("closefds", "launched 100 closed 1 sync 1\n"),
        ("client", "launched 60 client kernels 20 records 41 dropped 0\n"),
        ("peer", "devices 1\n"),
        ("at_exit", "launched 10\nlaunched 5 at exit\n"),
    ];
    for (mode, output) in expected {
        assert_eq!(
            stage.run(&format!("launcher {mode}"), &Options::default()),
            output
        );
    }
}

#[test]
fn programs_end_as_they_are_told() {
    let Some(stage) = stage() else { return };
    let end = |line: &str| finished(&mut stage.command(line, &Options::default())).status;
    assert_eq!(end("launcher exit 5").code(), Some(5));
    assert_eq!(end("launcher exit_early").code(), Some(3));
    assert_eq!(end("launcher segv").signal(), Some(libc::SIGSEGV));
    assert_eq!(end("launcher nonsense").code(), Some(64));
}

#[test]
fn children_load_the_libraries_by_themselves() {
    let Some(stage) = stage() else { return };
    let output = stage.run("launcher processes 3 10", &Options::default());
    assert!(output.ends_with("processes 3 launched 30 failed 0\n"), "{output}");
}

#[test]
fn two_devices_copy_to_each_other() {
    let Some(stage) = stage() else { return };
    let options = Options {
        devices: 2,
        ..Options::default()
    };
    assert_eq!(
        stage.run("launcher peer", &options),
        "devices 2 peer copies 2 same 1\n"
    );
    let lines = stage.spy("launcher peer", &options, &[("SPY_KINDS", "22")]);
    let peers: Vec<_> = stage::records(&lines, 22)
        .iter()
        .map(|line| (stage::number_after(line, "from"), stage::number_after(line, "to")))
        .collect();
    assert_eq!(peers, [(0, 1), (1, 0)]);
}

#[test]
fn a_linked_client_gets_its_own_sessions_only() {
    let Some(stage) = stage() else { return };
    assert_eq!(
        stage.run("linked_client 2 10", &Options::default()),
        "launched 50 client kernels 20 foreign 0 version 130001\n"
    );
}

#[test]
fn a_second_client_takes_the_buffers_of_the_first() {
    let Some(stage) = stage() else { return };
    let mut command = stage.command("linked_client 1 10", &Options::default());
    command
        .env("CUDA_INJECTION64_PATH", stage.path("spy.so"))
        .env("SPY_KINDS", "10")
        .env("SPY_OUT", "/dev/null");
    let output = finished(&mut command);
    // The buffer that the spy lent holds the kernels of both, and goes to the wrong one.
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "launched 30 client kernels 0 foreign 1 version 130001\n"
    );
}
