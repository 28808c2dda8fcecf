//! Arrays and textures of our own, as a program had them.
//!
//! An array has no address: the driver lays it out as it likes. Beside each one
//! lies plain memory with the same content row upon row, which can be read,
//! written and compared like any other.

use std::ffi::c_ulonglong;

use super::functions::Handle;
use super::{Context, DeviceMemory, missing};
use crate::Error;
use crate::cupti::parameters::{
    ArrayShape, LevelPlace, MOST_LEVELS, Planes, Resource, SIDE_ARRAY, SIDE_DEVICE, Side, TEXTURE_BYTES,
    VIEW_BYTES,
};

/// Handles that are taken to come to a wanted one, at most.
const MOST_HANDLES: u64 = 1 << 16;

/// An array, with plain memory beside it.
pub struct Array {
    context: Context,
    handle: Handle,
    levels: Vec<Level>,
    kind: Kind,
    beside: DeviceMemory<u32>,
    bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Plain,
    Mipmapped,
}

#[derive(Clone, Copy)]
struct Level {
    handle: Handle,
    /// Where it lies in the memory beside.
    place: LevelPlace,
}

impl Array {
    /// Makes one. 0 levels make a plain one.
    ///
    /// # Errors
    ///
    /// When its format is not known, or what the driver says.
    pub fn new(context: &Context, shape: &ArrayShape, levels: u32) -> Result<Self, Error> {
        let levels = levels.min(MOST_LEVELS);
        let (places, bytes) = shape.layout(levels).ok_or_else(|| Error::Refused {
            library: super::LIBRARY,
            reason: format!("arrays of format {:#x} are not known", shape.format),
        })?;
        let beside = context.memory::<u32>(bytes.div_ceil(4) as usize)?;
        let driver = context.enter()?;
        let functions = driver.functions();
        let mut handle = std::ptr::null_mut();
        let mut array = if levels == 0 {
            let call = functions
                .cuArray3DCreate_v2
                .ok_or_else(|| missing("cuArray3DCreate"))?;
            // SAFETY: reads a shape, writes a handle.
            driver.check("cuArray3DCreate", unsafe { call(&raw mut handle, shape) })?;
            Self::of(context, handle, Kind::Plain, beside, bytes)
        } else {
            let call = functions
                .cuMipmappedArrayCreate
                .ok_or_else(|| missing("cuMipmappedArrayCreate"))?;
            // SAFETY: as above.
            driver.check("cuMipmappedArrayCreate", unsafe {
                call(&raw mut handle, shape, levels)
            })?;
            Self::of(context, handle, Kind::Mipmapped, beside, bytes)
        };
        for (level, place) in places.into_iter().enumerate() {
            let mut of_level = handle;
            if array.kind == Kind::Mipmapped {
                let call = functions
                    .cuMipmappedArrayGetLevel
                    .ok_or_else(|| missing("cuMipmappedArrayGetLevel"))?;
                // SAFETY: writes a handle; the array is ours.
                driver.check("cuMipmappedArrayGetLevel", unsafe {
                    call(&raw mut of_level, handle, level as u32)
                })?;
            }
            array.levels.push(Level {
                handle: of_level,
                place,
            });
        }
        Ok(array)
    }

    fn of(context: &Context, handle: Handle, kind: Kind, beside: DeviceMemory<u32>, bytes: u64) -> Self {
        Self {
            context: context.clone(),
            handle,
            levels: Vec::new(),
            kind,
            beside,
            bytes,
        }
    }

    /// Where the memory beside it lies.
    pub fn address(&self) -> u64 {
        self.beside.address()
    }

    /// Bytes of its content.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The array gets what the memory beside it holds.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn put(&self) -> Result<(), Error> {
        self.levels.iter().try_for_each(|level| {
            let (plain, own) = self.ends(level);
            self.copy(level, plain, own)
        })
    }

    /// The memory beside it gets what the array holds.
    ///
    /// # Errors
    ///
    /// What the driver says.
    pub fn get(&self) -> Result<(), Error> {
        self.levels.iter().try_for_each(|level| {
            let (plain, own) = self.ends(level);
            self.copy(level, own, plain)
        })
    }

    fn ends(&self, level: &Level) -> (Side, Side) {
        let [row, rows, _] = level.place.extent;
        let plain = Side {
            kind: u64::from(SIDE_DEVICE),
            device: self.beside.address() + level.place.begin,
            pitch: row,
            height: rows,
            ..Side::default()
        };
        let own = Side {
            kind: u64::from(SIDE_ARRAY),
            array: level.handle as u64,
            ..Side::default()
        };
        (plain, own)
    }

    fn copy(&self, level: &Level, source: Side, destination: Side) -> Result<(), Error> {
        let [width, height, depth] = level.place.extent;
        let planes = Planes {
            source,
            destination,
            width,
            height,
            depth,
        };
        let driver = self.context.enter()?;
        let call = driver
            .functions()
            .cuMemcpy3DAsync_v2
            .ok_or_else(|| missing("cuMemcpy3DAsync"))?;
        // SAFETY: all of a level, and as much memory beside it.
        let status = unsafe { call(&raw const planes, std::ptr::null_mut()) };
        driver.check("cuMemcpy3DAsync", status)
    }

    /// One end of a copy of `width` bytes, `height` rows and `depth` planes that
    /// begins `offset` bytes behind the first, row upon row.
    pub(super) fn side(&self, offset: u64, [width, height, depth]: [usize; 3]) -> Option<Side> {
        let behind = self.levels.partition_point(|level| level.place.begin <= offset);
        let level = &self.levels[behind.checked_sub(1)?];
        let within = offset - level.place.begin;
        let [row, rows, planes] = level.place.extent;
        let (x, line) = (within as usize % row, within as usize / row);
        let (y, z) = (line % rows, line / rows);
        let fits =
            x.checked_add(width)? <= row && y.checked_add(height)? <= rows && z.checked_add(depth)? <= planes;
        fits.then_some(Side {
            x,
            y,
            z,
            kind: u64::from(SIDE_ARRAY),
            array: level.handle as u64,
            ..Side::default()
        })
    }
}

