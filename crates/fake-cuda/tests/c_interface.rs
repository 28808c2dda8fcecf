//! The C functions called from this process, as a program that links the libraries calls them.

#![allow(
    unsafe_code,
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "a test may stop on any error; every call is of the fake's own functions, with their C types"
)]

use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::OnceLock;

/// A function of the fake by its C name and type.
macro_rules! call {
    ($name:literal: fn($($type:ty),*) -> $result:ty, $($arg:expr),*) => {{
        let function: extern "C" fn($($type),*) -> $result = unsafe { std::mem::transmute(symbol($name)) };
        function($($arg),*)
    }};
}

fn symbol(name: &str) -> *mut c_void {
    static LIBRARY: OnceLock<usize> = OnceLock::new();
    let library = *LIBRARY.get_or_init(|| {
        let path = tracesmith_fake_cuda::library().unwrap();
        let path = CString::new(path.to_str().unwrap()).unwrap();
        unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) as usize }
    });
    let name = CString::new(name).unwrap();
    let found = unsafe { libc::dlsym(library as *mut c_void, name.as_ptr()) };
    assert!(!found.is_null(), "{name:?}");
    found
}

/// A context on the first device, current to this thread.
fn use_device() {
    let mut context = 0_usize;
    assert_eq!(call!("cuInit": fn(u32) -> u32, 0), 0);
    assert_eq!(
        call!("cuDevicePrimaryCtxRetain": fn(*mut usize, i32) -> u32, &mut context, 0),
        0
    );
    assert_eq!(call!("cuCtxSetCurrent": fn(usize) -> u32, context), 0);
}

const PTX: &CStr =
    c".version 7.0\n.visible .entry fill(.param .u64 p, .param .u32 v, .param .u32 n) { exit; }\n\
    .visible .entry stranger(.param .u64 p) { exit; }";

fn load(image: *const c_char) -> usize {
    let mut module = 0_usize;
    assert_eq!(
        call!("cuModuleLoadData": fn(*mut usize, *const c_char) -> u32, &mut module, image),
        0
    );
    module
}

fn function(module: usize, name: &CStr) -> Result<usize, u32> {
    let mut found = 0_usize;
    match call!("cuModuleGetFunction": fn(*mut usize, usize, *const c_char) -> u32, &mut found, module, name.as_ptr())
    {
        0 => Ok(found),
        code => Err(code),
    }
}

#[test]
fn a_kernel_that_nobody_knows_is_not_found() {
    use_device();
    let module = load(PTX.as_ptr());
    assert_eq!(function(module, c"stranger"), Err(500));
    assert_eq!(function(module, c"absent"), Err(500));
    assert!(function(module, c"fill").is_ok());
}

#[test]
fn a_function_goes_with_its_module() {
    use_device();
    let module = load(PTX.as_ptr());
    let fill = function(module, c"fill").unwrap();
    assert_eq!(call!("cuModuleUnload": fn(usize) -> u32, module), 0);
    let mut name = std::ptr::null();
    assert_eq!(
        call!("cuFuncGetName": fn(*mut *const c_char, usize) -> u32, &mut name, fill),
        400
    );
}

#[test]
fn parameters_are_where_the_declaration_puts_them() {
    use_device();
    let fill = function(load(PTX.as_ptr()), c"fill").unwrap();
    let info = |index: usize| {
        let (mut offset, mut size) = (0_usize, 0_usize);
        let code = call!(
            "cuFuncGetParamInfo": fn(usize, usize, *mut usize, *mut usize) -> u32,
            fill, index, &mut offset, &mut size
        );
        (code, offset, size)
    };
    assert_eq!([info(0), info(1), info(2)], [(0, 0, 8), (0, 8, 4), (0, 12, 4)]);
    assert_eq!(info(3).0, 1);
    let mut name = std::ptr::null();
    call!("cuFuncGetName": fn(*mut *const c_char, usize) -> u32, &mut name, fill);
    assert_eq!(unsafe { CStr::from_ptr(name) }, c"fill");
}

#[test]
fn a_bad_address_stops_the_context_as_on_a_gpu() {
    use_device();
    // A context of its own: its failure is for good.
    let (mut context, mut device_memory) = (0_usize, 0_u64);
    assert_eq!(
        call!("cuCtxCreate_v2": fn(*mut usize, u32, i32) -> u32, &mut context, 0, 0),
        0
    );
    let fill = function(load(PTX.as_ptr()), c"fill").unwrap();
    let (pointer, value, count) = (0x1234_5000_u64, 7_u32, 16_u32);
    let mut arguments = [
        (&raw const pointer) as usize,
        (&raw const value) as usize,
        (&raw const count) as usize,
    ];
    let code = call!(
        "cuLaunchKernel": fn(usize, u32, u32, u32, u32, u32, u32, u32, usize, *mut usize, usize) -> u32,
        fill, 1, 1, 1, 16, 1, 1, 0, 0, arguments.as_mut_ptr(), 0
    );
    assert_eq!(code, 0);
    assert_eq!(call!("cuCtxSynchronize": fn() -> u32,), 700);
    assert_eq!(
        call!("cuMemAlloc_v2": fn(*mut u64, usize) -> u32, &mut device_memory, 16),
        700
    );
    assert_eq!(call!("cuCtxDestroy_v2": fn(usize) -> u32, context), 0);
}

