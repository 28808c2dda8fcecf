//! An NVTX client, version 3: ranges and marks in the domain "tracesmith".
//!
//! A tool fills our slots with its functions. The first use attaches the tool that `NVTX_INJECTION64_PATH` names, as NVTX
//! does: Nsight Systems, or our own recorder. Arming the process attaches our recorder, which can come late. So there can
//! be two tools, and each gets all ranges.
//!
//! Each thread nests ranges by itself. A range that was entered before a tool came is popped there, too: tools ignore a
//! pop without a push.
//!
//! <https://nvidia.github.io/NVTX/doxygen/>

#![allow(unsafe_code, reason = "calls functions of tools that are loaded at run time")]

use std::{
    env,
    ffi::{CStr, CString, c_char, c_int, c_uint, c_void},
    os::unix::ffi::OsStrExt,
    ptr,
    sync::{
        Once,
        atomic::{AtomicPtr, AtomicU8, Ordering},
    },
};

use pyo3::prelude::*;

use crate::arm;

/// Names the library that NVTX loads.
const INJECTION_VARIABLE: &str = "NVTX_INJECTION64_PATH";

/// The name of our domain.
const DOMAIN: &CStr = c"tracesmith";

/// The function with which NVTX hands itself over to a tool.
const INITIALIZE: &CStr = c"InitializeInjectionNvtx2";

/// `NVTX_VERSION`.
const VERSION: u16 = 3;

/// Slots of a module, more than any has.
const SLOTS: usize = 20;

/// `NvtxCallbackModule`: core, CUDA, OpenCL, CUDA runtime, core 2, sync.
const MODULES: usize = 7;
const CORE_2: usize = 5;

/// The number of slots of each module, as `nvtxTypes.h` has it. Slot 0 stands for no function.
const SIZES: [c_uint; MODULES] = [0, 16, 7, 15, 5, 16, 7];

/// Slots of the module "core 2": `NvtxCallbackIdCore2`.
mod slot {
    pub(super) const MARK: usize = 1;
    pub(super) const START: usize = 2;
    pub(super) const END: usize = 3;
    pub(super) const PUSH: usize = 4;
    pub(super) const POP: usize = 5;
    pub(super) const CREATE_DOMAIN: usize = 12;
}

type ExportTable = unsafe extern "C" fn(u32) -> *const c_void;
type Initialize = unsafe extern "C" fn(ExportTable) -> c_int;
type CreateDomain = unsafe extern "C" fn(*const c_char) -> *mut c_void;
type Push = unsafe extern "C" fn(*mut c_void, *const Attributes) -> c_int;
type Pop = unsafe extern "C" fn(*mut c_void) -> c_int;
type Mark = unsafe extern "C" fn(*mut c_void, *const Attributes);
type Start = unsafe extern "C" fn(*mut c_void, *const Attributes) -> u64;
type End = unsafe extern "C" fn(*mut c_void, u64);

/// `nvtxEventAttributes_t`.
#[repr(C)]
struct Attributes {
    version: u16,
    size: u16,
    category: u32,
    color_kind: i32,
    color: u32,
    payload_kind: i32,
    reserved: i32,
    payload: u64,
    message_kind: i32,
    message: *const c_char,
}

const _: () = assert!(size_of::<Attributes>() == 48);
const _: () = assert!(std::mem::offset_of!(Attributes, payload) == 24);
const _: () = assert!(std::mem::offset_of!(Attributes, message) == 40);

/// `NVTX_COLOR_ARGB`.
const COLOR_ARGB: i32 = 1;
/// `NVTX_MESSAGE_TYPE_ASCII`. Tools read UTF-8.
const MESSAGE_TEXT: i32 = 1;

/// The slots that one tool fills, and its handle of our domain.
struct Tool {
    slots: [[AtomicPtr<c_void>; SLOTS]; MODULES],
    domain: AtomicPtr<c_void>,
}

/// The tool of the environment, and our recorder.
static TOOLS: [Tool; 2] = [const { Tool::new() }; 2];
const FROM_ENVIRONMENT: usize = 0;
const RECORDER: usize = 1;

/// Tools that are attached, as bits.
static ATTACHED: AtomicU8 = AtomicU8::new(0);

static ENVIRONMENT_SEEN: Once = Once::new();
static RECORDER_SEEN: Once = Once::new();

impl Tool {
    const fn new() -> Self {
        Self {
            slots: [const { [const { AtomicPtr::new(ptr::null_mut()) }; SLOTS] }; MODULES],
            domain: AtomicPtr::new(ptr::null_mut()),
        }
    }

    fn domain(&self) -> *mut c_void {
        self.domain.load(Ordering::Acquire)
    }

    /// The function in a slot of "core 2", if the tool has filled it.
    fn function(&self, slot: usize) -> Option<*mut c_void> {
        let function = self.slots[CORE_2][slot].load(Ordering::Acquire);
        (!function.is_null()).then_some(function)
    }
}

