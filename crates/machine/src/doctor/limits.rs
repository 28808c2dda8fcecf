//! Checks the limits of the kernel and of containers.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::{MemfdFlags, StatVfsMountFlags, memfd_create, statvfs};
use rustix::process::{PidfdFlags, Resource, getpid, getrlimit, pidfd_open};

use super::process::field;
use super::{Check, Surroundings};

/// The first kernel with pidfds.
const OLDEST_KERNEL: (u32, u32) = (5, 3);
/// Enough descriptors to record a few dozen processes.
const DESCRIPTORS: u64 = 256;

pub(super) fn checks(surroundings: &Surroundings<'_>) -> Vec<Check> {
    vec![
        kernel(&rustix::system::uname().release().to_string_lossy()),
        calls(Path::new("/proc/self/status")),
        memory(
            surroundings.target_memory_bytes,
            memory_limit(Path::new("/proc/self/cgroup"), Path::new("/sys/fs/cgroup")),
        ),
        descriptors(getrlimit(Resource::Nofile).current),
        meeting_place(&surroundings.runtime_directory),
    ]
}

fn kernel(release: &str) -> Check {
    let (name, what) = ("system.kernel", "kernel");
    match version_of(release) {
        Some(version) if version < OLDEST_KERNEL => Check::no(
            name,
            what,
            format!("Linux {release}"),
            "update to Linux 5.3 or later, which reports process exits reliably (pidfd)",
        ),
        _ => Check::ok(name, what, format!("Linux {release}")),
    }
}

fn version_of(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Tries the system calls that a container's filter can block.
fn calls(status: &Path) -> Check {
    let (name, what) = ("system.calls", "system calls");
    let mut refused = Vec::new();
    if let Err(error) = memfd_create(
        "tracesmith-doctor",
        MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING,
    ) {
        refused.push(format!("memfd_create: {error}"));
    }
    if let Err(error) = pidfd_open(getpid(), PidfdFlags::empty()) {
        refused.push(format!("pidfd_open: {error}"));
    }
    // If the status cannot be read, assume no filter.
    let filtered = fs::read_to_string(status)
        .ok()
        .and_then(|status| field(&status, "Seccomp").map(|mode| mode == "2"))
        .unwrap_or(false);
    let filter = if filtered { " (seccomp filter active)" } else { "" };
    if refused.is_empty() {
        return Check::ok(name, what, format!("all required calls work{filter}"));
    }
    Check::no(
        name,
        what,
        format!("{}{filter}", refused.join(", ")),
        "allow memfd_create and pidfd_open in the container's seccomp profile (Docker's default does since 20.10)",
    )
}

/// Whether there is enough memory for recording.
fn memory(bound_bytes: u64, limit_bytes: Option<u64>) -> Check {
    let (name, what) = ("system.memory", "memory for recording");
    let bound = format!("at most {} per process", mebibytes(bound_bytes));
    match limit_bytes {
        None => Check::ok(name, what, bound),
        Some(limit) if limit / 4 < bound_bytes => Check::warning(
            name,
            what,
            format!(
                "{bound}, but the container limit is {} for all processes",
                mebibytes(limit)
            ),
            "give the container more memory: the rings count towards its limit (docker run --memory)",
        ),
        Some(limit) => Check::ok(
            name,
            what,
            format!("{bound}; the container limit is {}", mebibytes(limit)),
        ),
    }
}

fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}

/// The smallest memory limit of this process's control groups.
fn memory_limit(own_groups: &Path, mount: &Path) -> Option<u64> {
    // Without control groups there is no limit.
    let groups = fs::read_to_string(own_groups).ok()?;
    let (mut folder, top, file) = limit_files(&groups, mount)?;
    let mut smallest: Option<u64> = None;
    loop {
        let limit = fs::read_to_string(folder.join(file))
            .ok()
            .and_then(|text| text.trim().parse::<u64>().ok())
            // Version 1 writes "no limit" as a number near the maximum.
            .filter(|limit| *limit < 1 << 60);
        smallest = smallest.into_iter().chain(limit).min();
        if folder == top || !folder.pop() {
            return smallest;
        }
    }
}

/// The group's folder, the topmost folder, and the name of the limit file.
fn limit_files(groups: &str, mount: &Path) -> Option<(PathBuf, PathBuf, &'static str)> {
    let below = |top: PathBuf, group: &str| (top.join(group.trim_start_matches('/')), top);
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, group) = (parts.next()?, parts.next()?, parts.next()?);
        if controllers.split(',').any(|controller| controller == "memory") {
            let (folder, top) = below(mount.join("memory"), group);
            return Some((folder, top, "memory.limit_in_bytes"));
        }
    }
    let group = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let (folder, top) = below(mount.to_owned(), group);
    Some((folder, top, "memory.max"))
}

