//! The parameters of driver calls, as callbacks see them.
//!
//! CUPTI hands out a struct of the call's arguments in their order. Those that
//! differ only by being asynchronous, or by the default stream that they mean,
//! begin alike. <https://docs.nvidia.com/cupti/api/group__CUPTI__CALLBACK__API.html>

mod copies;
mod graphs;
mod textures;

use std::ffi::c_void;

pub use copies::*;
pub use graphs::*;
pub use textures::*;

/// `cuLaunchKernel`; `cuLaunchCooperativeKernel` ends before `extra`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs, reason = "the arguments of the call")]
pub struct Launch {
    pub function: *mut c_void,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared: u32,
    pub stream: *mut c_void,
    pub parameters: *mut *mut c_void,
    pub extra: *mut *mut c_void,
}

const _: () = assert!(std::mem::offset_of!(Launch, stream) == 40 && size_of::<Launch>() == 64);

/// `cuLaunchKernelEx`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs, reason = "the arguments of the call")]
pub struct LaunchEx {
    pub config: *const LaunchConfig,
    pub function: *mut c_void,
    pub parameters: *mut *mut c_void,
    pub extra: *mut *mut c_void,
}

/// `CUlaunchConfig`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs, reason = "its fields")]
pub struct LaunchConfig {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared: u32,
    pub stream: *mut c_void,
    pub attributes: *const LaunchAttribute,
    pub attribute_count: u32,
}

const _: () = assert!(size_of::<LaunchConfig>() == 56);

/// `CUlaunchAttribute`.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
#[allow(missing_docs, reason = "its fields")]
pub struct LaunchAttribute {
    pub id: u32,
    pub padding: u32,
    pub value: [u8; 64],
}

const _: () = assert!(size_of::<LaunchAttribute>() == 72);

/// `cuMemcpyHtoD`, `DtoH`, `DtoD` and `cuMemcpy`, and their asynchronous forms:
/// only those have the last.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs, reason = "the arguments of the call")]
pub struct Copy {
    pub destination: u64,
    pub source: u64,
    pub bytes: usize,
    pub stream: *mut c_void,
}

/// `cuMemsetD8`, `D16` and `D32`, and their asynchronous forms: only those have
/// the last. Of the value so many bytes count as the element has.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs, reason = "the arguments of the call")]
pub struct Set {
    pub destination: u64,
    pub value: u32,
    pub count: usize,
    pub stream: *mut c_void,
}

/// `cuMemAlloc`, `cuMemAllocManaged`, `cuMemHostAlloc`, `cuMemAllocHost` and
/// `cuMemAllocAsync` begin so.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs, reason = "the arguments of the call")]
pub struct Allocate {
    pub address: *mut u64,
    pub bytes: usize,
    /// The stream, of `cuMemAllocAsync`; the pool, of `cuMemAllocFromPoolAsync`.
    pub third: *mut c_void,
    /// The stream, of `cuMemAllocFromPoolAsync`.
    pub fourth: *mut c_void,
}

/// `cuMemAllocPitch`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs, reason = "the arguments of the call")]
pub struct AllocatePitch {
    pub address: *mut u64,
    pub pitch: *mut usize,
    pub width: usize,
    pub height: usize,
}

/// `cuMemFree`, `cuMemFreeHost`, `cuMemHostUnregister`, and with the second
/// `cuMemFreeAsync`, `cuMemUnmap`, `cuMemMap` and `cuMemHostRegister`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs, reason = "the arguments of the call")]
pub struct Range {
    pub address: u64,
    /// Bytes, or the stream.
    pub second: u64,
}

/// Calls about one or two handles: `cuEventRecord` (event, stream),
/// `cuStreamWaitEvent` (stream, event), `cuStreamSynchronize`,
/// `cuEventSynchronize`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs, reason = "the arguments of the call")]
pub struct Handles {
    pub first: u64,
    pub second: u64,
    pub flags: u32,
}

/// `cuFuncSetAttribute`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs, reason = "the arguments of the call")]
pub struct SetFunctionAttribute {
    pub function: *mut c_void,
    pub attribute: u32,
    pub value: i32,
}

/// `cuKernelSetAttribute`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs, reason = "the arguments of the call")]
pub struct SetKernelAttribute {
    pub attribute: u32,
    pub value: i32,
    pub kernel: *mut c_void,
}

/// `cuMemcpy2D`, `cuMemcpy3D` and their asynchronous forms: only those have the last.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs, reason = "the arguments of the call")]
pub struct CopyOf<T> {
    pub what: *const T,
    pub stream: *mut c_void,
}

/// `cuMemsetD2D8`, `D16` and `D32`, and their asynchronous forms: only those have the last.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs, reason = "the arguments of the call")]
pub struct SetRows {
    pub destination: u64,
    pub pitch: usize,
    pub value: u32,
    pub width: usize,
    pub height: usize,
    pub stream: *mut c_void,
}

/// `cuModuleGetGlobal` and `cuLibraryGetGlobal`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs, reason = "the arguments of the call")]
pub struct GetVariable {
    pub address: *const u64,
    pub bytes: *const usize,
    pub module: u64,
    pub name: *const std::ffi::c_char,
}

/// Words of `extra` that say what follows: `CU_LAUNCH_PARAM_END`,
/// `_BUFFER_POINTER` and `_BUFFER_SIZE`.
pub const EXTRA_END: usize = 0;
/// The next word points to the parameters.
pub const EXTRA_POINTER: usize = 1;
/// The next word points to their size.
pub const EXTRA_SIZE: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: ArrayShape = ArrayShape {
        width: 20,
        height: 6,
        depth: 0,
        format: 0x20,
        channels: 2,
        flags: 0,
        padding: 0,
    };

    #[test]
    fn an_array_has_rows_and_planes() {
        assert_eq!(SHAPE.extent(), Some([160, 6, 1]));
        assert_eq!(SHAPE.bytes(), Some(960));
        let line = ArrayShape { height: 0, ..SHAPE };
        assert_eq!(line.extent(), Some([160, 1, 1]));
        let solid = ArrayShape { depth: 3, ..SHAPE };
        assert_eq!(solid.bytes(), Some(2880));
        let compressed = ArrayShape {
            format: 0x91,
            ..SHAPE
        };
        assert_eq!(compressed.bytes(), None);
        let endless = ArrayShape {
            width: usize::MAX,
            ..SHAPE
        };
        assert_eq!(endless.bytes(), None);
    }

    #[test]
    fn levels_become_smaller_and_layers_do_not() {
        let solid = ArrayShape { depth: 4, ..SHAPE };
        let third = solid.level(2);
        assert_eq!((third.width, third.height, third.depth), (5, 1, 1));
        let layered = ArrayShape { flags: 1, ..solid };
        assert_eq!(layered.level(2).depth, 4);
        let (places, bytes) = SHAPE.layout(3).unwrap();
        assert_eq!(
            places.iter().map(|place| place.begin).collect::<Vec<_>>(),
            [0, 960, 1200]
        );
        assert_eq!((places[2].extent, bytes), ([40, 1, 1], 1240));
        assert_eq!(
            SHAPE.layout(0).unwrap(),
            (places[..1].to_vec(), 960),
            "a plain one"
        );
        let line = ArrayShape { height: 0, ..SHAPE };
        assert_eq!((line.level(9).width, line.level(9).height), (1, 0));
    }
}
