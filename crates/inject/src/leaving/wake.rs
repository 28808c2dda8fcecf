//! Waking the control thread, which waits for descriptors.
//!
//! Two sockets that are connected to each other: one is waited for, and who wants to
//! wake sends a byte into the other. A program may close both, and give their
//! numbers to files of its own. So it is looked at before each use which file a
//! number stands for. Should it change just then, `send` fails on what is no socket.

use std::{
    os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd},
    sync::atomic::{AtomicI32, AtomicU64, Ordering},
};

/// The one that is sent into; less than 0 is none.
static SENDER: AtomicI32 = AtomicI32::new(-1);
static SENDER_DEVICE: AtomicU64 = AtomicU64::new(0);
static SENDER_INODE: AtomicU64 = AtomicU64::new(0);

/// The two sockets.
pub(crate) struct Wake {
    receiver: OwnedFd,
    sender: OwnedFd,
    /// Which files they stand for.
    files: [File; 2],
}

/// A file by its device and number.
type File = (u64, u64);

impl Wake {
    /// Sockets that [`wake`] knows from now on; none when the program has no
    /// descriptors left. The control thread then wakes by itself, in time.
    pub(crate) fn open() -> Option<Self> {
        let mut both = [-1; 2];
        let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: writes the two numbers.
        if unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, both.as_mut_ptr()) } != 0 {
            return None;
        }
        // SAFETY: made just now.
        let [receiver, sender] = both.map(|number| unsafe { OwnedFd::from_raw_fd(number) });
        let files = [file_of(receiver.as_raw_fd())?, file_of(sender.as_raw_fd())?];
        SENDER.store(-1, Ordering::Release);
        SENDER_DEVICE.store(files[1].0, Ordering::Relaxed);
        SENDER_INODE.store(files[1].1, Ordering::Relaxed);
        SENDER.store(sender.as_raw_fd(), Ordering::Release);
        Some(Self {
            receiver,
            sender,
            files,
        })
    }

    /// Whether both are still the ones that were opened here.
    pub(crate) fn is_intact(&self) -> bool {
        let now = [&self.receiver, &self.sender].map(|socket| file_of(socket.as_raw_fd()));
        now == self.files.map(Some)
    }

    /// Lets go of both without closing what may be the program's by now.
    pub(crate) fn forget(self) {
        SENDER.store(-1, Ordering::Release);
        for (socket, file) in [self.receiver, self.sender].into_iter().zip(self.files) {
            if file_of(socket.as_raw_fd()) != Some(file) {
                std::mem::forget(socket);
            }
        }
    }

    /// Takes out what was sent.
    pub(crate) fn clear(&self) {
        let mut bytes = [0_u8; 16];
        let taken = |bytes: &mut [u8]| {
            // SAFETY: writes at most so many bytes; does not wait.
            unsafe {
                libc::recv(
                    self.receiver.as_raw_fd(),
                    bytes.as_mut_ptr().cast(),
                    bytes.len(),
                    libc::MSG_DONTWAIT,
                )
            }
        };
        while taken(&mut bytes) > 0 {}
    }
}

impl AsFd for Wake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.receiver.as_fd()
    }
}

/// In the child of a fork the sockets are its parent's.
pub(super) fn forked() {
    SENDER.store(-1, Ordering::Release);
}

/// Wakes the control thread. For signal handlers too.
pub(super) fn wake() {
    let sender = SENDER.load(Ordering::Acquire);
    let file = (
        SENDER_DEVICE.load(Ordering::Relaxed),
        SENDER_INODE.load(Ordering::Relaxed),
    );
    if sender < 0 || file_of(sender) != Some(file) {
        return;
    }
    let byte = 1_u8;
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: reads the one byte. A full queue wakes as well as another byte.
    unsafe { libc::send(sender, (&raw const byte).cast(), 1, flags) };
}

fn file_of(descriptor: RawFd) -> Option<File> {
    // SAFETY: plain data, filled by the next call.
    let mut stat: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: writes the struct; any number may be asked for.
    (unsafe { libc::fstat(descriptor, &raw mut stat) } == 0).then_some((stat.st_dev, stat.st_ino))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_stands_for_another_file_is_neither_used_nor_closed_issue_26() {
        let first = Wake::open().unwrap();
        assert!(first.is_intact());
        wake();
        first.clear();
        // The program closes our descriptor and opens a file, which gets its number.
        let number = first.sender.as_raw_fd();
        let (reader, writer) = std::io::pipe().unwrap();
        // SAFETY: the number is ours.
        assert_eq!(unsafe { libc::dup2(writer.as_raw_fd(), number) }, number);
        assert!(!first.is_intact());
        wake();
        first.forget();
        // SAFETY: a number that stands for the pipe now.
        assert_eq!(unsafe { libc::close(number) }, 0, "it was left open");
        drop(writer);
        assert_eq!(
            std::io::read_to_string(reader).unwrap(),
            "",
            "nothing was written"
        );
    }
}
