//! What a client of NVTX and a tool agree on: tables of function pointers, the client's to call and the tool's to fill.

use std::mem::offset_of;

use crate::pointer::In;

/// `NvtxCallbackModule`.
pub(super) const CORE: u32 = 1;
pub(super) const CORE2: u32 = 5;
/// How many modules there are, counted from 1.
pub(super) const MODULES: u32 = 6;

/// `NvtxExportTableID`.
pub(super) const CALLBACKS: u32 = 1;
pub(super) const VERSION_INFO: u32 = 3;

/// Entries of CORE and CORE2, the unused first one included.
pub(super) const SLOTS: usize = 16;

/// Slots of CORE.
pub(super) mod core {
    pub(crate) const MARK_EX: usize = 1;
    pub(crate) const MARK_A: usize = 2;
    pub(crate) const START_EX: usize = 4;
    pub(crate) const START_A: usize = 5;
    pub(crate) const END: usize = 7;
    pub(crate) const PUSH_EX: usize = 8;
    pub(crate) const PUSH_A: usize = 9;
    pub(crate) const POP: usize = 11;
    pub(crate) const NAME_CATEGORY_A: usize = 12;
    pub(crate) const NAME_OS_THREAD_A: usize = 14;
}

/// Slots of CORE2.
pub(super) mod core2 {
    pub(crate) const MARK_EX: usize = 1;
    pub(crate) const START_EX: usize = 2;
    pub(crate) const END: usize = 3;
    pub(crate) const PUSH_EX: usize = 4;
    pub(crate) const POP: usize = 5;
    pub(crate) const NAME_CATEGORY_A: usize = 8;
    pub(crate) const REGISTER_STRING_A: usize = 10;
    pub(crate) const CREATE_A: usize = 12;
    pub(crate) const DESTROY: usize = 14;
}

/// What push and pop answer when nobody listens: `NVTX_NO_PUSH_POP_TRACKING`.
pub(super) const NOT_TRACKED: i32 = -2;

/// The address of a table: pointers to the places of function pointers, ended by null.
pub(super) type Table = usize;

/// `NvtxExportTableCallbacks`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Callbacks {
    pub(super) size: usize,
    pub(super) get_table: extern "C" fn(u32, *mut Table, *mut u32) -> i32,
}

/// `NvtxExportTableVersionInfo`.
#[repr(C)]
pub(super) struct VersionInfo {
    pub(super) size: usize,
    pub(super) version: u32,
    pub(super) reserved: u32,
    pub(super) set_tool_version: extern "C" fn(u32),
}

pub(super) type GetExportTable = extern "C" fn(u32) -> *const std::ffi::c_void;

/// `nvtxEventAttributes_v2`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct EventAttributes {
    pub(super) version: u16,
    pub(super) size: u16,
    pub(super) category: u32,
    pub(super) color_type: i32,
    pub(super) color: u32,
    pub(super) payload_type: i32,
    pub(super) reserved: i32,
    pub(super) payload: u64,
    pub(super) message_type: i32,
    pub(super) pad: i32,
    /// Text, or a string's handle.
    pub(super) message: u64,
}

const _: () = {
    assert!(size_of::<EventAttributes>() == 48);
    assert!(offset_of!(EventAttributes, payload) == 24);
    assert!(offset_of!(EventAttributes, message) == 40);
    assert!(size_of::<Callbacks>() == 16 && size_of::<VersionInfo>() == 24);
};

/// An event as C passes it.
pub(super) type Event = In<EventAttributes>;
