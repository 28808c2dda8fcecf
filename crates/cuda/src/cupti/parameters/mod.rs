//! The parameters of driver calls, as callbacks see them.
//!
//! CUPTI hands out a struct of the call's arguments in their order. Those that
//! differ only by being asynchronous, or by the default stream that they mean,
//! begin alike. <https://docs.nvidia.com/cupti/api/group__CUPTI__CALLBACK__API.html>

use std::ffi::c_void;

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

/// `CUDA_MEMCPY3D`: a copy of planes, and what `cuMemcpy3D` points to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
#[allow(missing_docs, reason = "its fields")]
pub struct Planes {
    pub source: Side,
    pub destination: Side,
    /// Bytes of a row.
    pub width: usize,
    /// Rows of a plane.
    pub height: usize,
    /// Planes.
    pub depth: usize,
}

const _: () = assert!(size_of::<Planes>() == 200);

/// One end of a copy of planes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
#[allow(missing_docs, reason = "its fields")]
pub struct Side {
    /// Bytes to the left of the first row's beginning.
    pub x: usize,
    pub y: usize,
    pub z: usize,
    pub level: usize,
    /// `CUmemorytype`, in the lower half.
    pub kind: u64,
    pub host: u64,
    pub device: u64,
    pub array: u64,
    pub reserved: u64,
    /// Bytes from row to row.
    pub pitch: usize,
    /// Rows from plane to plane.
    pub height: usize,
}

/// `CU_MEMORYTYPE_HOST`.
pub const SIDE_HOST: u32 = 1;
/// `CU_MEMORYTYPE_DEVICE`.
pub const SIDE_DEVICE: u32 = 2;
/// `CU_MEMORYTYPE_ARRAY`.
pub const SIDE_ARRAY: u32 = 3;
/// `CU_MEMORYTYPE_UNIFIED`.
pub const SIDE_UNIFIED: u32 = 4;

/// `CUDA_MEMCPY2D`, what `cuMemcpy2D` points to.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs, reason = "its fields")]
pub struct Rows {
    pub source: RowSide,
    pub destination: RowSide,
    pub width: usize,
    pub height: usize,
}

const _: () = assert!(size_of::<Rows>() == 128);

/// One end of a copy of rows.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs, reason = "its fields")]
pub struct RowSide {
    pub x: usize,
    pub y: usize,
    pub kind: u64,
    pub host: u64,
    pub device: u64,
    pub array: u64,
    pub pitch: usize,
}

impl From<Rows> for Planes {
    fn from(rows: Rows) -> Self {
        let side = |side: RowSide| Side {
            x: side.x,
            y: side.y,
            kind: side.kind,
            host: side.host,
            device: side.device,
            array: side.array,
            pitch: side.pitch,
            height: rows.height,
            ..Side::default()
        };
        Self {
            source: side(rows.source),
            destination: side(rows.destination),
            width: rows.width,
            height: rows.height,
            depth: 1,
        }
    }
}

