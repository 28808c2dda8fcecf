//! Numbers laid out byte by byte: all lowest bytes first, then all second bytes, and so on.
//!
//! Columns that repeat (the order of kernels in a training step, ids, flags) have little to gain from bit widths and all
//! to gain from a general compressor; in planes it sees the repetition. Always followed by zstd.

/// Appends the low `bytes` bytes of each value to `out`, plane by plane.
pub(crate) fn encode(values: &[u64], bytes: u32, out: &mut Vec<u8>) {
    for plane in 0..bytes {
        out.extend(values.iter().map(|value| (value >> (8 * plane)) as u8));
    }
}

/// Reads `count` values; `None` when the bytes are not a whole number of planes or more than eight.
pub(crate) fn decode(input: &[u8], count: usize, out: &mut Vec<u64>) -> Option<()> {
    if count == 0 || !input.len().is_multiple_of(count) || input.len() / count > 8 {
        return None;
    }
    let start = out.len();
    out.resize(start + count, 0);
    for (plane, bytes) in input.chunks_exact(count).enumerate() {
        for (value, &byte) in out[start..].iter_mut().zip(bytes) {
            *value |= u64::from(byte) << (8 * plane);
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planes_survive_a_round_trip() {
        let values = [0, 1, 255, 256, 65535, 1 << 40, u64::MAX];
        let mut bytes = Vec::new();
        encode(&values, 8, &mut bytes);
        let mut back = Vec::new();
        decode(&bytes, values.len(), &mut back).unwrap();
        assert_eq!(back, values);
    }

    #[test]
    fn a_ragged_plane_is_refused() {
        assert_eq!(decode(&[1, 2, 3], 2, &mut Vec::new()), None);
        assert_eq!(decode(&[0; 9], 1, &mut Vec::new()), None);
        assert_eq!(decode(&[0; 9], 0, &mut Vec::new()), None);
    }
}
