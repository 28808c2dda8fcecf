//! What lies where, for whom, and what is left behind.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    clippy::print_stdout,
    reason = "a test may stop on any error and say what it skips"
)]
#![allow(missing_docs, unreachable_pub, reason = "nobody uses a test from outside")]

use crate::support;

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use support::stage::{Place, Talk, run, stage};

/// All files below a folder, by their path from there.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            }
            found.push(entry.path().strip_prefix(folder).unwrap().to_owned());
        }
    }
    found.sort();
    found
}

/// The files, without our library, whose name holds a hash, and without the cache of symbols.
fn files_without_library(place: &Place) -> Vec<String> {
    let found = files(place.folder()).into_iter();
    found
        .map(|path| path.to_str().unwrap().to_owned())
        .filter(|path| !path.contains("libtracesmith_inject-") && !path.starts_with("home/.cache"))
        .collect()
}

#[test]
fn nothing_is_written_but_the_trace_and_the_library() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let folders = ["home", "runtime", "tmp", "work"];
    for target in ["launcher nvtx", "launcher processes 2 10", "guest ikokck"] {
        place.profiled("", target);
        let mut expected = folders.to_vec();
        expected.push("work/t.sbt");
        assert_eq!(files_without_library(&place), expected, "{target}");
    }
    // An armed program, with and without a window, leaves no socket either.
    let mut armed = Talk::start(&mut place.armed("", "guest ikgkgk"));
    armed.hear("at 10");
    let pid = armed.child().id();
    let window = place.start_window(&mut place.record(pid, "--force"), pid);
    armed.say();
    armed.hear("at 20");
    assert_eq!(place.close_window(window).code, Some(0));
    armed.say();
    assert_eq!(armed.end().code, Some(0));
    let mut expected = folders.to_vec();
    expected.push("work/t.sbt");
    assert_eq!(files_without_library(&place), expected);
    let library: Vec<PathBuf> = files(&place.runtime());
    assert_eq!(library.len(), 1, "{library:?}");
    let mode = fs::metadata(place.runtime().join(&library[0])).unwrap().mode();
    assert_eq!(mode & 0o777, 0o700, "{mode:o}");
}

#[test]
fn sockets_lie_where_only_their_user_comes() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let user = fs::metadata(place.folder()).unwrap().uid();
    let check = |pid: u32| {
        let sockets: Vec<PathBuf> = files(&place.runtime())
            .into_iter()
            .map(|path| place.runtime().join(path))
            .filter(|path| fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket()))
            .collect();
        assert!(!sockets.is_empty(), "of {pid}");
        for socket in sockets {
            let folder = fs::metadata(socket.parent().unwrap()).unwrap();
            assert_eq!(
                (folder.mode() & 0o777, folder.uid()),
                (0o700, user),
                "{}",
                socket.display()
            );
            assert_eq!(fs::metadata(&socket).unwrap().uid(), user);
        }
    };
    let mut armed = Talk::start(&mut place.armed("", "guest ikgk"));
    armed.hear("at 10");
    check(armed.child().id());
    armed.say();
    assert_eq!(armed.end().code, Some(0));
    let mut profiled = Talk::start(&mut place.profile("", "guest ikgk"));
    profiled.hear("at 10");
    check(profiled.child().id());
    profiled.say();
    assert_eq!(profiled.end().code, Some(0));
}

#[test]
fn a_folder_that_others_can_enter_is_refused() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let open = place.folder().join("open");
    fs::create_dir(&open).unwrap();
    for mode in [0o755, 0o710, 0o701, 0o777] {
        fs::set_permissions(&open, fs::Permissions::from_mode(mode)).unwrap();
        for line in ["env", "profile -o t.sbt -- true"] {
            let refused = run(place.tracesmith(line).env("TRACESMITH_RUNTIME_DIR", &open));
            assert_eq!(refused.code, Some(2), "{line} {mode:o}: {}", refused.stdout);
            assert!(
                refused.stderr.contains("open to others"),
                "{line} {mode:o}: {}",
                refused.stderr
            );
        }
    }
    assert_eq!(files(&open), Vec::<PathBuf>::new(), "nothing is put there");
    // A link to a good folder could be swapped after the check.
    let link = place.folder().join("link");
    std::os::unix::fs::symlink(place.runtime(), &link).unwrap();
    let refused = run(place.tracesmith("env").env("TRACESMITH_RUNTIME_DIR", &link));
    assert_eq!(refused.code, Some(2), "{}", refused.stdout);
}

#[test]
fn a_program_does_not_wait_in_a_folder_that_others_can_enter() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    // Armed while the folder was private, started after it was opened.
    let variables = run(&mut place.tracesmith("env")).ok();
    fs::set_permissions(place.runtime(), fs::Permissions::from_mode(0o755)).unwrap();
    let script = format!("{variables}\nexec {} ik", stage.path("guest").display());
    let run = run(place.command("sh").args(["-c", &script]));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stdout.starts_with("launched 10 "), "{}", run.stdout);
    let sockets = files(&place.runtime());
    assert!(
        sockets
            .iter()
            .all(|path| path.extension().is_none_or(|extension| extension != "sock"))
    );
}

#[test]
fn a_trace_is_readable_by_its_user_as_the_umask_says() {
    let Some(stage) = stage() else { return };
    let place = Place::new(stage);
    let binary = env!("CARGO_BIN_EXE_tracesmith");
    let launcher = stage.path("launcher");
    let script = format!(
        "umask 077; exec '{binary}' profile -q -o t.sbt -- '{}' launch 1",
        launcher.display()
    );
    let run = run(place.command("sh").args(["-c", &script]));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let mode = fs::metadata(place.path("t.sbt")).unwrap().mode();
    assert_eq!(mode & 0o777, 0o600, "{mode:o}");
}
