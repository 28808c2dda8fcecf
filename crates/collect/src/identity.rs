//! Identifies a process: its pid, name, command line and ranks, read from `/proc`.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use tracesmith_wire::handshake::{self as wire, Peer};

use crate::{end::End, mounts::Mounts, time};

/// What `/proc` shows about a process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Identity {
    /// The pid in the collector's pid namespace.
    pub(crate) pid: u32,
    /// The pid in the process's own pid namespace. It differs in a container.
    pub(crate) own_pid: u32,
    pub(crate) parent: u32,
    pub(crate) name: String,
    pub(crate) command: String,
    /// Start time on the host clock. 0 if unknown.
    pub(crate) started: u64,
    key: Option<ProcessKey>,
    pub(crate) ranks: Ranks,
    visibility: Visibility,
    /// The mounts of the process, if they differ from the collector's.
    pub(crate) mounts: Option<Arc<Mounts>>,
}

/// Whether the process is in the collector's `/proc`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Visibility {
    #[default]
    Visible,
    /// The process is in a pid namespace that the collector cannot see, or had exited. Its pid can be the pid of any
    /// other process here.
    Hidden,
}

/// A pid and a start time. They identify a process even if the kernel reuses the pid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ProcessKey {
    pub(crate) pid: u32,
    /// Start time in clock ticks since boot.
    pub(crate) start_ticks: u64,
}

impl ProcessKey {
    /// The process that has this pid now. `proc` is the path of the proc file system.
    pub(crate) fn read(proc: &Path, pid: u32) -> Option<Self> {
        let start_ticks = Stat::read(&proc.join(pid.to_string()))?.start_ticks;
        Some(Self { pid, start_ticks })
    }
}

/// Whether a process has rings that it has not closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rings {
    Mapped,
    Closed,
}

/// The ranks of a process in a distributed job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ranks {
    pub(crate) rank: Option<u32>,
    pub(crate) local_rank: Option<u32>,
    pub(crate) world_size: Option<u32>,
}

impl Identity {
    /// Identifies the process at the other end of a connection. `own_pid` is the pid that the process sent, if any.
    pub(crate) fn of_peer(peer: &Peer, own_pid: Option<u32>) -> Self {
        let seen = peer.process_id();
        let own_pid = own_pid.or(seen).unwrap_or(0);
        let read = seen.map(|pid| Self::read(pid, own_pid));
        // After the process has exited and was reaped, its pid can belong to another process, and so can the data
        // that was read.
        let identity = read.filter(|identity| peer.life() != wire::Life::Ended || identity.is_zombie());
        identity.unwrap_or(Self {
            pid: own_pid,
            own_pid,
            visibility: Visibility::Hidden,
            ..Self::default()
        })
    }

    /// Whether the pid is valid in the collector's pid namespace.
    pub(crate) fn is_visible(&self) -> bool {
        self.visibility == Visibility::Visible
    }

    /// Whether the process has exited and still has its pid.
    fn is_zombie(&self) -> bool {
        Stat::read(&folder(self.pid)).is_some_and(|stat| {
            stat.state == b'Z' && Some(stat.start_ticks) == self.key.map(|key| key.start_ticks)
        })
    }

    /// Reads a process from `/proc`. Missing values stay empty.
    fn read(pid: u32, own_pid: u32) -> Self {
        let folder = folder(pid);
        let command = fs::read(folder.join("cmdline")).unwrap_or_default();
        let arguments: Vec<&[u8]> = command.trim_ascii_end().split(|byte| *byte == 0).collect();
        let arguments = match arguments.split_last() {
            // Every argument ends in a zero byte.
            Some(([], rest)) => rest,
            _ => &arguments,
        };
        let stat = Stat::read(&folder);
        let start_ticks = stat.map(|stat| stat.start_ticks);
        let stat = stat.unwrap_or_default();
        let environment = fs::read(folder.join("environ")).unwrap_or_default();
        Self {
            pid,
            own_pid,
            parent: stat.parent,
            name: name(arguments).unwrap_or_else(|| first_line(&folder.join("comm"))),
            command: joined(arguments.iter().map(|argument| OsStr::from_bytes(argument))),
            started: stat.started(),
            key: start_ticks.map(|start_ticks| ProcessKey { pid, start_ticks }),
            ranks: Ranks::from_environment(&environment),
            visibility: Visibility::Visible,
            mounts: Mounts::of(pid).map(Arc::new),
        }
    }