/// The attached tools, with their numbers.
#[inline]
fn tools() -> impl Iterator<Item = (usize, &'static Tool)> {
    if !ENVIRONMENT_SEEN.is_completed() {
        ENVIRONMENT_SEEN.call_once(attach_environment);
    }
    let attached = ATTACHED.load(Ordering::Acquire);
    TOOLS
        .iter()
        .enumerate()
        .filter(move |(number, _)| attached & (1 << number) != 0)
}

/// Attaches the tool that the environment names.
fn attach_environment() {
    let Some(path) = env::var_os(INJECTION_VARIABLE).filter(|path| !path.is_empty()) else {
        return;
    };
    let Ok(name) = CString::new(path.as_bytes()) else {
        return;
    };
    // SAFETY: the user wants this library to be loaded into programs.
    let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY) };
    if library.is_null() {
        return;
    }
    // SAFETY: a handle that is never closed.
    let initialize = unsafe { libc::dlsym(library, INITIALIZE.as_ptr()) };
    let is_attached = attach::<FROM_ENVIRONMENT>(initialize);
    if is_attached && arm::is_recorder(path.as_ref()) {
        // It is our recorder.
        RECORDER_SEEN.call_once(|| {});
    }
}

/// Attaches our recorder, unless it is attached. `symbol` finds its functions.
pub(crate) fn attach_recorder(symbol: impl FnOnce(&CStr) -> Option<*mut c_void>) {
    ENVIRONMENT_SEEN.call_once(attach_environment);
    RECORDER_SEEN.call_once(|| {
        attach::<RECORDER>(symbol(INITIALIZE).unwrap_or(ptr::null_mut()));
    });
}

/// Has a tool fill the slots. Whether it wanted to.
fn attach<const TOOL: usize>(initialize: *mut c_void) -> bool {
    if initialize.is_null() {
        return false;
    }
    // SAFETY: the function that NVTX documents under this name.
    let initialize = unsafe { std::mem::transmute::<*mut c_void, Initialize>(initialize) };
    // SAFETY: an export table as NVTX has it.
    if unsafe { initialize(export_table::<TOOL>) } == 0 {
        return false;
    }
    let tool = &TOOLS[TOOL];
    if let Some(create) = tool.function(slot::CREATE_DOMAIN) {
        // SAFETY: the tool's function for this slot.
        let create = unsafe { std::mem::transmute::<*mut c_void, CreateDomain>(create) };
        // SAFETY: a text that ends with a zero byte.
        let domain = unsafe { create(DOMAIN.as_ptr()) };
        tool.domain.store(domain, Ordering::Release);
    }
    ATTACHED.fetch_or(1 << TOOL, Ordering::AcqRel);
    true
}

/// `NvtxExportTableCallbacks`.
#[repr(C)]
struct Callbacks {
    size: usize,
    get_module: unsafe extern "C" fn(u32, *mut *mut *mut c_void, *mut c_uint) -> c_int,
}

/// `NvtxExportTableVersionInfo`.
#[repr(C)]
struct VersionInfo {
    size: usize,
    version: u32,
    reserved: u32,
    set_tool_version: extern "C" fn(u32),
}

/// What tools call to find the slots: `nvtxGetExportTable`.
unsafe extern "C" fn export_table<const TOOL: usize>(table: u32) -> *const c_void {
    const CALLBACKS: u32 = 1;
    const VERSION_INFO: u32 = 3;
    match table {
        CALLBACKS => {
            let table = const {
                &Callbacks {
                    size: size_of::<Callbacks>(),
                    get_module: get_module::<TOOL>,
                }
            };
            ptr::from_ref(table).cast()
        }
        VERSION_INFO => {
            let table = const {
                &VersionInfo {
                    size: size_of::<VersionInfo>(),
                    version: VERSION as u32,
                    reserved: 0,
                    set_tool_version,
                }
            };
            ptr::from_ref(table).cast()
        }
        _ => ptr::null(),
    }
}

/// Nothing depends on the tool's version.
extern "C" fn set_tool_version(_version: u32) {}

/// Gives a tool the addresses of a module's slots, of which the first stands for no function.
///
/// # Safety
///
/// The two addresses can be written to, or are null.
unsafe extern "C" fn get_module<const TOOL: usize>(
    module: u32,
    table: *mut *mut *mut c_void,
    size: *mut c_uint,
) -> c_int {
    let at = module as usize;
    let (Some(slots), Some(count)) = (TOOLS[TOOL].slots.get(at), SIZES.get(at)) else {
        return 0;
    };
    if *count == 0 {
        return 0;
    }
    // Once for each tool and module, so its memory is never freed: tools keep the address.
    let mut addresses: Vec<*mut c_void> = slots.iter().map(|slot| slot.as_ptr().cast()).collect();
    addresses[0] = ptr::null_mut();
    if !table.is_null() {
        // SAFETY: the caller vouches for it.
        unsafe { table.write(addresses.leak().as_mut_ptr()) };
    }
    if !size.is_null() {
        // SAFETY: as above.
        unsafe { size.write(*count) };
    }
    1
}

