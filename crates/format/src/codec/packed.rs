//! Numbers packed into as few bits as they need, in frames of 128, with exceptions.
//!
//! Times of GPU work are small steps with a rare large one (a pause, a sync). One width for all would pay for the rare
//! one on every row; so each frame picks the width that costs least and stores the few values that do not fit apart.
//!
//! A frame of `n` values (128, fewer in the last one):
//!
//! ```text
//! u8 width (0..=64)   u8 exceptions e (0..=n)   e × u8 position   e × varint (value >> width)   ceil(n·width/8) bytes
//! ```
//!
//! The packed bytes hold the low `width` bits of each value, lowest bit first, one after the other.

use crate::varint;

/// Values in a full frame.
pub(crate) const FRAME: usize = 128;

/// Room for a full frame at the largest width, and for one 16-byte load behind its last value.
const BUFFER: usize = FRAME * 8 + 16;

/// Appends all of `values` to `out`.
pub(crate) fn encode(values: &[u64], out: &mut Vec<u8>) {
    for frame in values.chunks(FRAME) {
        encode_frame(frame, out);
    }
}

/// Reads `count` values from the front of `input`; `None` when the bytes are not what [`encode`] writes.
pub(crate) fn decode(input: &mut &[u8], count: usize, out: &mut Vec<u64>) -> Option<()> {
    let mut frame = [0u64; FRAME];
    let mut left = count;
    while left > 0 {
        let n = left.min(FRAME);
        decode_frame(input, &mut frame[..n])?;
        out.extend_from_slice(&frame[..n]);
        left -= n;
    }
    Some(())
}

fn encode_frame(values: &[u64], out: &mut Vec<u8>) {
    let (width, widest) = best_width(values);
    let exceptions_at = out.len() + 1;
    out.extend_from_slice(&[width as u8, 0]);
    if width < widest {
        let mask = mask_of(width);
        for (position, _) in values.iter().enumerate().filter(|(_, v)| **v > mask) {
            out.push(position as u8);
        }
        out[exceptions_at] = (out.len() - exceptions_at - 1) as u8;
        for value in values.iter().filter(|v| **v > mask) {
            varint::put(out, value >> width);
        }
    }
    pack(values, width, out);
}

fn decode_frame(input: &mut &[u8], out: &mut [u64]) -> Option<()> {
    let (&[width, exceptions], mut rest) = input.split_first_chunk::<2>()?;
    let (width, exceptions) = (u32::from(width), usize::from(exceptions));
    if width > 64 || exceptions > out.len() || (width == 64 && exceptions > 0) {
        return None;
    }
    let (positions, after) = rest.split_at_checked(exceptions)?;
    rest = after;
    let mut highs = [0u64; FRAME];
    for high in &mut highs[..exceptions] {
        *high = varint::take(&mut rest)?;
    }
    let packed_length = (out.len() * width as usize).div_ceil(8);
    let (packed, after) = rest.split_at_checked(packed_length)?;
    *input = after;

    unpack(packed, width, out);
    for (&position, &high) in positions.iter().zip(&highs) {
        let slot = out.get_mut(usize::from(position))?;
        if high.leading_zeros() < width {
            return None;
        }
        *slot |= high << width;
    }
    Some(())
}

/// The width whose frame is shortest, and the widest that a value has. Only widths that some value has are worth looking
/// at.
fn best_width(values: &[u64]) -> (u32, u32) {
    // Neighbours are often of one width: counting them in one place would make each wait for the one before.
    let mut counts = [[0u8; 65]; 4];
    let mut used = 0u128;
    for four in values.chunks(4) {
        for (value, counts) in four.iter().zip(&mut counts) {
            let bits = 64 - value.leading_zeros();
            counts[bits as usize] += 1;
            used |= 1 << bits;
        }
    }
    let count_of_bits = |bits: u32| {
        counts
            .iter()
            .map(|counts| u32::from(counts[bits as usize]))
            .sum::<u32>()
    };
    let widest = 127 - used.leading_zeros();
    let (mut best, mut best_cost) = (widest, (values.len() as u32 * widest).div_ceil(8));
    // Wider ones are all excepted; once they alone cost more than the best frame, narrower widths only add to them.
    let mut narrower = used & !(1 << widest);
    while narrower != 0 {
        let width = 127 - narrower.leading_zeros();
        narrower &= !(1 << width);
        let mut excepted = 0;
        let mut wider = used >> (width + 1) << (width + 1);
        while wider != 0 {
            let bits = wider.trailing_zeros();
            wider &= wider - 1;
            excepted += count_of_bits(bits) * (1 + varint::length_of_bits(bits - width));
        }
        if excepted >= best_cost {
            break;
        }
        let cost = (values.len() as u32 * width).div_ceil(8) + excepted;
        if cost < best_cost {
            (best, best_cost) = (width, cost);
        }
    }
    (best, widest)
}

