//! Processes in /proc.

use std::fs;
use std::path::Path;

/// A process and its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: u32,
    pub(super) name: String,
}

/// The ancestors of this process, nearest first. Ancestors in other pid namespaces are not visible.
pub(super) fn ancestors(proc: &Path) -> Vec<Process> {
    let mut found = Vec::new();
    let mut next = parent(&read(&proc.join("self/status")));
    while let Some(pid) = next.filter(|pid| *pid > 0) {
        let status = read(&proc.join(pid.to_string()).join("status"));
        if status.is_empty() {
            break;
        }
        found.push(Process {
            pid,
            name: field(&status, "Name").unwrap_or_default().to_owned(),
        });
        next = parent(&status);
    }
    found
}

/// All processes with one of these names.
pub(super) fn processes_named(proc: &Path, names: &[&str]) -> Vec<Process> {
    let mut found: Vec<Process> = fs::read_dir(proc)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let name = name_of(proc, pid)?;
            // The kernel truncates names to fifteen bytes.
            names
                .iter()
                .any(|wanted| wanted.as_bytes().iter().take(15).eq(name.as_bytes()))
                .then_some(Process { pid, name })
        })
        .collect();
    found.sort_by_key(|process| process.pid);
    found
}

/// The name of a process. `None` if it has exited.
pub(super) fn name_of(proc: &Path, pid: u32) -> Option<String> {
    let name = fs::read_to_string(proc.join(pid.to_string()).join("comm")).ok()?;
    Some(name.trim_end().to_owned())
}

/// Empty if the file is gone: processes can exit meanwhile.
fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn parent(status: &str) -> Option<u32> {
    field(status, "PPid")?.parse().ok()
}

/// A field of a status file.
pub(super) fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key == name).then(|| value.trim())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fake_proc(processes: &[(&str, &str, u32)]) -> tempfile::TempDir {
        let proc = tempfile::tempdir().unwrap();
        for (pid, name, parent) in processes {
            let folder = proc.path().join(pid);
            fs::create_dir(&folder).unwrap();
            fs::write(
                folder.join("status"),
                format!("Name:\t{name}\nPPid:\t{parent}\nSeccomp:\t2\n"),
            )
            .unwrap();
            fs::write(folder.join("comm"), format!("{name}\n")).unwrap();
        }
        proc
    }

    #[test]
    fn ancestors_are_walked_to_the_first_process() {
        let proc = fake_proc(&[
            ("self", "tracesmith", 42),
            ("42", "nsys", 7),
            ("7", "bash", 1),
            ("1", "init", 0),
        ]);
        let names: Vec<_> = ancestors(proc.path())
            .into_iter()
            .map(|process| process.name)
            .collect();
        assert_eq!(names, ["nsys", "bash", "init"]);
    }

    #[test]
    fn long_names_are_found_by_what_the_kernel_keeps() {
        let proc = fake_proc(&[
            ("9", "nvidia-cuda-mps", 1),
            ("10", "nvidia-cuda", 1),
            ("11", "bash", 1),
        ]);
        let found = processes_named(proc.path(), &["nvidia-cuda-mps-control"]);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].pid, 9);
    }

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let status = "Name:\tpython3\nNoNewPrivs:\t0\nSeccomp:\t2\nSeccomp_filters:\t1\n";
        assert_eq!(field(status, "Seccomp"), Some("2"));
        assert_eq!(field(status, "PPid"), None);
    }
}
