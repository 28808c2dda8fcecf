//! Parts of the address space that may be memory of the driver's: all that no
//! file is mapped to.

use std::{fs, ops::Range};

/// Parts of the address space, in order and apart from each other.
#[derive(Debug, Default)]
pub(super) struct Regions(Vec<Range<u64>>);

impl Regions {
    /// Those of this process, as they are now.
    pub(super) fn of_this_process() -> Self {
        // Without it only what is known is found.
        Self::of(&fs::read_to_string("/proc/self/maps").unwrap_or_default())
    }

    fn of(maps: &str) -> Self {
        let mut regions: Vec<Range<u64>> = Vec::new();
        for range in maps.lines().filter_map(region) {
            match regions.last_mut().filter(|last| last.end == range.start) {
                Some(last) => last.end = range.end,
                None => regions.push(range),
            }
        }
        Self(regions)
    }

    /// From the first address to the last.
    pub(super) fn span(&self) -> Option<Range<u64>> {
        Some(self.0.first()?.start..self.0.last()?.end)
    }

    pub(super) fn contains(&self, address: u64) -> bool {
        let behind = self.0.partition_point(|range| range.start <= address);
        let before = behind.checked_sub(1).map(|before| &self.0[before]);
        before.is_some_and(|range| range.contains(&address))
    }
}

/// One line: a range, access rights, an offset, a device, a number, and what is
/// mapped there, if anything is.
fn region(line: &str) -> Option<Range<u64>> {
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let what = words.nth(4).unwrap_or_default();
    if what.starts_with('/') && !what.starts_with("/dev/") {
        return None;
    }
    let parse = |text| u64::from_str_radix(text, 16).ok();
    Some(parse(start)?..parse(end)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As a process with CUDA has them.
    const MAPS: &str = "\
200000000-200600000 ---p 00000000 00:00 0
200600000-200800000 rw-s 00000000 00:06 143                              /dev/nvidia0
302000000-48ea000000 ---p 00000000 00:00 0
55cd7bb00000-55cd7bb40000 rw-p 00000000 00:00 0                          [heap]
7f894bb6b000-7f894caef000 r-xp 00166000 fe:10 42                         /usr/lib/libcuda.so.1
7f8734a00000-7f8734c00000 rw-s 00000000 00:01 2052                       /dev/zero (deleted)
";

    #[test]
    fn files_are_left_out_and_neighbours_joined() {
        let regions = Regions::of(MAPS);
        assert_eq!(regions.0[0], 0x2_0000_0000..0x2_0080_0000);
        assert_eq!(regions.0.len(), 4);
        for (address, is_in) in [
            (0x1_ffff_ffff, false),
            (0x2_0000_0000, true),
            (0x2_007f_ffff, true),
            (0x2_0080_0000, false),
            (0x3_0200_0000, true),
            (0x7f89_4bb6_b000, false),
            (0x7f87_34a0_0000, true),
        ] {
            assert_eq!(regions.contains(address), is_in, "{address:#x}");
        }
        assert_eq!(regions.span(), Some(0x2_0000_0000..0x7f87_34c0_0000));
    }

    #[test]
    fn nothing_is_no_region() {
        assert_eq!(Regions::of("").span(), None);
        assert!(!Regions::default().contains(1));
    }

    #[test]
    fn this_process_has_memory() {
        let own = Box::new(7_u64);
        assert!(Regions::of_this_process().contains(&raw const *own as u64));
    }
}
