//! The index of unwind tables, `.eh_frame_hdr`: the start of each function, and the location of its entry.
//!
//! <https://refspecs.linuxfoundation.org/LSB_5.0.0/LSB-Core-generic/LSB-Core-generic/ehframechpt.html> allows many
//! encodings. All linkers write the same one, and only this one is read here. It is a sorted array, so reading it
//! cannot overflow. An image with another encoding is unwound by frame pointer.

/// Version 1, a 4-byte relative pointer to the frames, a 4-byte count, and rows of two 4-byte offsets from the index.
const FORM: [u8; 4] = [1, 0x1b, 0x03, 0x3b];

/// An index.
#[derive(Clone, Copy)]
pub(crate) struct Index {
    /// Its address.
    address: u64,
    /// The address of the frames.
    frames: u64,
    rows: &'static [[u8; 8]],
}

impl Index {
    /// Reads the index at `address`. `None` if it has another encoding.
    pub(crate) fn read(bytes: &'static [u8], address: u64) -> Option<Self> {
        let (form, rest) = bytes.split_first_chunk::<4>()?;
        let (frames, rest) = rest.split_first_chunk::<4>()?;
        let (count, rest) = rest.split_first_chunk::<4>()?;
        if *form != FORM {
            return None;
        }
        let count = u32::from_le_bytes(*count) as usize;
        Some(Self {
            address,
            frames: distance(address.wrapping_add(4), *frames),
            rows: rest.as_chunks().0.get(..count)?,
        })
    }

    /// The address of the frames.
    pub(crate) fn frames(&self) -> u64 {
        self.frames
    }

    /// The entry of the last function that starts at or before an address, as an offset into the frames.
    pub(crate) fn entry(&self, address: u64) -> Option<usize> {
        let start = |row: &[u8; 8]| distance(self.address, [row[0], row[1], row[2], row[3]]);
        let behind = self.rows.partition_point(|row| start(row) <= address);
        let row = self.rows.get(behind.checked_sub(1)?)?;
        let entry = distance(self.address, [row[4], row[5], row[6], row[7]]);
        usize::try_from(entry.checked_sub(self.frames)?).ok()
    }
}

fn distance(from: u64, bytes: [u8; 4]) -> u64 {
    from.wrapping_add_signed(i64::from(i32::from_le_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two functions before the index, at 0x1000 and 0x1010; frames at 0x2010.
    const INDEX: [u8; 28] = [
        1, 0x1b, 3, 0x3b, 12, 0, 0, 0, 2, 0, 0, 0, 0, 0xf0, 0xff, 0xff, 0x28, 0, 0, 0, 0x10, 0xf0, 0xff,
        0xff, 0x40, 0, 0, 0,
    ];

    #[test]
    fn a_function_is_found_by_any_of_its_addresses() {
        let index = Index::read(&INDEX, 0x2000).unwrap();
        assert_eq!(index.frames(), 0x2010);
        assert_eq!(index.entry(0x1000), Some(0x18));
        assert_eq!(index.entry(0x100f), Some(0x18));
        assert_eq!(index.entry(0x1010), Some(0x30));
        assert_eq!(index.entry(u64::MAX), Some(0x30));
        assert_eq!(index.entry(0xfff), None);
    }

    #[test]
    fn another_form_and_a_cut_one_are_none() {
        assert!(Index::read(&INDEX[..27], 0).is_none());
        assert!(Index::read(&INDEX[..7], 0).is_none());
        static OTHER: [u8; 28] = [1; 28];
        assert!(Index::read(&OTHER, 0).is_none());
    }
}