    /// The root of the process's file system: `/`, or the root of its container as seen from here.
    pub(crate) fn root(&self) -> PathBuf {
        self.mounts
            .as_ref()
            .map_or_else(|| "/".into(), |mounts| mounts.path())
    }

    /// The key of the process. `None` if it had exited.
    pub(crate) fn process_key(&self) -> Option<ProcessKey> {
        self.key
    }

    /// How the process ended, if its parent has not reaped it yet.
    pub(crate) fn end_of_zombie(&self) -> Option<End> {
        let stat = Stat::read(&folder(self.pid)).filter(|_| self.is_visible())?;
        let is_it = stat.state == b'Z' && Some(stat.start_ticks) == self.key.map(|key| key.start_ticks);
        is_it.then(|| End::from_raw_status(stat.exit_status))
    }

    /// Whether the running process has executed another program (exec). `None` while it is exiting, or if its
    /// mappings cannot be read.
    ///
    /// Rings stay mapped until the process exits or calls exec. If it has no rings, its command line is compared.
    pub(crate) fn has_execed(&self, rings: Rings) -> Option<bool> {
        let mappings = fs::read(folder(self.pid).join("maps"))
            .ok()
            .filter(|_| self.is_visible())?;
        if mappings.is_empty() {
            return None;
        }
        let wanted = b"/memfd:tracesmith-ring";
        let holds_ring = mappings.windows(wanted.len()).any(|window| window == wanted);
        if holds_ring {
            return Some(false);
        }
        Some(rings == Rings::Mapped || Self::read(self.pid, self.own_pid).command != self.command)
    }

    /// The name of a thread.
    pub(crate) fn thread_name(&self, thread: u32) -> String {
        if !self.is_visible() {
            return String::new();
        }
        let tasks = folder(self.pid).join("task");
        if self.pid == self.own_pid {
            return first_line(&tasks.join(format!("{thread}/comm")));
        }
        // In a container, thread IDs are of another pid namespace.
        let tasks = fs::read_dir(tasks).into_iter().flatten().flatten();
        let mut own = tasks.map(|task| task.path()).filter(|task| {
            let status = fs::read_to_string(task.join("status")).unwrap_or_default();
            own_number(&status) == Some(thread)
        });
        own.next()
            .map_or_else(String::new, |task| first_line(&task.join("comm")))
    }
}

/// The pid in the innermost namespace, from the `NSpid` line of a status file.
fn own_number(status: &str) -> Option<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    line.split_ascii_whitespace().last()?.parse().ok()
}

/// Whether a process has exited. It may wait to be reaped.
pub(crate) fn has_ended(pid: u32) -> bool {
    Stat::read(&folder(pid)).is_none_or(|stat| matches!(stat.state, b'Z' | b'X'))
}

impl Ranks {
    /// Reads the variables of torchrun, Open MPI, other MPI libraries and Slurm.
    pub(crate) fn from_environment(environment: &[u8]) -> Self {
        let variables: BTreeMap<&[u8], u32> = environment
            .split(|byte| *byte == 0)
            .filter_map(|variable| {
                let at = variable.iter().position(|byte| *byte == b'=')?;
                let value = std::str::from_utf8(&variable[at + 1..]).ok()?;
                Some((&variable[..at], value.parse().ok()?))
            })
            .collect();
        let first = |names: &[&str]| {
            let mut values = names.iter().filter_map(|name| variables.get(name.as_bytes()));
            values.next().copied()
        };
        Self {
            rank: first(&[
                "RANK",
                "OMPI_COMM_WORLD_RANK",
                "PMI_RANK",
                "PMIX_RANK",
                "SLURM_PROCID",
            ]),
            local_rank: first(&[
                "LOCAL_RANK",
                "OMPI_COMM_WORLD_LOCAL_RANK",
                "MPI_LOCALRANKID",
                "PMI_LOCAL_RANK",
                "SLURM_LOCALID",
            ]),
            world_size: first(&["WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"]),
        }
    }
}

/// The needed fields of `/proc/PID/stat`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Stat {
    state: u8,
    parent: u32,
    start_ticks: u64,
    exit_status: i32,
}

impl Stat {
    fn read(folder: &Path) -> Option<Self> {
        Self::parse(&fs::read(folder.join("stat")).ok()?)
    }

