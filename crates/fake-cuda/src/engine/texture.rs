//! Arrays, and textures and surfaces by their handles: small numbers, given out one after another.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::registry::{Handle, Registry};
use crate::code::Code;

pub(crate) static ARRAYS: Registry<Array> = Registry::new();
pub(crate) static MIPMAPPED: Registry<Mipmapped> = Registry::new();

static TEXTURES: Mutex<BTreeMap<u64, Texture>> = Mutex::new(BTreeMap::new());

pub(crate) struct Array {
    pub(crate) shape: Shape,
    /// Where its content lies, row upon row.
    pub(crate) base: u64,
}

/// One array for each level of detail.
pub(crate) struct Mipmapped {
    pub(crate) levels: Vec<Handle>,
}

/// `CUDA_ARRAY3D_DESCRIPTOR`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    width: usize,
    height: usize,
    depth: usize,
    format: u32,
    channels: u32,
    flags: u32,
}

impl Shape {
    /// Bytes of a row, and rows of a plane.
    pub(crate) fn rows(&self) -> (u64, u64) {
        // Numbers of one, two and four bytes: `CUarray_format`.
        let element = match self.format {
            0x01 | 0x08 => 1,
            0x02 | 0x09 | 0x10 => 2,
            _ => 4,
        };
        let row = self.width as u64 * element * u64::from(self.channels);
        (row, self.height.max(1) as u64)
    }

    pub(crate) fn bytes(&self) -> Option<u64> {
        let (row, rows) = self.rows();
        row.checked_mul(rows)?.checked_mul(self.depth.max(1) as u64)
    }

    pub(crate) fn level(&self, level: u32) -> Self {
        let smaller = |size: usize| if size == 0 { 0 } else { (size >> level).max(1) };
        Self {
            width: smaller(self.width),
            height: smaller(self.height),
            depth: smaller(self.depth),
            ..*self
        }
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Texture {
    pub(crate) base: u64,
    pub(crate) bytes: u64,
    pub(crate) source: Source,
}

/// What it was made of.
#[derive(Clone, Copy)]
pub(crate) struct Source {
    pub(crate) kind: u32,
    pub(crate) words: [u64; 16],
}

/// The lowest number that is free.
pub(crate) fn add(texture: Texture) -> u64 {
    let mut textures = TEXTURES.lock().unwrap_or_else(PoisonError::into_inner);
    let handle = (1..).find(|handle| !textures.contains_key(handle)).unwrap_or(0);
    textures.insert(handle, texture);
    handle
}

pub(crate) fn remove(handle: u64) -> Result<(), Code> {
    let mut textures = TEXTURES.lock().unwrap_or_else(PoisonError::into_inner);
    textures.remove(&handle).map(|_| ()).ok_or(Code::INVALID_VALUE)
}

pub(crate) fn find(handle: u64) -> Result<Texture, Code> {
    let textures = TEXTURES.lock().unwrap_or_else(PoisonError::into_inner);
    textures.get(&handle).copied().ok_or(Code::INVALID_VALUE)
}
