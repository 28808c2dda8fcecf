//! Real programs under the real binary and library, against the fake driver.
//!
//! A [`Stage`] is what all tests share: the fake's libraries and the compiled targets. A [`Place`] is a test's own
//! folder, in which its programs run and beside which nothing is to be written.

#![allow(dead_code, reason = "not every test file needs all of it")]
#![allow(clippy::print_stdout, reason = "a test that cannot run says so")]

use std::ffi::{OsStr, OsString};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};
use tracesmith_fake_cuda::{CuptiVersion, Options, install, library};
use tracesmith_trace::Trace;

use super::Run;

/// No program of ours takes this long.
const LIMIT: Duration = Duration::from_secs(60);

/// The fake's libraries and the compiled targets.
pub struct Stage {
    folder: PathBuf,
}

/// The stage, or None where no C compiler is: then a test says so and does nothing.
pub fn stage() -> Option<&'static Stage> {
    static STAGE: OnceLock<Option<Stage>> = OnceLock::new();
    let stage = STAGE.get_or_init(Stage::set_up).as_ref();
    if stage.is_none() {
        tracesmith_skip::without("cc", "");
    }
    stage
}

impl Stage {
    /// Named after what it is made of, so that test files share it and none replaces it under another's feet.
    fn set_up() -> Option<Self> {
        Command::new("cc").arg("--version").output().ok()?;
        let mut hasher = DefaultHasher::new();
        library().unwrap().hash(&mut hasher);
        let mut sources: Vec<PathBuf> = fs::read_dir(targets())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        sources.sort();
        for source in sources {
            fs::read(source).unwrap().hash(&mut hasher);
        }
        let base = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let folder = base.join(format!("stage-{:016x}", hasher.finish()));
        if !folder.exists() {
            let unfinished = tempfile::tempdir_in(base).unwrap();
            build(unfinished.path());
            // Another test may have been faster, with the same.
            if fs::rename(unfinished.path(), &folder).is_ok() {
                let _ = unfinished.keep();
            }
        }
        Some(Self { folder })
    }

    /// A program or library of the stage.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

fn targets() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fake-cuda/targets")
}

/// As a machine with a toolkit has them: the driver, and CUPTI in a file of its own.
fn build(folder: &Path) {
    install(folder).unwrap();
    for name in ["libcupti.so.12", "libcupti.so.13", "libcupti.so"] {
        fs::remove_file(folder.join(name)).unwrap();
    }
    compile_cupti(folder, &[]);
    symlink("libcupti.so.13", folder.join("libcupti.so")).unwrap();
    compile(folder, "launcher", "launcher.c", &["-ldl", "-lpthread"]);
    compile(folder, "windows", "windows.c", &["-ldl"]);
    compile(folder, "sudden_ends", "sudden_ends.c", &["-ldl"]);
    compile(
        folder,
        "spy.so",
        "spy.c",
        &["-shared", "-fPIC", "-ldl", "-lpthread"],
    );
    compile(folder, "slow_pages", "slow_pages.c", &["-ldl", "-lpthread"]);
    let seen_by_all = ["-rdynamic", "-ldl", "-lpthread"];
    compile(folder, "named_threads", "named_threads.c", &seen_by_all);
    build_paths(folder);
    let search = format!("-L{}", folder.display());
    let linked = [&search, "-Wl,--no-as-needed", "-lcupti", "-ldl", "-lpthread"];
    compile(folder, "slow_pages_linked", "slow_pages.c", &linked);
    for name in ["linked_client", "guest"] {
        let libraries = [&search, "-lcupti", "-ldl", "-lpthread"];
        compile(folder, name, &format!("{name}.c"), &libraries);
    }
    let unlinked = ["-DONLY_LOOKED_UP", "-ldl", "-lpthread"];
    compile(folder, "unlinked_guest", "guest.c", &unlinked);
    // The words through which it calls others cannot be written to once it has begun, as in wheels of Python.
    let sealed = [&search, "-Wl,-z,relro,-z,now", "-lcupti", "-ldl", "-lpthread"];
    compile(folder, "sealed_client", "linked_client.c", &sealed);
}

fn compile_cupti(folder: &Path, defined: &[&str]) {
    let library = [
        "-shared",
        "-fPIC",
        "-Wl,-soname,libcupti.so.13",
        "-Wl,--hash-style=both",
        "-ldl",
    ];
    let flags = [defined, &library].concat();
    compile(folder, "libcupti.so.13", "cupti_file.c", &flags);
}

