//! Finds descendants of the program that use CUDA and did not connect to the collector.
//!
//! Their environment was cleared, or a debugger kept the driver from loading the library. A thread looks for them in
//! `/proc` from time to time.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use crate::identity::{ProcessKey, first_line};

/// Shortest time between two scans. CUDA alone needs about this long to start and end a program.
const PERIOD: Duration = Duration::from_millis(250);

/// A scan may use this share of the time: 1/50.
const PART: u32 = 50;

/// The processes that were found.
type Seen = BTreeMap<ProcessKey, Process>;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Process {
    name: String,
    /// The names of the processes between the collector and this one, outermost first.
    above: Vec<String>,
}

/// A thread that scans until this value is dropped.
pub(crate) struct Watch {
    seen: Arc<Mutex<Seen>>,
    _stop: Sender<()>,
}

impl Watch {
    /// Starts the thread. Returns `None` if no thread can be started.
    pub(crate) fn start() -> Option<Self> {
        let seen = Arc::new(Mutex::new(Seen::new()));
        let (stop, stopped) = channel();
        let found = Arc::clone(&seen);
        thread::Builder::new()
            .name("uncaptured".to_owned())
            .spawn(move || watch(&found, &stopped))
            .ok()?;
        Some(Self { seen, _stop: stop })
    }

    /// Descriptions of the processes that did not connect.
    pub(crate) fn uncaptured_processes(&self, known: &BTreeSet<ProcessKey>) -> Vec<String> {
        let seen = self
            .seen
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        in_words(&seen, known)
    }
}

