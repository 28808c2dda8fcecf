//! A ring's memory as a file without a name, to be handed to another process.
//!
//! The collector creates it: so the collector bounds how much memory a target
//! can make it hold, and the pages are charged to the collector and not to a
//! target that may live under a tight limit. All pages are allocated at once;
//! a push in the target then meets neither a page that cannot be had (which
//! would be a SIGBUS) nor a page fault.
//!
//! The file is sealed against shrinking and growing before it leaves our hands.
//! The target accepts no other: a file that could be cut under a mapping would
//! kill whoever touches it next.
#![allow(
    unsafe_code,
    reason = "mapping memory is unsafe; what is mapped is checked here first"
)]

use std::{
    os::fd::{AsFd, OwnedFd},
    ptr::{self, NonNull},
};

use rustix::{
    fs::{self, FallocateFlags, MemfdFlags, SealFlags},
    io::Errno,
    mm::{self, MapFlags, ProtFlags},
};

use super::Region;
use crate::{
    config::{Capacity, Config},
    error::Error,
};

/// Without these a mapping could be cut, or the seals themselves undone.
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// New memory for a ring, described and sealed.
pub(crate) fn create(config: Config) -> Result<(OwnedFd, Region), Error> {
    let bytes = Region::total_bytes(config.capacity) as u64;
    let file = create_file()?;
    fs::ftruncate(&file, bytes).map_err(Error::system("sizing the shared memory"))?;
    fs::fallocate(&file, FallocateFlags::empty(), 0, bytes)
        .map_err(Error::system("allocating the shared memory"))?;
    fs::fcntl_add_seals(&file, SEALS).map_err(Error::system("sealing the shared memory"))?;
    let region = map(&file, config.capacity)?;
    region.header().describe(config);
    Ok((file, region))
}

/// The memory in `file`, which the other side has announced as `announced`.
pub(crate) fn open(file: impl AsFd, announced: Config) -> Result<Region, Error> {
    let seals = fs::fcntl_get_seals(&file).map_err(Error::system("reading the memory's seals"))?;
    if !seals.contains(SEALS) {
        return Err(Error::NotAsAnnounced {
            what: "it is not sealed against being cut",
        });
    }
    let stat = fs::fstat(&file).map_err(Error::system("reading the memory's size"))?;
    if u64::try_from(stat.st_size) != Ok(Region::total_bytes(announced.capacity) as u64) {
        return Err(Error::NotAsAnnounced {
            what: "its size differs",
        });
    }
    let region = map(&file, announced.capacity)?;
    if region.header().description()? != announced {
        return Err(Error::NotAsAnnounced {
            what: "its header differs",
        });
    }
    Ok(region)
}

fn create_file() -> Result<OwnedFd, Error> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let created = match fs::memfd_create("tracesmith-ring", flags | MemfdFlags::NOEXEC_SEAL) {
        // Kernels before 6.3 do not know that flag.
        Err(Errno::INVAL) => fs::memfd_create("tracesmith-ring", flags),
        created => created,
    };
    created.map_err(Error::system("creating the shared memory"))
}

fn map(file: impl AsFd, capacity: Capacity) -> Result<Region, Error> {
    let length = Region::total_bytes(capacity);
    let access = ProtFlags::READ | ProtFlags::WRITE;
    let flags = MapFlags::SHARED | MapFlags::POPULATE;
    // SAFETY: a new mapping at an address of the kernel's choice touches no
    // memory that exists.
    let base = unsafe { mm::mmap(ptr::null_mut(), length, access, flags, file, 0) }
        .map_err(Error::system("mapping the shared memory"))?;
    let base = NonNull::new(base.cast::<u8>()).ok_or(Error::NotAsAnnounced {
        what: "it was mapped at address zero",
    })?;
    // SAFETY: a shared, writable mapping of just this length; both callers hold
    // a file of that size that is sealed against shrinking; only this region
    // knows the address.
    Ok(unsafe { Region::from_mapping(base, capacity) })
}