/// The program whose call paths are known, where there is a compiler of C++.
fn build_paths(folder: &Path) {
    if Command::new("c++").arg("--version").output().is_err() {
        return;
    }
    let optimised = ["-O2", "-fomit-frame-pointer", "-ldl"];
    compile_with("c++", folder, "paths", "paths.cpp", &optimised);
    let plugin = ["-O2", "-fomit-frame-pointer", "-shared", "-fPIC"];
    compile_with("c++", folder, "paths_plugin.so", "paths_plugin.cpp", &plugin);
    let bare = [
        "-O2",
        "-fno-omit-frame-pointer",
        "-fno-asynchronous-unwind-tables",
        "-fno-unwind-tables",
        "-shared",
        "-fPIC",
    ];
    compile(folder, "paths_bare.so", "paths_bare.c", &bare);
}

/// A program or library of a target's source.
fn compile(folder: &Path, output: &str, source: &str, flags: &[&str]) {
    compile_with("cc", folder, output, source, flags);
}

fn compile_with(compiler: &str, folder: &Path, output: &str, source: &str, flags: &[&str]) {
    let result = Command::new(compiler)
        .args(["-w", "-O1", "-g", "-o"])
        .arg(folder.join(output))
        .arg(targets().join(source))
        .args(flags)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&result.stderr);
    assert!(result.status.success(), "{errors}");
}

/// A folder of a test's own: `work` to run in, `runtime`, `tmp` and `home` beside it.
pub struct Place {
    folder: tempfile::TempDir,
    stage: &'static Stage,
    options: Options,
}

impl Place {
    pub fn new(stage: &'static Stage) -> Self {
        Self::with(stage, Options::default())
    }

    /// With a CUPTI that has all there is to ask for.
    pub fn newest(stage: &'static Stage) -> Self {
        let options = Options {
            cupti_version: CuptiVersion::V13_4,
            ..Options::default()
        };
        Self::with(stage, options)
    }

    /// With a fake that behaves in another way.
    pub fn with(stage: &'static Stage, options: Options) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["work", "runtime", "tmp", "home"] {
            let path = folder.path().join(name);
            fs::DirBuilder::new().mode(0o700).create(path).unwrap();
        }
        Self {
            folder,
            stage,
            options,
        }
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A libcupti of another kind, as `defined` when it is compiled: where libraries are looked for with it.
    pub fn other_cupti(&self, defined: &str) -> OsString {
        let folder = self.folder().join("other-cupti");
        fs::create_dir(&folder).unwrap();
        compile_cupti(&folder, &[defined]);
        std::env::join_paths([folder.as_path(), self.stage.folder()]).unwrap()
    }

    /// A file of the folder that programs run in.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("work").join(name)
    }

    pub fn runtime(&self) -> PathBuf {
        self.folder.path().join("runtime")
    }

    /// A program here, with the fake in its way.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.folder.path().join("work"))
            .env("LD_LIBRARY_PATH", self.stage.folder())
            .env("TRACESMITH_RUNTIME_DIR", self.runtime())
            .env("XDG_RUNTIME_DIR", self.runtime())
            .env("TMPDIR", self.folder.path().join("tmp"))
            .env("HOME", self.folder.path().join("home"))
            .env_remove("XDG_CACHE_HOME")
            .env_remove("TRACESMITH_CACHE")
            .envs(self.options.variables())
            .stdin(Stdio::null());
        command
    }

    /// A target of the stage: `line` is its name and its arguments.
    pub fn target(&self, line: &str) -> Command {
        let mut words = line.split_whitespace();
        let mut command = self.command(self.stage.path(words.next().unwrap()));
        command.args(words);
        command
    }

    /// The binary: `line` is what is typed behind its name.
    pub fn tracesmith(&self, line: &str) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_tracesmith"));
        command.args(line.split_whitespace());
        for variable in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS"] {
            command.env_remove(variable);
        }
        command
    }

    /// `tracesmith profile -o t.sbt OPTIONS -- TARGET`.
    pub fn profile(&self, options: &str, target: &str) -> Command {
        let mut words = target.split_whitespace();
        let mut command = self.tracesmith(&format!("profile -o t.sbt --force {options} --"));
        command.arg(self.stage.path(words.next().unwrap())).args(words);
        command
    }

    /// A target that was armed as `tracesmith env` says, in a shell.
    pub fn armed(&self, options: &str, target: &str) -> Command {
        self.armed_under("", options, target)
    }

    /// The same, with variables set in that shell for the target alone.
    pub fn armed_under(&self, variables: &str, options: &str, target: &str) -> Command {
        let mut command = self.command("sh");
        let script = format!(
            "eval \"$('{}' env {options})\"; {variables} exec {}/{target}",
            env!("CARGO_BIN_EXE_tracesmith"),
            self.stage.folder().display()
        );
        command.args(["-c", &script]);
        command
    }

    /// `tracesmith record` of a process into t.sbt.
    pub fn record(&self, pid: u32, options: &str) -> Command {
        self.tracesmith(&format!("record --pid {pid} -o t.sbt {options}"))
    }

    /// Starts a recorder; comes back when its window is open in the process.
    pub fn start_window(&self, recorder: &mut Command, pid: u32) -> Child {
        let maps = || fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        let rings = || maps().matches("tracesmith-ring").count();
        let before = rings();
        let child = start(recorder);
        until(|| rings() >= before + 2);
        // The rings are there a moment before the records are asked for. The recorder says when it is so.
        until(|| has_words(child.stderr.as_ref().unwrap()));
        child
    }

    /// Ends a recorder as a user does.
    pub fn close_window(&self, recorder: Child) -> Run {
        signal(&recorder, Signal::INT);
        ended(recorder)
    }

    /// A trace that can be read without damage.
    pub fn trace(&self, name: &str) -> Trace {
        let trace = Trace::open(&self.path(name)).unwrap();
        trace.load();
        let damage = trace.health().damage;
        assert!(damage.is_empty(), "{damage:?}");
        trace
    }

    /// What a target of the stage leaves in a trace, when all must go well.
    pub fn profiled(&self, options: &str, target: &str) -> (Run, Trace) {
        let run = run(&mut self.profile(options, target));
        assert_eq!(run.code, Some(0), "{target}: {}{}", run.stdout, run.stderr);
        (run, self.trace("t.sbt"))
    }

    /// Until an armed program waits for a collector.
    pub fn wait_until_armed(&self, child: &Child) {
        let socket = self.runtime().join(format!("{}.sock", child.id()));
        until(|| socket.exists());
    }
}

