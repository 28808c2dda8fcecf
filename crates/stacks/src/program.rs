//! The program's own file.

/// The file that is mapped at the program's address. Empty if unknown. The loader has no name for the program. If the
/// loader was started explicitly to run a program, the started file is the loader's own.
///
/// Reads a file in `/proc`, so it does not belong on a hot path.
pub fn program_file(address: u64) -> Vec<u8> {
    let mappings = std::fs::read("/proc/self/maps").unwrap_or_default();
    let lines = mappings.split(|byte| *byte == b'\n');
    let mapped = lines.filter_map(|line| mapped_file(line, address)).next();
    mapped.map(<[u8]>::to_vec).unwrap_or_else(|| {
        let started = std::env::current_exe().unwrap_or_default();
        started.into_os_string().into_encoded_bytes()
    })
}

/// The path in a line `start-end flags offset device inode path`, if the address is in this range.
fn mapped_file(line: &[u8], address: u64) -> Option<&[u8]> {
    let (head, path) = line.split_at(line.iter().position(|byte| *byte == b'/')?);
    let place = std::str::from_utf8(head).ok()?.split(' ').next()?;
    let (start, end) = place.split_once('-')?;
    let number = |word| u64::from_str_radix(word, 16).ok();
    (number(start)?..number(end)?).contains(&address).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_a_mapping_is_read() {
        let line = b"55d0c0a00000-55d0c0a2f000 r--p 00000000 fe:00 1234       /opt/my programs/train";
        let path = Some(&b"/opt/my programs/train"[..]);
        assert_eq!(mapped_file(line, 0x55d0_c0a0_0000), path);
        assert_eq!(mapped_file(line, 0x55d0_c0a2_efff), path);
        assert_eq!(mapped_file(line, 0x55d0_c0a2_f000), None);
        for other in [
            &b""[..],
            b"7ffd-7ffe r-xp 0 0 0 [vdso]",
            b"/",
            b"x-y /a",
            b"7ffd /a",
        ] {
            assert_eq!(mapped_file(other, 0x7ffd), None);
        }
    }

    #[test]
    fn this_program_is_its_own_file() {
        let here = program_file(this_program_is_its_own_file as *const () as u64);
        let started = std::env::current_exe().unwrap();
        assert_eq!(here, started.into_os_string().into_encoded_bytes());
    }
}
