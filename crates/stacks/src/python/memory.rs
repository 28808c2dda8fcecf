//! Reading the interpreter's memory: directly once its layout is proven, through the system before that.
//!
//! Both ways have one face, so that the walk that is checked at the start is the very walk that is used afterwards.

/// No object is below the first page, and no program's memory is above this.
const LOWEST: u64 = 4096;
const HIGHEST: u64 = 1 << 47;
/// No field that is read by its offset is further into an object.
const LARGEST: u64 = 1 << 17;

/// Whether an object can be there: objects are aligned to words.
#[inline(always)]
pub(super) fn can_be_object(address: u64) -> bool {
    address.wrapping_sub(LOWEST) < HIGHEST - LOWEST - LARGEST && address.is_multiple_of(8)
}

/// Numbers within objects. `None` is for an address that cannot be read, as far as it is looked at.
pub(super) trait Memory {
    /// A word, so many bytes into an object.
    fn word(&self, object: u64, offset: u64) -> Option<u64>;

    /// Half a word, so many bytes into an object.
    fn half(&self, object: u64, offset: u64) -> Option<u32>;

    /// A byte, so many bytes into an object.
    fn byte(&self, object: u64, offset: u64) -> Option<u8>;
}

/// Memory as the system copies it: an address that is not mapped is `None` and not the end of the program.
///
/// A call costs some hundred nanoseconds: for what is proven once, and for names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Checked;

impl Checked {
    /// Fills `bytes` from `address` on, or says that it cannot.
    ///
    /// <https://man7.org/linux/man-pages/man2/process_vm_readv.2.html>: a process may always read itself.
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
        // Asked each time, because a fork makes it another.
        // SAFETY: it has no conditions.
        let process = unsafe { libc::getpid() };
        // SAFETY: the system writes into `bytes`, at most as much as there is room for, and checks the other address.
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

/// Memory as it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Direct(());

impl Direct {
    /// # Safety
    ///
    /// What is read through it are objects that the calling thread's own frames hold, in a layout that was checked, at
    /// addresses where [objects can be](can_be_object).
    pub(super) unsafe fn new() -> Self {
        Self(())
    }

    #[inline(always)]
    fn read<T: Copy>(object: u64, offset: u64) -> Option<T> {
        let place = object.wrapping_add(offset) as *const T;
        // SAFETY: a number within an object that the thread's own frames hold, as the maker of `Direct` vouches. Such an
        // object neither moves nor goes while the thread is inside a call to C, which it is: we are in it.
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

/// The bytes of a stretch of memory, one after the other, fetched some hundred at a time.
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
            // What cannot be read ends the stretch; the length was checked against it by whoever wanted it whole.
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