/// Whether something can be read there; it is left there.
fn has_words(stream: &impl AsFd) -> bool {
    let mut streams = [PollFd::new(stream, PollFlags::IN)];
    poll(&mut streams, Some(&Timespec::default())).unwrap() == 1
}

/// A program that is told by lines when to go on.
pub struct Talk {
    child: Option<Child>,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    heard: String,
}

impl Talk {
    pub fn start(command: &mut Command) -> Self {
        let mut child = start(command.stdin(Stdio::piped()));
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self {
            child: Some(child),
            input,
            output,
            heard: String::new(),
        }
    }

    pub fn child(&self) -> &Child {
        self.child.as_ref().unwrap()
    }

    /// Waits for the next line, which must begin so.
    pub fn hear(&mut self, beginning: &str) {
        let before = self.heard.len();
        self.output.read_line(&mut self.heard).unwrap();
        assert!(self.heard[before..].starts_with(beginning), "{}", self.heard);
    }

    /// Waits for a line with these words in it, for as long as a program of ours may take.
    pub fn hear_at_last(&mut self, words: &str) {
        let begun = Instant::now();
        let mut line = String::new();
        while !line.contains(words) {
            line.clear();
            let read = self.output.read_line(&mut line).unwrap();
            assert!(read > 0 && begun.elapsed() < LIMIT, "no {words:?}, but {line:?}");
        }
    }

    pub fn is_running(&mut self) -> bool {
        self.child.as_mut().unwrap().try_wait().unwrap().is_none()
    }

    pub fn kill(mut self) {
        kill(self.child.take().unwrap());
    }

    /// Lets it go on.
    pub fn say(&mut self) {
        self.input.write_all(b"go\n").unwrap();
    }

    /// To the end.
    pub fn end(mut self) -> Run {
        self.output.read_to_string(&mut self.heard).unwrap();
        let run = ended(self.child.take().unwrap());
        Run {
            stdout: std::mem::take(&mut self.heard),
            ..run
        }
    }

    /// To the end, wherever it waits.
    pub fn answer_all(mut self) -> Run {
        self.input.write_all(b"go\ngo\ngo\ngo\n").unwrap();
        self.end()
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        // A test that fails leaves nothing behind.
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Runs a command to its end; the number of a signal that ended it is negative.
pub fn run(command: &mut Command) -> Run {
    ended(start(command))
}

/// Starts a command; what it prints is kept for [`ended`].
pub fn start(command: &mut Command) -> Child {
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Writes to a command's input and closes that.
pub fn type_in(child: &mut Child, input: &[u8]) {
    child.stdin.take().unwrap().write_all(input).unwrap();
}

/// What a command gave, which must end within a minute.
pub fn ended(child: Child) -> Run {
    let pid = Pid::from_child(&child);
    let (done, is_done) = std::sync::mpsc::channel::<()>();
    let watch = thread::spawn(move || {
        if is_done.recv_timeout(LIMIT) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            // Its output then says how far it came.
            let _ = kill_process(pid, Signal::KILL);
        }
    });
    let output = child.wait_with_output().unwrap();
    drop(done);
    watch.join().unwrap();
    Run {
        code: output
            .status
            .code()
            .or(output.status.signal().map(|signal| -signal)),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

pub fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// Ends a program that would go on.
pub fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Waits for something that must come.
pub fn until(is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !is_so() {
        assert!(Instant::now() < deadline, "waited too long");
        thread::sleep(Duration::from_millis(2));
    }
}
