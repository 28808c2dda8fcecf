//! Reads the interpreter's memory: with a system call until the layout is checked, and directly afterwards.
//!
//! Both ways share a trait, so the check runs the same code that is used later.

/// The first page contains no objects, and no user memory is above the upper limit.
const LOWEST: u64 = 4096;
const HIGHEST: u64 = 1 << 47;
/// The largest offset in an object.
const LARGEST: u64 = 1 << 17;

/// Whether an address can be an object. Objects are word-aligned.
#[inline(always)]
pub(super) fn can_be_object(address: u64) -> bool {
    address.wrapping_sub(LOWEST) < HIGHEST - LOWEST - LARGEST && address.is_multiple_of(8)
}

/// Reads numbers in objects. `None` if an address cannot be read.
pub(super) trait Memory {
    /// A word at an offset in an object.
    fn word(&self, object: u64, offset: u64) -> Option<u64>;

    /// Half a word at an offset in an object.
    fn half(&self, object: u64, offset: u64) -> Option<u32>;

    /// A byte at an offset in an object.
    fn byte(&self, object: u64, offset: u64) -> Option<u8>;
}

/// Reads memory with a system call. An unmapped address gives `None` instead of a crash.
///
/// A call takes some hundred nanoseconds. It is used for the check and for names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Checked;

impl Checked {
    /// Fills `bytes` from `address`. `None` if it cannot be read.
    ///
    /// <https://man7.org/linux/man-pages/man2/process_vm_readv.2.html>: a process can always read itself.
    pub(super) fn copy(self, address: u64, bytes: &mut [u8]) -> Option<()> {
        if !(LOWEST..HIGHEST).contains(&address) {
            return None;
        }
        let local = libc::iovec {
            iov_base: bytes.as_mut_ptr().cast(),
            iov_len: bytes.len(),
        };
        let remote = libc::iovec {
            iov_base: address as *mut libc::c_void,
            iov_len: bytes.len(),
        };
        // Query it each time, because it changes after a fork.
        // SAFETY: it has no conditions.
        let process = unsafe { libc::getpid() };
        // SAFETY: the system writes at most the size of `bytes`, and checks the other address.
        let copied = unsafe { libc::process_vm_readv(process, &raw const local, 1, &raw const remote, 1, 0) };
        (usize::try_from(copied) == Ok(bytes.len())).then_some(())
    }

    fn array<const N: usize>(self, address: u64) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        self.copy(address, &mut bytes)?;
        Some(bytes)
    }
}

impl Memory for Checked {
    fn word(&self, object: u64, offset: u64) -> Option<u64> {
        self.array(object.wrapping_add(offset)).map(u64::from_le_bytes)
    }

    fn half(&self, object: u64, offset: u64) -> Option<u32> {
        self.array(object.wrapping_add(offset)).map(u32::from_le_bytes)
    }

    fn byte(&self, object: u64, offset: u64) -> Option<u8> {
        self.array(object.wrapping_add(offset)).map(|[byte]| byte)
    }
}

/// Reads memory directly.
#[derive(Clone, Copy, Debug)]
pub(super) struct Direct(());

impl Direct {
    /// # Safety
    ///
    /// It may only read objects that the calling thread's frames hold, in a checked layout, at addresses where
    /// [objects can be](can_be_object).
    pub(super) unsafe fn new() -> Self {
        Self(())
    }

    #[inline(always)]
    fn read<T: Copy>(object: u64, offset: u64) -> Option<T> {
        let place = object.wrapping_add(offset) as *const T;
        // SAFETY: a number in an object that the thread's own frames hold, as the creator of `Direct` guarantees.
        // Such an object does not move or disappear while the thread is inside a C call.
        Some(unsafe { std::ptr::read(place) })
    }
}

impl Memory for Direct {
    #[inline(always)]
    fn word(&self, object: u64, offset: u64) -> Option<u64> {
        Self::read(object, offset)
    }

    #[inline(always)]
    fn half(&self, object: u64, offset: u64) -> Option<u32> {
        Self::read(object, offset)
    }

    #[inline(always)]
    fn byte(&self, object: u64, offset: u64) -> Option<u8> {
        Self::read(object, offset)
    }
}

/// The bytes of a memory range, fetched in chunks of some hundred bytes.
pub(super) struct Bytes {
    address: u64,
    left: u64,
    fetched: [u8; 256],
    at: usize,
    filled: usize,
}

impl Bytes {
    pub(super) fn new(address: u64, length: u64) -> Self {
        Self {
            address,
            left: length,
            fetched: [0; 256],
            at: 0,
            filled: 0,
        }
    }
}

impl Iterator for Bytes {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        if self.at == self.filled {
            let length = self.left.min(self.fetched.len() as u64);
            if length == 0 {
                return None;
            }
            // Unreadable memory ends the range. The caller compares the length if it needs all bytes.
            Checked.copy(self.address, &mut self.fetched[..length as usize])?;
            self.address += length;
            self.left -= length;
            self.filled = length as usize;
            self.at = 0;
        }
        let byte = self.fetched[self.at];
        self.at += 1;
        Some(byte)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_mapped_is_none() {
        let value = 0x1122_3344_5566_7788_u64;
        let address = &raw const value as u64;
        assert_eq!(Checked.word(address, 0), Some(value));
        assert_eq!(Checked.half(address, 0), Some(0x5566_7788));
        assert_eq!(Checked.byte(address, 7), Some(0x11));
        for bad in [0, 8, LOWEST, HIGHEST - 8, HIGHEST, u64::MAX - 7] {
            assert_eq!(Checked.word(bad, 0), None, "{bad:x}");
        }
    }

    #[test]
    fn addresses_that_are_none_are_told() {
        let value = 7_u64;
        let address = &raw const value as u64;
        assert!(can_be_object(address));
        for bad in [0, 8, address + 4, address + 1, HIGHEST, HIGHEST - 8, u64::MAX - 7] {
            assert!(!can_be_object(bad), "{bad:x}");
        }
        // SAFETY: the address of a variable.
        let memory = unsafe { Direct::new() };
        assert_eq!(memory.word(address, 0), Some(7));
        assert_eq!(memory.byte(address - 8, 9), Some(0));
    }

    #[test]
    fn bytes_come_in_pieces_and_end_where_memory_does() {
        let bytes: Vec<u8> = (0..1000).map(|at| (at % 251) as u8).collect();
        let read: Vec<u8> = Bytes::new(bytes.as_ptr() as u64, 1000).collect();
        assert_eq!(read, bytes);
        assert_eq!(Bytes::new(8, 1000).count(), 0);
        assert_eq!(Bytes::new(bytes.as_ptr() as u64, 0).count(), 0);
    }
}