fn descriptors(limit: Option<u64>) -> Check {
    let (name, what) = ("system.descriptors", "open files");
    match limit {
        Some(limit) if limit < DESCRIPTORS => Check::warning(
            name,
            what,
            format!("at most {limit}"),
            format!("ulimit -n {DESCRIPTORS} or more: each recorded process needs a few"),
        ),
        Some(limit) => Check::ok(name, what, format!("at most {limit}")),
        None => Check::ok(name, what, "no limit"),
    }
}

/// Checks the runtime directory, where targets and collectors connect.
fn meeting_place(directory: &Result<PathBuf, String>) -> Check {
    let (name, what) = ("system.runtime_directory", "runtime directory");
    let directory = match directory {
        Ok(directory) => directory,
        Err(error) => {
            return Check::no(
                name,
                what,
                error.clone(),
                "set TRACESMITH_RUNTIME_DIR to a folder that only you can access (mode 0700)",
            );
        }
    };
    if directory.to_string_lossy().contains([' ', ':', '\t']) {
        return Check::no(
            name,
            what,
            format!("{}: LD_PRELOAD cannot contain this path", directory.display()),
            "set TRACESMITH_RUNTIME_DIR to a path without spaces and colons",
        );
    }
    // If the folder cannot be queried, assume that it is fine.
    let refuses_programs =
        statvfs(directory.as_path()).is_ok_and(|system| system.f_flag.contains(StatVfsMountFlags::NOEXEC));
    if refuses_programs {
        return Check::no(
            name,
            what,
            format!(
                "{}, mounted noexec: no library can be loaded from it",
                directory.display()
            ),
            "set TRACESMITH_RUNTIME_DIR to a folder of yours (mode 0700) on a file system without noexec",
        );
    }
    Check::ok(name, what, directory.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::State;

    #[test]
    fn kernels_are_told_by_their_release() {
        assert_eq!(version_of("6.18.44-fc"), Some((6, 18)));
        assert_eq!(version_of("5.4"), Some((5, 4)));
        assert_eq!(kernel("4.18.0-553.el8_10.x86_64").state, State::No);
        assert_eq!(kernel("5.3.0").state, State::Ok);
        assert_eq!(
            kernel("strange").state,
            State::Ok,
            "what cannot be read is not refused"
        );
    }

    #[test]
    fn the_smallest_limit_of_all_groups_counts() {
        let mount = tempfile::tempdir().unwrap();
        let inner = mount.path().join("pod/container");
        fs::create_dir_all(&inner).unwrap();
        fs::write(inner.join("memory.max"), "max\n").unwrap();
        fs::write(mount.path().join("pod/memory.max"), "268435456\n").unwrap();
        let groups = mount.path().join("cgroup");
        fs::write(&groups, "0::/pod/container\n").unwrap();
        assert_eq!(memory_limit(&groups, mount.path()), Some(256 << 20));

        let old = mount.path().join("memory/docker/x");
        fs::create_dir_all(&old).unwrap();
        fs::write(old.join("memory.limit_in_bytes"), "9223372036854771712\n").unwrap();
        fs::write(&groups, "12:cpu,cpuacct:/docker/x\n4:memory:/docker/x\n0::/\n").unwrap();
        assert_eq!(
            memory_limit(&groups, mount.path()),
            None,
            "version 1 without a limit"
        );
        assert_eq!(memory_limit(&mount.path().join("none"), mount.path()), None);
    }

    #[test]
    fn small_containers_are_warned_of() {
        assert_eq!(memory(64 << 20, None).state, State::Ok);
        assert_eq!(memory(64 << 20, Some(1 << 30)).state, State::Ok);
        let small = memory(64 << 20, Some(128 << 20));
        assert_eq!(small.state, State::Warning);
        assert_eq!(
            small.found,
            "at most 64 MiB per process, but the container limit is 128 MiB for all processes"
        );
    }

    #[test]
    fn few_descriptors_are_warned_of() {
        assert_eq!(descriptors(Some(64)).state, State::Warning);
        assert_eq!(descriptors(Some(1024)).state, State::Ok);
        assert_eq!(descriptors(None).state, State::Ok);
    }

    #[test]
    fn a_place_to_meet_is_needed() {
        assert_eq!(meeting_place(&Err("open to others".to_owned())).state, State::No);
        let with_a_space = PathBuf::from("/tmp/my files");
        assert_eq!(meeting_place(&Ok(with_a_space)).state, State::No);
        assert_eq!(meeting_place(&Ok(PathBuf::from("/"))).state, State::Ok);
    }
}
