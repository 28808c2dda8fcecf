//! Entry points for fuzzing. For any stack and any unwind tables, an unwind must end and read nothing else.
//!
//! Not part of the crate's interface.

use std::ffi::CString;

use gimli::{BaseAddresses, EhFrame, EndianSlice, LittleEndian};

use crate::bounds::Bounds;
use crate::images::index::Index;
use crate::images::{Image, Images, Tables};
use crate::python::LineTable;
use crate::walk::{Registers, Walk, Walker};

/// The address of the synthetic image. Nothing reads there. Its index is in the middle, after the functions, as in
/// real files.
const IMAGE: u64 = 0x10_0000;
const IMAGE_SIZE: u64 = 1 << 16;
const INDEX: u64 = IMAGE + IMAGE_SIZE / 2;

/// The input: three words (instruction, stack pointer and base pointer, the latter two relative to the stack), two
/// bytes for the size of the index, two for the size of the frames, the index, the frames, and the stack.
pub fn walk(data: &[u8]) -> Option<Walk> {
    let (registers, rest) = data.split_first_chunk::<24>()?;
    let (lengths, rest) = rest.split_first_chunk::<4>()?;
    let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| registers[at * 8 + byte]));
    let length = |at: usize| usize::from(u16::from_le_bytes([lengths[at], lengths[at + 1]]));
    let (index, rest) = rest.split_at(length(0).min(rest.len()));
    let (frames, rest) = rest.split_at(length(2).min(rest.len()));
    let mut stack: Vec<u64> = rest
        .as_chunks()
        .0
        .iter()
        .map(|word| u64::from_le_bytes(*word))
        .collect();
    let low = stack.as_ptr() as u64;
    for word in &mut stack {
        *word = relocated(*word, low);
    }
    let bounds = Bounds {
        low,
        high: low + stack.len() as u64 * 8,
    };
    let mut walker = Walker::within(bounds);
    let images = Images::of_one(image(index, frames));
    let registers = Registers {
        instruction: IMAGE + word(0) % IMAGE_SIZE,
        stack: bounds.low.wrapping_add(word(1)),
        base: bounds.low.wrapping_add(word(2)),
    };
    let first = FuzzedWalk::by(&mut walker, &images, registers);
    let again = FuzzedWalk::by(&mut walker, &images, registers);
    assert_eq!(first, again, "rules that were kept lead another way");
    // The program continues and calls from elsewhere. Cached results must not leak into the next unwind.
    for change in changes(data, stack.len()) {
        stack[change.word] = relocated(change.value, low);
        let start = Registers {
            stack: registers.stack.wrapping_add(change.lower),
            ..registers
        };
        let warm = FuzzedWalk::by(&mut walker, &images, start);
        let fresh = FuzzedWalk::by(&mut Walker::within(bounds), &images, start);
        assert_eq!(warm, fresh, "the last walk leads another way");
    }
    drop(images);
    Some(first.walk)
}

/// The result of an unwind.
#[derive(Debug, PartialEq, Eq)]
struct FuzzedWalk {
    walk: Walk,
    frames: [u64; 64],
    places: [u64; 64],
}

impl FuzzedWalk {
    fn by(walker: &mut Walker, images: &Images, registers: Registers) -> Self {
        let (mut frames, mut places) = ([0; 64], [0; 64]);
        let walk = walker.walk_from(images, registers, &mut frames, &mut places);
        Self { walk, frames, places }
    }
}

/// A stack word that changes, and the offset of the next start.
struct Change {
    word: usize,
    value: u64,
    lower: u64,
}

/// Changes from the input: its words, at positions that it names.
fn changes(data: &[u8], words: usize) -> impl Iterator<Item = Change> {
    let (drawn, _) = data.as_chunks::<16>();
    let word = |bytes: &[u8]| {
        bytes
            .iter()
            .rev()
            .fold(0u64, |sum, byte| sum << 8 | u64::from(*byte))
    };
    let changes = drawn.iter().rev().take(if words == 0 { 0 } else { 16 });
    changes.map(move |bytes| Change {
        word: word(&bytes[..4]) as usize % words,
        value: word(&bytes[8..]),
        lower: u64::from(bytes[4] % 4) * 8,
    })
}

/// Stack addresses must not depend on the run. In the input they are offsets below 1 MiB with the top bit set.
fn relocated(word: u64, low: u64) -> u64 {
    const DISTANCE: u64 = 1 << 63;
    match word & DISTANCE != 0 && word & !DISTANCE < 1 << 20 {
        true => low.wrapping_add(word & !DISTANCE),
        false => word,
    }
}

fn image(index: &[u8], frames: &[u8]) -> Image {
    // SAFETY: the image is dropped before the bytes are: `walk` holds both.
    let forever =
        |bytes: &[u8]| unsafe { std::slice::from_raw_parts::<'static, u8>(bytes.as_ptr(), bytes.len()) };
    let tables = Index::read(forever(index), INDEX).map(|index| Tables {
        index,
        frames: EhFrame::from(EndianSlice::new(forever(frames), LittleEndian)),
        bases: BaseAddresses::default().set_eh_frame(index.frames()),
    });
    Image::made_up(IMAGE..IMAGE + IMAGE_SIZE, CString::default(), tables)
}

/// Decodes a line table of each format.
pub fn lines(data: &[u8]) {
    let Some((instruction, table)) = data.split_first_chunk::<4>() else {
        return;
    };
    for form in [LineTable::Changes, LineTable::Ranges, LineTable::Locations] {
        let _ = form.line(table.iter().copied(), 1, u32::from_le_bytes(*instruction));
    }
}

/// Converts the words of a stack at `low` and a library's tables to an input of [`walk`]. Return addresses become
/// addresses of the library's functions, relative to its index.
pub fn recorded(words: &[u64], low: u64, index: &[u8], frames: &[u8], function: u64) -> Vec<u8> {
    let mut data = Vec::new();
    for register in [INDEX - function - IMAGE, 0, 16] {
        data.extend_from_slice(&register.to_le_bytes());
    }
    for part in [index, frames] {
        data.extend_from_slice(&u16::try_from(part.len()).unwrap_or(0).to_le_bytes());
    }
    data.extend_from_slice(index);
    data.extend_from_slice(frames);
    for &word in words {
        let distance = word.wrapping_sub(low);
        let is_code = matches!(word >> 40, 0x55 | 0x56 | 0x7f);
        let word = match (distance < 1 << 20, is_code) {
            (true, _) => 1 << 63 | distance,
            (false, true) => INDEX - function + word % 64,
            (false, false) => word,
        };
        data.extend_from_slice(&word.to_le_bytes());
    }
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_of_any_kind_end() {
        assert_eq!(walk(&[]), None);
        for byte in [0, 1, 0x7f, 0x80, 0xff] {
            for length in [27, 28, 100, 1000] {
                walk(&vec![byte; length]);
                lines(&vec![byte; length]);
            }
        }
    }

    #[test]
    fn frame_pointers_that_lead_in_a_circle_or_out_of_the_stack_end_the_walk() {
        let at = |distance: u64| 1 << 63 | distance;
        let out_of_it = 0x7fff_ffff_f000;
        for link in [at(0), at(8), at(4096), out_of_it, u64::MAX, 3] {
            let stack = [link, IMAGE + 16, link, IMAGE + 32, 0, 0];
            let mut data = vec![0; 28];
            data.extend(stack.iter().flat_map(|word| word.to_le_bytes()));
            let walk = walk(&data).unwrap();
            assert!(walk.depth <= 2, "{walk:?}");
        }
    }
}