impl Drop for Array {
    fn drop(&mut self) {
        let Ok(driver) = self.context.enter() else { return };
        let functions = driver.functions();
        let destroy = match self.kind {
            Kind::Plain => functions.cuArrayDestroy,
            Kind::Mipmapped => functions.cuMipmappedArrayDestroy,
        };
        if let Some(destroy) = destroy {
            // SAFETY: ours, and never used again. A failed free cannot be handled here.
            let _ = unsafe { destroy(self.handle) };
        }
    }
}

/// What a texture or a surface is made of. It looks at an array, or at memory
/// whose address stands in the resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextureMake {
    /// What it looks at.
    pub resource: Resource,
    /// How it is read; a surface is not.
    pub reading: Option<Reading>,
}

/// How a texture is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// `CUDA_TEXTURE_DESC`.
    pub how: [u8; TEXTURE_BYTES],
    /// Which part of what it looks at: `CUDA_RESOURCE_VIEW_DESC`.
    pub view: Option<[u8; VIEW_BYTES]>,
}

impl TextureMake {
    /// The same, looking at an array of ours.
    pub fn at_array(mut self, array: &Array) -> Self {
        self.resource.words[0] = array.handle as u64;
        self
    }
}

/// A texture or a surface.
pub struct Texture {
    context: Context,
    handle: c_ulonglong,
    reading: Option<Reading>,
}

impl Texture {
    /// Makes one with a wanted handle. Handles are small numbers that the driver
    /// gives out one after another, so it is made until it has that one. What it
    /// looks at must be there as long as kernels use it; else they fail.
    ///
    /// # Errors
    ///
    /// When the handle is not to be had, or what the driver says.
    pub fn with_handle(context: &Context, make: &TextureMake, wanted: u64) -> Result<Self, Error> {
        let mut others = Vec::new();
        for _ in 0..MOST_HANDLES {
            let made = Self::new(context, make)?;
            if made.handle == wanted {
                return Ok(made);
            }
            others.push(made);
        }
        Err(Error::Refused {
            library: super::LIBRARY,
            reason: format!("it does not give a texture the handle {wanted}"),
        })
    }

    fn new(context: &Context, make: &TextureMake) -> Result<Self, Error> {
        let driver = context.enter()?;
        let functions = driver.functions();
        let mut handle = 0;
        match &make.reading {
            Some(Reading { how, view }) => {
                let call = functions
                    .cuTexObjectCreate
                    .ok_or_else(|| missing("cuTexObjectCreate"))?;
                let view = view.as_ref().map_or(std::ptr::null(), |view| &raw const *view);
                // SAFETY: reads three descriptions, writes a handle.
                driver.check("cuTexObjectCreate", unsafe {
                    call(&raw mut handle, &raw const make.resource, how, view)
                })?;
            }
            None => {
                let call = functions
                    .cuSurfObjectCreate
                    .ok_or_else(|| missing("cuSurfObjectCreate"))?;
                // SAFETY: as above.
                driver.check("cuSurfObjectCreate", unsafe {
                    call(&raw mut handle, &raw const make.resource)
                })?;
            }
        }
        Ok(Self {
            context: context.clone(),
            handle,
            reading: make.reading,
        })
    }
}

impl Drop for Texture {
    fn drop(&mut self) {
        let Ok(driver) = self.context.enter() else { return };
        let functions = driver.functions();
        let destroy = match self.reading {
            Some(_) => functions.cuTexObjectDestroy,
            None => functions.cuSurfObjectDestroy,
        };
        if let Some(destroy) = destroy {
            // SAFETY: ours, and never used again. A failed free cannot be handled here.
            let _ = unsafe { destroy(self.handle) };
        }
    }
}
