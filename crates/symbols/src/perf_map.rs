//! JIT-compiled code, as JIT compilers describe it in `/tmp/perf-PID.map`: one line per function, with address, size
//! and name.
//!
//! <https://github.com/torvalds/linux/blob/master/tools/perf/Documentation/jit-interface.txt>

use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use crate::opening::open_trusted;

/// At most this much of a file is read, because its names would fill memory.
const MAX_BYTES: u64 = 256 << 20;

/// The functions of one process.
#[derive(Debug, Default)]
pub struct PerfMap {
    /// By address. If several functions were at one address, the last one counts.
    functions: Vec<(u64, u64, String)>,
}

impl PerfMap {
    /// The path of a process's map. `pid` is the pid in its own namespace. `root` is `/`, or the root of its
    /// container.
    pub fn path_of(root: &Path, pid: u32) -> PathBuf {
        root.join(format!("tmp/perf-{pid}.map"))
    }

    /// Reads a file, and skips invalid lines.
    ///
    /// Anyone can create a file with this name. So only a regular file of this user or root is read.
    ///
    /// # Errors
    ///
    /// If the file is missing, cannot be read, or is not trusted.
    pub fn read(path: &Path) -> io::Result<Self> {
        let mut map = Self::default();
        let mut reader = BufReader::new(open_trusted(path)?.take(MAX_BYTES));
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line)? > 0 {
            map.functions.extend(function(&String::from_utf8_lossy(&line)));
            line.clear();
        }
        // Code can be generated again at the same address. The sort is stable, so the last one in the file counts.
        map.functions.sort_by_key(|(start, ..)| *start);
        map.functions.dedup_by(|later, earlier| {
            let is_same = later.0 == earlier.0;
            if is_same {
                std::mem::swap(later, earlier);
            }
            is_same
        });
        Ok(map)
    }

    /// The function at an address.
    pub fn find(&self, address: u64) -> Option<&str> {
        let behind = self.functions.partition_point(|(start, ..)| *start <= address);
        let (start, size, name) = self.functions.get(behind.checked_sub(1)?)?;
        (address - start < *size).then_some(name)
    }
}

fn function(line: &str) -> Option<(u64, u64, String)> {
    let mut parts = line.trim_end().splitn(3, ' ');
    let mut number = || {
        let part = parts.next()?;
        let digits = part.strip_prefix("0x").unwrap_or(part);
        u64::from_str_radix(digits, 16).ok() // not a line of such a file
    };
    let (start, size) = (number()?, number()?);
    Some((start, size, parts.next()?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_by_address() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("perf-1.map");
        std::fs::write(
            &path,
            "1000 20 first\n0x2000 10 py::name with spaces:/a.py\nnonsense\n1000 30 second\n\n3000 zz x\n",
        )
        .unwrap();
        let map = PerfMap::read(&path).unwrap();
        assert_eq!(
            map.find(0x102f),
            Some("second"),
            "code is made anew at the same place"
        );
        assert_eq!(map.find(0x2000), Some("py::name with spaces:/a.py"));
        for nothing in [0, 0xfff, 0x1030, 0x2010, u64::MAX] {
            assert_eq!(map.find(nothing), None, "{nothing:x}");
        }
        assert!(PerfMap::read(&folder.path().join("none")).is_err());
    }

    /// Issue 26: opening another user's pipe waited forever.
    #[test]
    fn pipes_links_and_files_of_others_are_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("perf-1.map");
        let mode = rustix::fs::Mode::RWXU;
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, mode).unwrap();
        let (sender, opened) = std::sync::mpsc::channel();
        std::thread::spawn(move || sender.send(PerfMap::read(&pipe).is_err()));
        let limit = std::time::Duration::from_secs(5);
        assert_eq!(opened.recv_timeout(limit), Ok(true), "it waits for a writer");

        let own = folder.path().join("perf-2.map");
        std::fs::write(&own, "1000 20 name\n").unwrap();
        assert!(PerfMap::read(&own).is_ok());
        let link = folder.path().join("perf-3.map");
        std::os::unix::fs::symlink(&own, &link).unwrap();
        assert!(PerfMap::read(&link).is_err());
        assert!(PerfMap::read(folder.path()).is_err());
        // Only root can change the owner of a file.
        if rustix::process::geteuid().is_root() {
            let nobody = rustix::fs::Uid::from_raw(65534);
            rustix::fs::chown(&own, Some(nobody), None).unwrap();
            assert!(PerfMap::read(&own).is_err(), "it belongs to another user");
        }
    }
}