impl Side {
    /// Where its first byte lies; none in an array.
    pub fn address(&self) -> Option<u64> {
        let base = match self.kind as u32 {
            SIDE_HOST => self.host,
            SIDE_DEVICE | SIDE_UNIFIED => self.device,
            _ => return None,
        };
        let rows = self.z.checked_mul(self.height)?.checked_add(self.y)?;
        let offset = rows.checked_mul(self.pitch)?.checked_add(self.x)?;
        base.checked_add(offset as u64)
    }
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

/// `CUDA_KERNEL_NODE_PARAMS`, second version.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs, reason = "its fields")]
pub struct KernelNode {
    pub function: *mut c_void,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared: u32,
    pub parameters: *mut *mut c_void,
    pub extra: *mut *mut c_void,
    pub kernel: *mut c_void,
    pub context: *mut c_void,
}

const _: () = assert!(size_of::<KernelNode>() == 72);

/// `CUDA_MEMSET_NODE_PARAMS`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
#[allow(missing_docs, reason = "its fields")]
pub struct SetNode {
    pub destination: u64,
    pub pitch: usize,
    pub value: u32,
    pub element: u32,
    pub width: usize,
    pub height: usize,
}

const _: () = assert!(size_of::<SetNode>() == 40);

/// `CUDA_MEM_ALLOC_NODE_PARAMS`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs, reason = "its fields")]
pub struct AllocateNode {
    pub pool: [u64; 11],
    pub access: *const c_void,
    pub access_count: usize,
    pub bytes: usize,
    pub address: u64,
}

const _: () = assert!(size_of::<AllocateNode>() == 120);

/// `cuGraphInstantiate` in all its forms.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs, reason = "the arguments of the call")]
pub struct Instantiate {
    pub executable: *const u64,
    pub graph: u64,
}

/// `cuGraphExec…SetParams` of a node: the executable, the node, and what is set.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs, reason = "the arguments of the call")]
pub struct SetNodeParameters {
    pub executable: u64,
    pub node: u64,
    pub parameters: *const c_void,
}

/// Words of `extra` that say what follows: `CU_LAUNCH_PARAM_END`,
/// `_BUFFER_POINTER` and `_BUFFER_SIZE`.
pub const EXTRA_END: usize = 0;
/// The next word points to the parameters.
pub const EXTRA_POINTER: usize = 1;
/// The next word points to their size.
pub const EXTRA_SIZE: usize = 2;

/// `cuTexObjectCreate` and, without the last two, `cuSurfObjectCreate`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
#[allow(missing_docs, reason = "the arguments of the call")]
pub struct MakeTexture {
    pub handle: *const u64,
    pub resource: *const Resource,
    pub texture: *const [u8; TEXTURE_BYTES],
    pub view: *const [u8; VIEW_BYTES],
}

/// Bytes of `CUDA_TEXTURE_DESC`.
pub const TEXTURE_BYTES: usize = 104;
/// Bytes of `CUDA_RESOURCE_VIEW_DESC`.
pub const VIEW_BYTES: usize = 112;

/// `CUDA_RESOURCE_DESC`: what a texture or a surface looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[allow(missing_docs, reason = "its fields")]
pub struct Resource {
    /// `CUresourcetype`.
    pub kind: u32,
    pub padding: u32,
    /// First the handle of an array, or an address; then what belongs to the kind.
    pub words: [u64; 16],
    pub flags: u32,
    pub padding_behind: u32,
}

const _: () = assert!(size_of::<Resource>() == 144);

/// `CU_RESOURCE_TYPE_ARRAY`.
pub const RESOURCE_ARRAY: u32 = 0;
/// `CU_RESOURCE_TYPE_MIPMAPPED_ARRAY`.
pub const RESOURCE_MIPMAPPED: u32 = 1;
/// `CU_RESOURCE_TYPE_LINEAR`.
pub const RESOURCE_LINEAR: u32 = 2;
/// `CU_RESOURCE_TYPE_PITCH2D`.
pub const RESOURCE_PITCHED: u32 = 3;

/// `CUDA_ARRAY3D_DESCRIPTOR`: the shape of an array.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
#[allow(missing_docs, reason = "its fields")]
pub struct ArrayShape {
    /// In elements.
    pub width: usize,
    /// 0 when it has one dimension.
    pub height: usize,
    /// 0 when it has two; layers, of one with layers.
    pub depth: usize,
    /// `CUarray_format`.
    pub format: u32,
    pub channels: u32,
    pub flags: u32,
    pub padding: u32,
}

const _: () = assert!(size_of::<ArrayShape>() == 40);

/// `CUDA_ARRAY3D_LAYERED`, and `_CUBEMAP`, whose faces are layers.
const LAYERED: u32 = 0x01 | 0x04;

impl ArrayShape {
    /// Bytes of an element; none of formats that are compressed or have several
    /// planes.
    pub fn element(&self) -> Option<usize> {
        let bytes = match self.format {
            0x01 | 0x08 => 1,
            0x02 | 0x09 | 0x10 => 2,
            0x03 | 0x0A | 0x20 => 4,
            _ => return None,
        };
        matches!(self.channels, 1 | 2 | 4).then_some(bytes * self.channels as usize)
    }

    /// The shape of a level of detail, of which the first is the array itself.
    pub fn level(&self, level: u32) -> Self {
        let smaller = |size: usize| {
            if size == 0 {
                0
            } else {
                size.checked_shr(level).unwrap_or(0).max(1)
            }
        };
        Self {
            width: smaller(self.width),
            height: smaller(self.height),
            depth: if self.flags & LAYERED == 0 {
                smaller(self.depth)
            } else {
                self.depth
            },
            ..*self
        }
    }

    /// Bytes of a row, rows of a plane, and planes.
    pub fn extent(&self) -> Option<[usize; 3]> {
        let row = self.width.checked_mul(self.element()?)?;
        (row > 0).then_some([row, self.height.max(1), self.depth.max(1)])
    }

    /// All its bytes, row upon row.
    pub fn bytes(&self) -> Option<usize> {
        let [row, rows, planes] = self.extent()?;
        row.checked_mul(rows)?.checked_mul(planes)
    }

    /// How the bytes of its levels of detail lie one behind the other, and how
    /// many there are; 0 levels are those of a plain array, which is one.
    pub fn layout(&self, levels: u32) -> Option<(Vec<LevelPlace>, u64)> {
        let mut places = Vec::new();
        let mut begin: u64 = 0;
        for level in 0..levels.clamp(1, MOST_LEVELS) {
            let shape = self.level(level);
            let extent = shape.extent()?;
            places.push(LevelPlace { begin, extent });
            begin = begin.checked_add(shape.bytes()? as u64)?;
        }
        Some((places, begin))
    }
}

/// Levels of detail, at most: the largest array has fewer.
pub const MOST_LEVELS: u32 = 32;

/// Where a level of detail lies among the bytes of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelPlace {
    /// Where it begins.
    pub begin: u64,
    /// Bytes of a row, rows of a plane, and planes.
    pub extent: [usize; 3],
}

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
