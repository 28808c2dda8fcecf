//! Reads CUPTI's memory with a system call: an address that is not mapped gives nothing instead of a crash.

use std::ops::Range;

use crate::cuda::image;

/// No object is below or above.
const ADDRESSES: Range<u64> = 4096..1 << 47;

/// Some words from an address on; none if they cannot be read.
///
/// <https://man7.org/linux/man-pages/man2/process_vm_readv.2.html>: a process can always read itself.
pub(super) fn words<const N: usize>(address: u64) -> Option<[u64; N]> {
    let mut words = [0; N];
    fill(address, &mut words).then_some(words)
}

/// Whether a word can be the address of an object.
pub(super) fn can_be_object(word: u64) -> bool {
    word.is_multiple_of(8) && ADDRESSES.contains(&word)
}

fn fill(address: u64, words: &mut [u64]) -> bool {
    if !can_be_object(address) {
        return false;
    }
    let bytes = size_of_val(words);
    let local = libc::iovec {
        iov_base: words.as_mut_ptr().cast(),
        iov_len: bytes,
    };
    let remote = libc::iovec {
        iov_base: address as *mut libc::c_void,
        iov_len: bytes,
    };
    // SAFETY: it has no conditions.
    let process = unsafe { libc::getpid() };
    // SAFETY: the system writes at most the size of `words`, and checks the other address.
    let copied = unsafe { libc::process_vm_readv(process, &raw const local, 1, &raw const remote, 1, 0) };
    usize::try_from(copied) == Ok(bytes)
}

/// The words that a library writes to, as they were at one moment.
pub(super) struct Variables {
    /// Each with its address, in their order.
    words: Vec<(u64, u64)>,
    extent: Range<u64>,
}

impl Variables {
    /// Those of the library that holds a function.
    pub(super) fn of(function: u64) -> Self {
        let mut found = Self {
            words: Vec::new(),
            extent: 0..0,
        };
        image::each(|image| {
            if !image.holds(function) {
                return;
            }
            found.extent = image.extent();
            for range in image.writable() {
                let start = range.start.next_multiple_of(8);
                let count = range.end.saturating_sub(start) as usize / size_of::<u64>();
                let mut words = vec![0; count];
                if fill(start, &mut words) {
                    let addresses = (start..).step_by(size_of::<u64>());
                    found.words.extend(addresses.zip(words));
                }
            }
        });
        found
    }

    pub(super) fn words(&self) -> &[(u64, u64)] {
        &self.words
    }

    /// What they point to outside of the library, each once.
    pub(super) fn objects(&self) -> Vec<u64> {
        let words = self.words.iter().map(|(_, word)| *word);
        let mut objects: Vec<u64> = words
            .filter(|word| can_be_object(*word) && !self.extent.contains(word))
            .collect();
        objects.sort_unstable();
        objects.dedup();
        objects
    }
}

/// Whether a variable of these libraries holds one of these addresses, which are sorted.
pub(super) fn holds_any(libraries: &[Range<u64>], addresses: &[u64]) -> bool {
    let mut is_held = false;
    image::each(|image| {
        if is_held || !libraries.contains(&image.extent()) {
            return;
        }
        is_held = image
            .writable()
            .flat_map(pieces)
            .any(|(start, words)| has_any(start, words, addresses));
    });
    is_held
}

/// Words that are read at once: a library may have hundreds of megabytes that were never touched.
const PIECE: usize = 1 << 15;

/// Where the pieces of a range start, and how many words they have.
fn pieces(range: Range<u64>) -> impl Iterator<Item = (u64, usize)> {
    let start = range.start.next_multiple_of(8);
    (start..range.end)
        .step_by(PIECE * size_of::<u64>())
        .map(move |at| (at, ((range.end - at) as usize / size_of::<u64>()).min(PIECE)))
}

fn has_any(start: u64, count: usize, addresses: &[u64]) -> bool {
    let mut words = vec![0; count];
    // What cannot be read holds nothing that the program could call.
    fill(start, &mut words) && words.iter().any(|word| addresses.binary_search(word).is_ok())
}