#[test]
fn functions_are_found_by_their_plain_names() {
    let mut found = 0_usize;
    let code = call!(
        "cuGetProcAddress_v2": fn(*const c_char, *mut usize, i32, u64, *mut u32) -> u32,
        c"cuMemAlloc".as_ptr(), &mut found, 12000, 0, std::ptr::null_mut()
    );
    assert_eq!((code, found), (0, symbol("cuMemAlloc_v2") as usize));
    let code = call!(
        "cuGetProcAddress_v2": fn(*const c_char, *mut usize, i32, u64, *mut u32) -> u32,
        c"cuNever".as_ptr(), &mut found, 12000, 0, std::ptr::null_mut()
    );
    assert_eq!(code, 500);
}

#[test]
fn calls_and_results_have_names() {
    let mut name: *const c_char = std::ptr::null();
    assert_eq!(
        call!("cuptiGetCallbackName": fn(u32, u32, *mut *const c_char) -> u32, 1, 307, &mut name),
        0
    );
    assert_eq!(unsafe { CStr::from_ptr(name) }, c"cuLaunchKernel");
    assert_eq!(
        call!("cuptiGetResultString": fn(u32, *mut *const c_char) -> u32, 39, &mut name),
        0
    );
    assert_eq!(
        unsafe { CStr::from_ptr(name) },
        c"CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"
    );
    assert_eq!(
        call!("cuGetErrorName": fn(u32, *mut *const c_char) -> u32, 700, &mut name),
        0
    );
    assert_eq!(unsafe { CStr::from_ptr(name) }, c"CUDA_ERROR_ILLEGAL_ADDRESS");
}

extern "C" fn ignore(_: *mut c_void, _: u32, _: u32, _: *const c_void) {}

#[test]
fn there_is_one_subscriber() {
    type Callback = extern "C" fn(*mut c_void, u32, u32, *const c_void);
    let (mut first, mut second) = (0_usize, 0_usize);
    let subscribe = |handle: &mut usize| call!("cuptiSubscribe": fn(*mut usize, Callback, usize) -> u32, handle, ignore, 0);
    assert_eq!(subscribe(&mut first), 0);
    assert_eq!(subscribe(&mut second), 39);
    assert_eq!(
        call!("cuptiEnableCallback": fn(u32, usize, u32, u32) -> u32, 1, first, 1, 307),
        0
    );
    let mut state = 0_u32;
    call!("cuptiGetCallbackState": fn(*mut u32, usize, u32, u32) -> u32, &mut state, first, 1, 307);
    assert_eq!(state, 1);
    assert_eq!(call!("cuptiUnsubscribe": fn(usize) -> u32, first), 0);
    assert_eq!(subscribe(&mut second), 0);
    assert_eq!(call!("cuptiUnsubscribe": fn(usize) -> u32, second), 0);
}

#[test]
fn nvml_answers_when_it_is_started() {
    let mut count = 0_u32;
    assert_eq!(call!("nvmlDeviceGetCount_v2": fn(*mut u32) -> u32, &mut count), 1);
    assert_eq!(call!("nvmlInit_v2": fn() -> u32,), 0);
    assert_eq!(call!("nvmlDeviceGetCount_v2": fn(*mut u32) -> u32, &mut count), 0);
    assert_eq!(count, 1);
    let (mut device, mut again) = (0_usize, 0_usize);
    call!("nvmlDeviceGetHandleByIndex_v2": fn(u32, *mut usize) -> u32, 0, &mut device);
    let mut uuid = [0 as c_char; 96];
    let code = call!(
        "nvmlDeviceGetUUID": fn(usize, *mut c_char, u32) -> u32, device, uuid.as_mut_ptr(), 96
    );
    assert_eq!(code, 0);
    let code = call!(
        "nvmlDeviceGetHandleByUUID": fn(*const c_char, *mut usize) -> u32, uuid.as_ptr(), &mut again
    );
    assert_eq!((code, again), (0, device));
    let mut memory = [0_u64; 3];
    call!("nvmlDeviceGetMemoryInfo": fn(usize, *mut u64) -> u32, device, memory.as_mut_ptr());
    assert_eq!(memory[0], memory[1] + memory[2]);
    let mut power = 0_u32;
    call!("nvmlDeviceGetPowerUsage": fn(usize, *mut u32) -> u32, device, &mut power);
    assert!((100_000..=700_000).contains(&power));
    assert_eq!(call!("nvmlShutdown": fn() -> u32,), 0);
}
