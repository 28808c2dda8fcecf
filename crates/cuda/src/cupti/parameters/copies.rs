//! Copies of rows and planes.

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