    /// The second field is the name, in parentheses. It can contain any character.
    fn parse(stat: &[u8]) -> Option<Self> {
        let behind_name = stat.iter().rposition(|byte| *byte == b')')? + 1;
        let rest = std::str::from_utf8(&stat[behind_name..]).ok()?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        Some(Self {
            state: *fields.first()?.as_bytes().first()?,
            parent: fields.get(1)?.parse().ok()?,
            start_ticks: fields.get(19)?.parse().ok()?,
            exit_status: fields.get(49).and_then(|status| status.parse().ok()).unwrap_or(0),
        })
    }

    fn started(self) -> u64 {
        let ticks_per_second = rustix::param::clock_ticks_per_second().max(1);
        match self.start_ticks.saturating_mul(1_000_000_000) / ticks_per_second {
            0 => 0,
            since_boot => time::from_since_boot(since_boot),
        }
    }
}

fn folder(pid: u32) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}"))
}

/// The file name of the program.
fn name(arguments: &[&[u8]]) -> Option<String> {
    let program = Path::new(OsStr::from_bytes(arguments.first()?));
    Some(program.file_name()?.to_string_lossy().into_owned())
}

/// A command line, quoted for a shell.
pub(crate) fn joined<'a>(arguments: impl IntoIterator<Item = &'a OsStr>) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_=+:,./@%".contains(c);
    let quoted = arguments.into_iter().map(|argument| {
        let argument = argument.to_string_lossy();
        if !argument.is_empty() && argument.chars().all(is_plain) {
            argument.into_owned()
        } else {
            format!("'{}'", argument.replace('\'', r"'\''"))
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

/// The first line of a file. Empty if the file cannot be read.
pub(crate) fn first_line(path: &Path) -> String {
    let text = fs::read(path).unwrap_or_default();
    String::from_utf8_lossy(text.trim_ascii_end()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_come_from_any_launcher() {
        let torchrun = Ranks::from_environment(b"A=b\0RANK=3\0LOCAL_RANK=1\0WORLD_SIZE=8\0");
        assert_eq!(
            (torchrun.rank, torchrun.local_rank, torchrun.world_size),
            (Some(3), Some(1), Some(8))
        );
        let slurm = Ranks::from_environment(b"SLURM_PROCID=5\0SLURM_LOCALID=5\0SLURM_NTASKS=6");
        assert_eq!(
            (slurm.rank, slurm.local_rank, slurm.world_size),
            (Some(5), Some(5), Some(6))
        );
        let open_mpi = Ranks::from_environment(b"OMPI_COMM_WORLD_RANK=2\0SLURM_PROCID=0\0");
        assert_eq!(open_mpi.rank, Some(2), "the inner launcher counts");
        assert_eq!(Ranks::from_environment(b"RANK=x\0RANK\0=\0"), Ranks::default());
    }

    #[test]
    fn a_stat_line_is_read_behind_any_name() {
        let mut line = b"7 (a) Z (b)) S 3 ".to_vec();
        line.extend(
            (5..=52)
                .map(|field| format!("{field} "))
                .collect::<String>()
                .bytes(),
        );
        let stat = Stat::parse(&line).unwrap();
        assert_eq!(
            (stat.state, stat.parent, stat.start_ticks, stat.exit_status),
            (b'S', 3, 22, 52)
        );
        for cut in 0..40 {
            let _ = Stat::parse(&line[..cut]);
        }
    }

    #[test]
    fn this_process_is_recognised() {
        let pid = std::process::id();
        let identity = Identity::read(pid, pid);
        assert!(identity.command.contains(&identity.name), "{identity:?}");
        let now = time::now();
        assert!(
            identity.started > 0 && identity.started <= now,
            "{identity:?} at {now}"
        );
        assert_eq!(identity.end_of_zombie(), None);
        assert_eq!(identity.has_execed(Rings::Closed), Some(false));
    }

    #[test]
    fn a_thread_of_a_container_has_a_number_of_its_own() {
        assert_eq!(own_number("Name:\tsh\nNSpid:\t812\t7\nNSpgid:\t1\t1\n"), Some(7));
        assert_eq!(own_number("NSpid:\t812\n"), Some(812));
        assert_eq!(own_number("Name:\tNSpid\n"), None);
    }

    #[test]
    fn command_lines_can_be_typed_again() {
        let arguments = ["a b", "it's", "", "--x=1"].map(OsStr::new);
        assert_eq!(joined(arguments), r"'a b' 'it'\''s' '' --x=1");
    }
}
