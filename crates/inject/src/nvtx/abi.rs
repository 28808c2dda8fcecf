//! NVTX's binary interface, version 3.
//!
//! <https://nvidia.github.io/NVTX/>

use std::ffi::{c_char, c_int, c_uint, c_void};

/// Gives the address of a table by its number.
pub(crate) type GetExportTable = unsafe extern "C" fn(table: u32) -> *const c_void;

/// `NVTX_ETID_CALLBACKS`: the table of function tables.
pub(super) const EXPORT_CALLBACKS: u32 = 1;

/// Modules of functions: `NvtxCallbackModule`.
pub(super) mod module {
    pub(in crate::nvtx) const CORE: u32 = 1;
    pub(in crate::nvtx) const CUDA: u32 = 2;
    pub(in crate::nvtx) const CUDART: u32 = 4;
    pub(in crate::nvtx) const CORE2: u32 = 5;
}

/// `NvtxExportTableCallbacks`.
#[repr(C)]
pub(super) struct CallbackTables {
    pub(super) size: usize,
    pub(super) get_module: Option<GetModule>,
}

/// Gives the slots of a module: an array of addresses of function pointers, of
/// which the first stands for no function.
pub(super) type GetModule =
    unsafe extern "C" fn(module: u32, table: *mut *mut *mut *const c_void, size: *mut c_uint) -> c_int;

/// `nvtxEventAttributes_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Attributes {
    pub(super) version: u16,
    pub(super) size: u16,
    pub(super) category: u32,
    pub(super) color_kind: i32,
    pub(super) color: u32,
    pub(super) payload_kind: i32,
    pub(super) reserved: i32,
    pub(super) payload: u64,
    pub(super) message_kind: i32,
    pub(super) message: *const c_void,
}

const _: () = assert!(size_of::<Attributes>() == 48);
const _: () = assert!(std::mem::offset_of!(Attributes, payload) == 24);
const _: () = assert!(std::mem::offset_of!(Attributes, message) == 40);

/// `NVTX_COLOR_ARGB`.
pub(super) const COLOR_ARGB: i32 = 1;

/// Kinds of messages: `nvtxMessageType_t`.
pub(super) mod message {
    pub(in crate::nvtx) const ASCII: i32 = 1;
    pub(in crate::nvtx) const UNICODE: i32 = 2;
    pub(in crate::nvtx) const REGISTERED: i32 = 3;
}

/// A C text.
pub(super) type Narrow = *const c_char;

/// A text of `wchar_t`, which has 32 bits on Linux.
pub(super) type Wide = *const libc::wchar_t;
