//! Looking at arrays of a program, and whether it has textures.

use super::TargetDriver;
use crate::cupti::parameters::{ArrayShape, Planes, Resource, SIDE_ARRAY, SIDE_HOST, Side};
use crate::driver::functions::Handle;

/// An array of the program's, or a level of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ArrayHandle(pub u64);

/// Rows of a plane of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrayRows {
    /// The plane.
    pub plane: usize,
    /// The first of the rows.
    pub first: usize,
    /// How many.
    pub count: usize,
    /// Bytes of each.
    pub bytes: usize,
}

impl TargetDriver {
    /// The shape of an array that is there; none when the driver does not tell.
    pub fn array(&self, array: ArrayHandle) -> Option<ArrayShape> {
        let mut shape = ArrayShape::default();
        // SAFETY: writes one shape; the array is the program's.
        let status = unsafe { self.functions.cuArray3DGetDescriptor_v2?(&raw mut shape, array.0 as Handle) };
        (status == 0).then_some(shape)
    }

    /// A level of an array that has several; none behind the last.
    pub fn level(&self, array: ArrayHandle, level: u32) -> Option<ArrayHandle> {
        let mut handle = std::ptr::null_mut();
        // SAFETY: writes one handle; the array is the program's.
        let status =
            unsafe { self.functions.cuMipmappedArrayGetLevel?(&raw mut handle, array.0 as Handle, level) };
        (status == 0 && !handle.is_null()).then_some(ArrayHandle(handle as u64))
    }

    /// Copies rows of an array; `to` has room for them.
    pub fn read_array(&self, array: ArrayHandle, rows: ArrayRows, to: &mut [u8]) -> bool {
        let Some(copy) = self.functions.cuMemcpy3D_v2 else {
            return false;
        };
        if rows.bytes.checked_mul(rows.count) != Some(to.len()) {
            return false;
        }
        let planes = Planes {
            source: Side {
                y: rows.first,
                z: rows.plane,
                kind: u64::from(SIDE_ARRAY),
                array: array.0,
                ..Side::default()
            },
            destination: Side {
                kind: u64::from(SIDE_HOST),
                host: to.as_mut_ptr() as u64,
                pitch: rows.bytes,
                height: rows.count,
                ..Side::default()
            },
            width: rows.bytes,
            height: rows.count,
            depth: 1,
        };
        // SAFETY: writes all of the slice and no more; the driver checks what it reads against the array's size.
        unsafe { copy(&raw const planes) == 0 }
    }

    /// Whether a number is the handle of a texture or a surface, or was one.
    pub fn has_texture(&self, handle: u64) -> bool {
        let ask = [
            self.functions.cuTexObjectGetResourceDesc,
            self.functions.cuSurfObjectGetResourceDesc,
        ];
        ask.into_iter().flatten().any(|ask| {
            let mut resource = Resource {
                kind: 0,
                padding: 0,
                words: [0; 16],
                flags: 0,
                padding_behind: 0,
            };
            // SAFETY: writes one description; the driver knows which numbers it gave out.
            unsafe { ask(&raw mut resource, handle) == 0 }
        })
    }
}