/// A number that is shown with a range: `nvtxPayloadType_t`.
#[derive(Clone, Copy, Debug, FromPyObject)]
pub(crate) enum Payload {
    Signed(i64),
    Unsigned(u64),
    Float(f64),
}

impl Payload {
    /// Its kind and bits.
    fn parts(self) -> (i32, u64) {
        match self {
            Self::Unsigned(value) => (1, value),
            Self::Signed(value) => (2, value.cast_unsigned()),
            Self::Float(value) => (3, value.to_bits()),
        }
    }
}

fn attributes(name: &CStr, payload: Option<Payload>, color: Option<u32>) -> Attributes {
    let (payload_kind, payload) = payload.map_or((0, 0), Payload::parts);
    Attributes {
        version: VERSION,
        size: size_of::<Attributes>() as u16,
        category: 0,
        color_kind: if color.is_some() { COLOR_ARGB } else { 0 },
        color: color.unwrap_or(0),
        payload_kind,
        reserved: 0,
        payload,
        message_kind: MESSAGE_TEXT,
        message: name.as_ptr(),
    }
}

/// A named span of time.
#[pyclass(frozen, module = "tracesmith._native")]
pub(crate) struct Range {
    name: CString,
    payload: Option<Payload>,
    color: Option<u32>,
}

#[pymethods]
impl Range {
    #[new]
    #[pyo3(signature = (name, payload=None, color=None))]
    fn new(name: &str, payload: Option<Payload>, color: Option<u32>) -> PyResult<Self> {
        Ok(Self {
            name: CString::new(name)?,
            payload,
            color,
        })
    }

    fn __enter__<'py>(slf: Bound<'py, Self>) -> Bound<'py, Self> {
        let range = slf.get();
        for (_, tool) in tools() {
            if let Some(push) = tool.function(slot::PUSH) {
                // SAFETY: the tool's function for this slot.
                let push = unsafe { std::mem::transmute::<*mut c_void, Push>(push) };
                let attributes = range.attributes();
                // SAFETY: the tool's own domain, and attributes whose text lives during the call.
                unsafe { push(tool.domain(), &raw const attributes) };
            }
        }
        slf
    }

    #[pyo3(signature = (*_error))]
    fn __exit__(&self, _error: &Bound<'_, pyo3::types::PyTuple>) {
        for (_, tool) in tools() {
            if let Some(pop) = tool.function(slot::POP) {
                // SAFETY: the tool's function for this slot.
                let pop = unsafe { std::mem::transmute::<*mut c_void, Pop>(pop) };
                // SAFETY: the tool's own domain.
                unsafe { pop(tool.domain()) };
            }
        }
    }

    /// As a decorator.
    fn __call__<'py>(slf: Bound<'py, Self>, function: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let ranges = slf.py().import("tracesmith._ranges")?;
        ranges.call_method1("_decorated", (function, slf))
    }

    /// Starts a range that does not nest and may end on another thread. Returns its numbers for [`range_end`].
    fn start(&self) -> (u64, u64) {
        let mut numbers = [0; TOOLS.len()];
        for (number, tool) in tools() {
            if let Some(start) = tool.function(slot::START) {
                // SAFETY: the tool's function for this slot.
                let start = unsafe { std::mem::transmute::<*mut c_void, Start>(start) };
                let attributes = self.attributes();
                // SAFETY: the tool's own domain, and attributes whose text lives during the call.
                numbers[number] = unsafe { start(tool.domain(), &raw const attributes) };
            }
        }
        numbers.into()
    }

    fn __repr__(&self) -> String {
        format!("range({:?})", self.name.to_string_lossy())
    }
}

impl Range {
    fn attributes(&self) -> Attributes {
        attributes(&self.name, self.payload, self.color)
    }
}

/// Ends a range that [`Range::start`] started.
#[pyfunction]
pub(crate) fn range_end(numbers: (u64, u64)) {
    for (tool, number) in TOOLS.iter().zip(<[u64; 2]>::from(numbers)) {
        if number != 0
            && let Some(end) = tool.function(slot::END)
        {
            // SAFETY: the tool's function for this slot.
            let end = unsafe { std::mem::transmute::<*mut c_void, End>(end) };
            // SAFETY: the tool's own domain.
            unsafe { end(tool.domain(), number) };
        }
    }
}

/// A named moment.
#[pyfunction]
#[pyo3(signature = (name, payload=None, color=None))]
pub(crate) fn mark(name: &str, payload: Option<Payload>, color: Option<u32>) -> PyResult<()> {
    let name = CString::new(name)?;
    for (_, tool) in tools() {
        if let Some(mark) = tool.function(slot::MARK) {
            // SAFETY: the tool's function for this slot.
            let mark = unsafe { std::mem::transmute::<*mut c_void, Mark>(mark) };
            let attributes = attributes(&name, payload, color);
            // SAFETY: the tool's own domain, and attributes whose text lives during the call.
            unsafe { mark(tool.domain(), &raw const attributes) };
        }
    }
    Ok(())
}
