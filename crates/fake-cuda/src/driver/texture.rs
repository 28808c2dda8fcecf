//! Arrays, textures and surfaces. An array is plain memory whose address the program does not get to know.

#![allow(unsafe_code, reason = "exports C functions")]

use std::sync::Arc;

use super::state::check_initialised;
use crate::call::api;
use crate::code::Code;
use crate::engine::context;
use crate::engine::memory::{self, Allocation, MemoryKind, Origin};
use crate::engine::registry::Registry;
use crate::engine::texture::{self, ARRAYS, Array, MIPMAPPED, Mipmapped, Shape, Source, Texture};
use crate::pointer::{In, Out};

/// `CUresourcetype`.
const ARRAY: u32 = 0;
const MIPMAPPED_ARRAY: u32 = 1;
const LINEAR: u32 = 2;

/// `CUDA_RESOURCE_DESC`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Resource {
    kind: u32,
    words: [u64; 16],
    flags: u32,
}

const _: () = assert!(size_of::<Resource>() == 144);

api! { Driver:
    fn cuArray3DCreate_v2 = 274 (pHandle: Out<usize>, pAllocateArray: In<Shape>) => {
        let shape = pAllocateArray.get().ok_or(Code::INVALID_VALUE)?;
        pHandle.put(make_array(shape)?)
    };
    fn cuArray3DGetDescriptor_v2 = 275 (pArrayDescriptor: Out<Shape>, hArray: usize)
        => ARRAYS.get(hArray).and_then(|array| pArrayDescriptor.put(array.shape));
    fn cuArrayDestroy = 89 (hArray: usize) => {
        let array = ARRAYS.remove(hArray)?;
        memory::free(array.base, &[Origin::Alloc]).map(|_| ())
    };
    fn cuMipmappedArrayCreate = 347 (pHandle: Out<usize>, pDesc: In<Shape>, numMipmapLevels: u32) => {
        let shape = pDesc.get().ok_or(Code::INVALID_VALUE)?;
        let levels = (0..numMipmapLevels).map(|level| make_array(shape.level(level))).collect::<Result<_, _>>()?;
        let whole = Arc::new(Mipmapped { levels });
        MIPMAPPED.add(whole.clone());
        pHandle.put(Registry::handle_of(&whole))
    };
    fn cuMipmappedArrayGetLevel = 348 (pLevelArray: Out<usize>, hMipmappedArray: usize, level: u32) => {
        let whole = MIPMAPPED.get(hMipmappedArray)?;
        pLevelArray.put(*whole.levels.get(level as usize).ok_or(Code::INVALID_VALUE)?)
    };
    fn cuMipmappedArrayDestroy = 349 (hMipmappedArray: usize) => {
        let whole = MIPMAPPED.remove(hMipmappedArray)?;
        for level in &whole.levels {
            memory::free(ARRAYS.remove(*level)?.base, &[Origin::Alloc])?;
        }
        Ok(())
    };
    fn cuTexObjectCreate = 339 (
        pTexObject: Out<u64>, pResDesc: In<Resource>, _pTexDesc: In<u8>, _pResViewDesc: In<u8>,
    ) => make(pTexObject, pResDesc);
    fn cuTexObjectDestroy = 340 (texObject: u64) => texture::remove(texObject);
    fn cuTexObjectGetResourceDesc = 341 (pResDesc: Out<Resource>, texObject: u64) => describe(pResDesc, texObject);
    fn cuSurfObjectCreate = 343 (pSurfObject: Out<u64>, pResDesc: In<Resource>) => make(pSurfObject, pResDesc);
    fn cuSurfObjectDestroy = 344 (surfObject: u64) => texture::remove(surfObject);
    fn cuSurfObjectGetResourceDesc = 345 (pResDesc: Out<Resource>, surfObject: u64) => describe(pResDesc, surfObject);
}

fn make_array(shape: Shape) -> Result<usize, Code> {
    check_initialised()?;
    let context = context::current()?;
    let base = memory::allocate(Allocation {
        base: 0,
        size: shape.bytes().ok_or(Code::INVALID_VALUE)?,
        kind: MemoryKind::Device,
        device: context.device.ordinal,
        context_id: context.id,
        origin: Origin::Alloc,
    })?;
    let array = Arc::new(Array { shape, base });
    ARRAYS.add(array.clone());
    Ok(Registry::handle_of(&array))
}

/// Textures and surfaces share their handles.
fn make(handle: Out<u64>, resource: In<Resource>) -> Result<(), Code> {
    check_initialised()?;
    let resource = resource.get().ok_or(Code::INVALID_VALUE)?;
    let (base, bytes) = match resource.kind {
        ARRAY => whole(resource.words[0] as usize)?,
        MIPMAPPED_ARRAY => {
            let levels = MIPMAPPED.get(resource.words[0] as usize)?;
            whole(*levels.levels.first().ok_or(Code::INVALID_VALUE)?)?
        }
        // Behind the address stand format and channels, then the size.
        LINEAR => (resource.words[0], resource.words[2]),
        _ => return Err(Code::INVALID_VALUE),
    };
    handle.put(texture::add(Texture {
        base,
        bytes,
        source: Source {
            kind: resource.kind,
            words: resource.words,
        },
    }))
}

fn whole(array: usize) -> Result<(u64, u64), Code> {
    let array = ARRAYS.get(array)?;
    Ok((array.base, array.shape.bytes().ok_or(Code::INVALID_VALUE)?))
}

fn describe(to: Out<Resource>, handle: u64) -> Result<(), Code> {
    let Source { kind, words } = texture::find(handle)?.source;
    to.put(Resource {
        kind,
        words,
        flags: 0,
    })
}
