//! What a process takes, where the system tells.

use std::fs;

/// The most memory that this process ever had, where the system tells.
pub fn peak_bytes() -> Option<u64> {
    bytes_of("VmHWM:")
}

/// The memory that this process has now, where the system tells.
pub fn resident_bytes() -> Option<u64> {
    bytes_of("VmRSS:")
}

fn bytes_of(name: &str) -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with(name))?;
    let kibibytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kibibytes * 1024)
}

/// Makes the peak count from now on; where that cannot be, it counts from the start, which is no less.
pub fn forget_peak() {
    // Not every system lets it be forgotten.
    let _ = fs::write("/proc/self/clear_refs", "5");
}