const fn mask_of(width: u32) -> u64 {
    if width == 0 { 0 } else { u64::MAX >> (64 - width) }
}

fn pack(values: &[u64], width: u32, out: &mut Vec<u8>) {
    if width == 0 {
        return;
    }
    let mask = mask_of(width);
    let mut buffer = [0u8; BUFFER];
    let (mut pending, mut bits, mut at) = (0u64, 0u32, 0usize);
    for value in values {
        let value = value & mask;
        pending |= value << bits;
        bits += width;
        if bits >= 64 {
            buffer[at..at + 8].copy_from_slice(&pending.to_le_bytes());
            at += 8;
            bits -= 64;
            pending = if bits == 0 { 0 } else { value >> (width - bits) };
        }
    }
    buffer[at..at + 8].copy_from_slice(&pending.to_le_bytes());
    out.extend_from_slice(&buffer[..(values.len() * width as usize).div_ceil(8)]);
}

/// Copies the bytes behind a margin first, so that every value is one load without a special case at the end.
fn unpack(packed: &[u8], width: u32, out: &mut [u64]) {
    let mut buffer = [0u8; BUFFER];
    buffer[..packed.len()].copy_from_slice(packed);
    let mask = mask_of(width);
    if width == 0 {
        out.fill(0);
    } else if width <= 56 {
        let mut bit = 0usize;
        for value in out {
            let bytes = buffer[bit >> 3..]
                .first_chunk()
                .expect("the margin holds a load behind the last value");
            *value = (u64::from_le_bytes(*bytes) >> (bit & 7)) & mask;
            bit += width as usize;
        }
    } else {
        let mut bit = 0usize;
        for value in out {
            let bytes = buffer[bit >> 3..]
                .first_chunk()
                .expect("the margin holds a load behind the last value");
            *value = (u128::from_le_bytes(*bytes) >> (bit & 7)) as u64 & mask;
            bit += width as usize;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(values: &[u64]) -> usize {
        let mut bytes = Vec::new();
        encode(values, &mut bytes);
        let mut rest = &bytes[..];
        let mut back = Vec::new();
        decode(&mut rest, values.len(), &mut back).unwrap();
        assert!(rest.is_empty());
        assert_eq!(back, values);
        bytes.len()
    }

    #[test]
    fn every_width_survives_in_full_and_partial_frames() {
        for bits in 0..=64u32 {
            for count in [1, 2, 63, 127, 128, 129, 300] {
                let values: Vec<u64> = (0..count as u64)
                    .map(|i| {
                        mask_of(bits) & (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1 << bits.saturating_sub(1))
                    })
                    .collect();
                round_trip(&values);
            }
        }
    }

    #[test]
    fn one_large_value_does_not_widen_its_frame() {
        let mut values = vec![1000u64; 128];
        let plain = round_trip(&values);
        values[77] = u64::MAX;
        assert!(round_trip(&values) <= plain + 10);
    }

    #[test]
    fn cut_frames_are_refused() {
        let values: Vec<u64> = (0..200).map(|i| if i % 50 == 0 { u64::MAX } else { i }).collect();
        let mut bytes = Vec::new();
        encode(&values, &mut bytes);
        for length in 0..bytes.len() {
            assert_eq!(decode(&mut &bytes[..length], values.len(), &mut Vec::new()), None);
        }
    }
}