fn watch(found: &Mutex<Seen>, stopped: &Receiver<()>) {
    let proc = Path::new("/proc");
    let ours = std::process::id();
    let mut seen = Seen::new();
    loop {
        let before = Instant::now();
        look(proc, ours, &mut seen);
        found
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .clone_from(&seen);
        let pause = PERIOD.max(before.elapsed() * PART);
        if stopped.recv_timeout(pause) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
}

/// Adds the descendants of a process that use CUDA now.
fn look(proc: &Path, root: u32, seen: &mut Seen) {
    let mut waiting = vec![Visit {
        pid: root,
        above: Vec::new(),
        copied: None,
    }];
    // If a pid was reused during the scan, the walk could return to an ancestor.
    let mut visited = BTreeSet::new();
    while let Some(Visit { pid, above, copied }) = waiting.pop() {
        if !visited.insert(pid) {
            continue;
        }
        let folder = proc.join(pid.to_string());
        // A process can call exec during the scan. Read its name after all other values.
        let name = || first_line(&folder.join("comm"));
        let program = fs::read_link(folder.join("exe")).ok();
        let is_copy = program.is_some() && program == copied;
        let key = ProcessKey::read(proc, pid).filter(|_| !is_copy && pid != root);
        let is_seen = key.is_some_and(|key| seen.contains_key(&key));
        // Scan mappings only once per process: a program cannot map memory while its mappings are read.
        let uses_cuda = is_copy || is_seen || is_using_cuda(&folder);
        if let Some(key) = key.filter(|_| uses_cuda && !is_seen) {
            let process = Process {
                name: name(),
                above: above.clone(),
            };
            seen.insert(key, process);
        }
        let children = children(&folder);
        let (mut names, name) = (above, name());
        if pid != root && names.last() != Some(&name) {
            names.push(name);
        }
        waiting.extend(children.into_iter().map(|child| Visit {
            pid: child,
            above: names.clone(),
            copied: program.clone().filter(|_| uses_cuda),
        }));
    }
}

/// A process to scan.
struct Visit {
    pid: u32,
    above: Vec<String>,
    /// The program of its parent, if the parent uses CUDA. A forked child has the same mappings as its parent, and is
    /// not a separate program. Every child is in this state for a moment.
    copied: Option<PathBuf>,
}

fn children(folder: &Path) -> Vec<u32> {
    let mut found = Vec::new();
    for thread in fs::read_dir(folder.join("task")).into_iter().flatten().flatten() {
        let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        found.extend(
            children
                .split_ascii_whitespace()
                .filter_map(|pid| pid.parse::<u32>().ok()),
        );
    }
    found
}

/// Whether a process has loaded the driver and opened the device file for GPU memory. It opens this file in `cuInit`.
fn is_using_cuda(folder: &Path) -> bool {
    let mut descriptors = fs::read_dir(folder.join("fd")).into_iter().flatten().flatten();
    let has_memory = descriptors.any(|descriptor| {
        let file = fs::read_link(descriptor.path());
        file.is_ok_and(|file| file.file_name().is_some_and(|name| name == "nvidia-uvm"))
    });
    let driver = b"/libcuda.so";
    has_memory
        && fs::read(folder.join("maps"))
            .is_ok_and(|maps| maps.windows(driver.len()).any(|window| window == driver))
}

fn in_words(seen: &Seen, known: &BTreeSet<ProcessKey>) -> Vec<String> {
    let mut groups: BTreeMap<&Process, Vec<ProcessKey>> = BTreeMap::new();
    for (key, process) in seen.iter().filter(|(key, _)| !known.contains(key)) {
        groups.entry(process).or_default().push(*key);
    }
    groups
        .into_iter()
        .map(|(Process { name, above }, keys)| {
            let who = match &keys[..] {
                [one] => format!("process {}", one.pid),
                several => format!("{} processes", several.len()),
            };
            let below = match &above[..] {
                [] => String::new(),
                names => format!(", started by {}", names.join(" > ")),
            };
            format!("{who} ({name}{below}) used CUDA without the TraceSmith library and was not recorded")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A simulated proc file system.
    struct Proc(tempfile::TempDir);

    impl Proc {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn add(&self, pid: u32, program: &str, children: &[u32]) -> PathBuf {
            let folder = self.0.path().join(pid.to_string());
            // The second thread has the children.
            for (thread, theirs) in [(pid, &[][..]), (pid + 1, children)] {
                let task = folder.join(format!("task/{thread}"));
                fs::create_dir_all(&task).unwrap();
                let theirs: Vec<String> = theirs.iter().map(u32::to_string).collect();
                fs::write(task.join("children"), theirs.join(" ")).unwrap();
            }
            fs::create_dir(folder.join("fd")).unwrap();
            symlink(format!("/bin/{program}"), folder.join("exe")).unwrap();
            fs::write(folder.join("comm"), format!("{program}\n")).unwrap();
            let zeros = "0 ".repeat(16);
            fs::write(
                folder.join("stat"),
                format!("{pid} ({program}) S 1 {zeros} 0 {} 0", pid * 10),
            )
            .unwrap();
            symlink("/dev/null", folder.join("fd/0")).unwrap();
            fs::write(folder.join("maps"), "7f00-7f01 r-xp /lib/libc.so.6\n").unwrap();
            folder
        }

        fn add_user(&self, pid: u32, program: &str, children: &[u32]) {
            let folder = self.add(pid, program, children);
            symlink("/dev/nvidia-uvm", folder.join("fd/7")).unwrap();
            fs::write(folder.join("maps"), "7f00-7f01 r-xp /lib/libcuda.so.580.1\n").unwrap();
        }

        fn seen(&self) -> Seen {
            let mut seen = Seen::new();
            look(self.0.path(), 10, &mut seen);
            seen
        }
    }

    fn words(seen: &Seen, known: &[u32]) -> Vec<String> {
        let known = known.iter().map(|pid| ProcessKey {
            pid: *pid,
            start_ticks: u64::from(*pid) * 10,
        });
        in_words(seen, &known.collect())
    }

    #[test]
    fn programs_that_use_cuda_are_found_wherever_they_are_below() {
        let proc = Proc::new();
        proc.add(10, "tracesmith", &[20, 30]);
        proc.add_user(20, "train", &[]);
        proc.add(30, "sh", &[32]);
        proc.add(32, "ncu", &[34]);
        proc.add(34, "ncu", &[40, 50]);
        proc.add_user(40, "bench", &[]);
        proc.add_user(50, "bench", &[]);
        let behind = ") used CUDA without the TraceSmith library and was not recorded";
        let both = format!("2 processes (bench, started by sh > ncu{behind}");
        assert_eq!(
            words(&proc.seen(), &[]),
            [both.clone(), format!("process 20 (train{behind}")]
        );
        assert_eq!(words(&proc.seen(), &[20]), [both]);
        assert_eq!(words(&proc.seen(), &[20, 40, 50]), [""; 0]);
    }

    #[test]
    fn children_of_forks_are_no_programs_of_their_own() {
        let proc = Proc::new();
        proc.add(10, "tracesmith", &[20]);
        proc.add_user(20, "python", &[30]);
        proc.add_user(30, "python", &[40]);
        proc.add_user(40, "python", &[50]);
        proc.add_user(50, "other", &[]);
        let found: Vec<u32> = proc.seen().keys().map(|key| key.pid).collect();
        assert_eq!(found, [20, 50]);
    }

    /// The first child of a collector that samples counters, before it calls exec.
    #[test]
    fn nor_is_a_child_that_is_still_a_copy_of_us() {
        let proc = Proc::new();
        proc.add_user(10, "tracesmith", &[20]);
        proc.add_user(20, "tracesmith", &[]);
        assert_eq!(proc.seen(), Seen::new());
    }

    #[test]
    fn nobody_is_looked_into_again() {
        let proc = Proc::new();
        proc.add(10, "tracesmith", &[20]);
        proc.add_user(20, "python", &[30]);
        let mut seen = proc.seen();
        fs::remove_file(proc.0.path().join("20/maps")).unwrap();
        proc.add_user(30, "python", &[40]);
        fs::remove_file(proc.0.path().join("30/maps")).unwrap();
        proc.add_user(40, "python", &[]);
        look(proc.0.path(), 10, &mut seen);
        let found: Vec<u32> = seen.keys().map(|key| key.pid).collect();
        assert_eq!(found, [20]);
    }

    #[test]
    fn what_only_inherits_a_descriptor_or_only_loads_the_driver_uses_no_cuda() {
        let proc = Proc::new();
        proc.add(10, "tracesmith", &[20, 30]);
        let folder = proc.add(20, "sleep", &[]);
        symlink("/dev/nvidia-uvm", folder.join("fd/7")).unwrap();
        let folder = proc.add(30, "query", &[]);
        fs::write(folder.join("maps"), "7f00-7f01 r-xp /lib/libcuda.so.1\n").unwrap();
        assert_eq!(proc.seen(), Seen::new());
    }

    #[test]
    fn one_that_is_gone_and_a_number_that_leads_back_do_no_harm() {
        let proc = Proc::new();
        proc.add(10, "tracesmith", &[20, 99]);
        proc.add_user(20, "train", &[10]);
        assert_eq!(proc.seen().len(), 1);
    }
}
