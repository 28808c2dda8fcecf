//! Code that was made at run time, as compilers that make it write it down: `/tmp/perf-PID.map`, one line for each
//! function with its address, its size and its name.
//!
//! <https://github.com/torvalds/linux/blob/master/tools/perf/Documentation/jit-interface.txt>

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// Files beyond this are read so far: their names would fill memory.
const MAX_BYTES: u64 = 1 << 30;

/// The functions of one process.
#[derive(Debug, Default)]
pub struct PerfMap {
    /// By address; of functions at one address the last.
    functions: Vec<(u64, u64, String)>,
}

impl PerfMap {
    /// Where a process writes its own.
    pub fn path_of(pid: u32) -> PathBuf {
        Path::new("/tmp").join(format!("perf-{pid}.map"))
    }

    /// Reads a file. Lines that are none of such a file are passed over.
    ///
    /// # Errors
    ///
    /// When it is not there or cannot be read.
    pub fn read(path: &Path) -> io::Result<Self> {
        let mut map = Self::default();
        let mut reader = BufReader::new(File::open(path)?.take(MAX_BYTES));
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line)? > 0 {
            map.functions.extend(function(&String::from_utf8_lossy(&line)));
            line.clear();
        }
        // Code is made again at the same place: the sort keeps the order of the file, and the last one counts.
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
}
