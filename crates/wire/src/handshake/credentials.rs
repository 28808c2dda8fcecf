//! The kernel's word for who is at the other end of a socket.
//!
//! Hand-written, although rustix has it: there the process id cannot be zero,
//! and zero is what the kernel says of a process in another container, which
//! rustix then takes for an error.
#![allow(unsafe_code, reason = "one getsockopt call of the C library")]

use std::{
    ffi::{c_int, c_void},
    io,
    os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd},
};

use crate::error::Error;

const SOL_SOCKET: c_int = 1;
const SO_PEERCRED: c_int = if cfg!(target_arch = "powerpc64") { 21 } else { 17 };

/// Since Linux 6.5: a descriptor of the process itself.
const SO_PEERPIDFD: c_int = 77;

/// `struct ucred` of unix(7).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Credentials {
    /// Zero when the process is not visible from here.
    pub(super) process_id: i32,
    user_id: u32,
    group_id: u32,
}

const _: () = assert!(size_of::<Credentials>() == 12);

unsafe extern "C" {
    // https://man7.org/linux/man-pages/man2/getsockopt.2.html
    fn getsockopt(socket: c_int, level: c_int, name: c_int, value: *mut c_void, length: *mut u32) -> c_int;
}

impl Credentials {
    /// Of the process that connected, or that listens, at the other end; an
    /// error unless it runs as our user.
    pub(crate) fn of_own_user(socket: impl AsFd) -> Result<Self, Error> {
        let theirs = Self::of(&socket)?;
        let ours = rustix::process::geteuid().as_raw();
        if theirs.user_id == ours {
            Ok(theirs)
        } else {
            Err(Error::ForeignUser {
                ours,
                theirs: theirs.user_id,
            })
        }
    }

    /// The process by its number here; none when it is not visible from here.
    pub(crate) fn process_id(&self) -> Option<u32> {
        u32::try_from(self.process_id).ok().filter(|id| *id != 0)
    }

    fn of(socket: impl AsFd) -> Result<Self, Error> {
        let mut credentials = Self::default();
        let mut length = size_of::<Self>() as u32;
        let value = (&raw mut credentials).cast::<c_void>();
        let socket = socket.as_fd().as_raw_fd();
        // SAFETY: an open socket, and a value and a length that live through the
        // call and are as large as they say.
        let result = unsafe { getsockopt(socket, SOL_SOCKET, SO_PEERCRED, value, &raw mut length) };
        if result != 0 {
            let system = Error::system("asking who is at the other end");
            return Err(system(io::Error::last_os_error()));
        }
        Ok(credentials)
    }
}

/// A descriptor (pidfd) of the process that connected, or that listens, at the
/// other end. The kernel keeps which process that was, so it is never one that
/// got its number later. None on kernels before 6.5, and where that process has
/// ended and been waited for.
pub(super) fn process_of(socket: impl AsFd) -> Option<OwnedFd> {
    let mut process: c_int = -1;
    let mut length = size_of::<c_int>() as u32;
    let value = (&raw mut process).cast::<c_void>();
    let socket = socket.as_fd().as_raw_fd();
    // SAFETY: an open socket, and a value and a length that live through the
    // call and are as large as they say.
    let result = unsafe { getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, value, &raw mut length) };
    if result != 0 || process < 0 {
        return None;
    }
    // SAFETY: the kernel has just opened it for us.
    Some(unsafe { OwnedFd::from_raw_fd(process) })
}
