//! Variable-length integers and zigzag, as the file uses them.
//!
//! LEB128: seven bits a byte, lowest first, the top bit says that more follow. At most ten bytes; a longer or
//! overflowing one is refused, so that every number has one reading.

/// Appends `value` to `out`.
pub(crate) fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value as u8) | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// How many bytes [`put`] writes for a value of `bits` significant bits.
pub(crate) const fn length_of_bits(bits: u32) -> u32 {
    if bits == 0 { 1 } else { bits.div_ceil(7) }
}

/// Takes a number from the front of `input`; `None` when it is cut off or does not fit 64 bits.
pub(crate) fn take(input: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for (i, &byte) in input.iter().enumerate().take(10) {
        let part = u64::from(byte & 0x7f);
        if i == 9 && part > 1 {
            return None;
        }
        value |= part << (7 * i);
        if byte & 0x80 == 0 {
            *input = &input[i + 1..];
            return Some(value);
        }
    }
    None
}

/// Folds a wrapped difference so that small steps either way become small numbers.
pub(crate) const fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// Undoes [`zigzag`].
pub(crate) const fn unzigzag(value: u64) -> i64 {
    ((value >> 1) as i64) ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_survive_a_round_trip() {
        for value in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            let mut bytes = Vec::new();
            put(&mut bytes, value);
            assert_eq!(bytes.len() as u32, length_of_bits(64 - value.leading_zeros()));
            let mut rest = &bytes[..];
            assert_eq!(take(&mut rest), Some(value));
            assert!(rest.is_empty());
        }
    }

    #[test]
    fn a_number_that_is_cut_or_too_long_is_refused() {
        assert_eq!(take(&mut &[][..]), None);
        assert_eq!(take(&mut &[0x80, 0x80][..]), None);
        assert_eq!(take(&mut &[0xff; 11][..]), None);
        let mut eleven_bytes = vec![0x80; 10];
        eleven_bytes.push(0);
        assert_eq!(take(&mut &eleven_bytes[..]), None);
        let overflowing = [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x02];
        assert_eq!(take(&mut &overflowing[..]), None);
    }

    #[test]
    fn zigzag_is_undone_at_the_extremes() {
        for value in [0, 1, -1, i64::MAX, i64::MIN] {
            assert_eq!(unzigzag(zigzag(value)), value);
        }
        assert_eq!(zigzag(-1), 1);
        assert_eq!(zigzag(1), 2);
    }
}
