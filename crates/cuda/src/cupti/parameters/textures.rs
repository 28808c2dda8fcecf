//! Textures, surfaces and arrays.

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
