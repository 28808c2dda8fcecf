//! How a process ended that is not our child.
//!
//! Since Linux 6.15 the kernel keeps the wait status with the process's
//! descriptor once its parent has asked for it (`PIDFD_GET_INFO`, see
//! `include/uapi/linux/pidfd.h`).
#![allow(unsafe_code, reason = "an ioctl is only as safe as its number and its layout")]

use std::os::fd::BorrowedFd;

use rustix::ioctl::{self, Updater, opcode};

/// `PIDFD_INFO_EXIT`: the status is asked for, or was given.
const EXIT: u64 = 1 << 3;

/// `struct pidfd_info`, as long as it was when it got its exit code.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct Info {
    mask: u64,
    cgroup: u64,
    ids: [u32; 11],
    exit_status: i32,
}

const _: () = assert!(size_of::<Info>() == 64);

const GET_INFO: ioctl::Opcode = opcode::read_write::<Info>(0xff, 11);

/// The wait status of the process behind `process`; none while it runs, before
/// its parent asked, or where the kernel does not know.
pub(super) fn of(process: BorrowedFd<'_>) -> Option<i32> {
    let mut info = Info {
        mask: EXIT,
        ..Info::default()
    };
    // SAFETY: the number is that of a request which fills a structure of just
    // this layout, whose length is part of the number.
    let request = unsafe { Updater::<GET_INFO, Info>::new(&mut info) };
    // SAFETY: the request matches its number, as above; a descriptor of another
    // kind refuses it.
    unsafe { ioctl::ioctl(process, request) }.ok()?;
    (info.mask & EXIT != 0).then_some(info.exit_status)
}

#[cfg(test)]
mod tests {
    use std::{os::fd::AsFd, process::Command};

    use rustix::process::{Pid, PidfdFlags, pidfd_open};

    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "Miri starts no processes")]
    fn a_process_that_was_waited_for_tells_how_it_ended() {
        let mut child = Command::new("sh").args(["-c", "exit 7"]).spawn().unwrap();
        let process = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).unwrap();
        child.wait().unwrap();
        // Kernels before 6.15 say nothing.
        let status = of(process.as_fd());
        assert!(status.is_none_or(|status| status == 7 << 8), "{status:?}");
    }
}
