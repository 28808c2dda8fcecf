//! Copies of rows and planes.

#![allow(unsafe_code, reason = "exports C functions")]

use super::copy::{Side, Wait, run, side};
use crate::call::api;
use crate::code::Code;
use crate::engine::memory::MemoryKind;
use crate::engine::operation::{Copy, Shape};
use crate::engine::texture::ARRAYS;
use crate::pointer::In;

/// `CUmemorytype`.
const HOST: u32 = 1;
const ARRAY: u32 = 3;

/// One end in `CUDA_MEMCPY2D`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct RowsEnd {
    x: usize,
    y: usize,
    kind: u32,
    host: u64,
    device: u64,
    array: usize,
    pitch: usize,
}

/// `CUDA_MEMCPY2D`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Rows {
    source: RowsEnd,
    destination: RowsEnd,
    width: usize,
    height: usize,
}

/// One end in `CUDA_MEMCPY3D`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct PlanesEnd {
    x: usize,
    y: usize,
    z: usize,
    level: usize,
    kind: u32,
    host: u64,
    device: u64,
    array: usize,
    reserved: usize,
    pitch: usize,
    height: usize,
}

/// `CUDA_MEMCPY3D`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Planes {
    source: PlanesEnd,
    destination: PlanesEnd,
    width: usize,
    height: usize,
    depth: usize,
}

const _: () = {
    assert!(size_of::<Rows>() == 128);
    assert!(size_of::<Planes>() == 200);
};

api! { Driver:
    fn cuMemcpy2D_v2 = 287 (pCopy: In<Rows>) => copy(planes_of(pCopy)?, 0, Wait::UntilDone);
    fn cuMemcpy2DUnaligned_v2 = 288 (pCopy: In<Rows>) => copy(planes_of(pCopy)?, 0, Wait::UntilDone);
    fn cuMemcpy2DAsync_v2 = 289 (pCopy: In<Rows>, hStream: usize) => copy(planes_of(pCopy)?, hStream, Wait::No);
    fn cuMemcpy3D_v2 = 290 (pCopy: In<Planes>)
        => copy(pCopy.get().ok_or(Code::INVALID_VALUE)?, 0, Wait::UntilDone);
    fn cuMemcpy3DAsync_v2 = 291 (pCopy: In<Planes>, hStream: usize)
        => copy(pCopy.get().ok_or(Code::INVALID_VALUE)?, hStream, Wait::No);
}

/// Rows are planes of which there is one.
fn planes_of(rows: In<Rows>) -> Result<Planes, Code> {
    let rows = rows.get().ok_or(Code::INVALID_VALUE)?;
    let end = |end: RowsEnd| PlanesEnd {
        x: end.x,
        y: end.y,
        kind: end.kind,
        host: end.host,
        device: end.device,
        array: end.array,
        pitch: end.pitch,
        ..PlanesEnd::default()
    };
    Ok(Planes {
        source: end(rows.source),
        destination: end(rows.destination),
        width: rows.width,
        height: rows.height,
        depth: 1,
    })
}

fn copy(planes: Planes, stream: usize, wait: Wait) -> Result<(), Code> {
    run(operation(&planes, wait)?, stream, wait)
}

/// What a copy of planes does.
pub(crate) fn operation(planes: &Planes, wait: Wait) -> Result<Copy, Code> {
    let (width, height, depth) = (planes.width, planes.height, planes.depth);
    let end = |end: &PlanesEnd| {
        let mut pitch = if end.pitch == 0 { width } else { end.pitch };
        let mut rows = if end.height == 0 { height } else { end.height };
        let mut base = if end.kind == HOST { end.host } else { end.device };
        if end.kind == ARRAY {
            let array = ARRAYS.get(end.array)?;
            let (row, height) = array.shape.rows();
            (pitch, rows, base) = (row as usize, height as usize, array.base);
        }
        if pitch < width {
            return Err(Code::INVALID_VALUE);
        }
        let first = base + (end.x + (end.z * rows + end.y) * pitch) as u64;
        let extent = (depth.max(1) - 1) * rows * pitch + (height.max(1) - 1) * pitch + width;
        let (address, kind) = side(Side::Any(first), extent)?;
        Ok((address, kind, pitch as u64, rows as u64))
    };
    let (source, source_kind, source_pitch, source_rows) = end(&planes.source)?;
    let (destination, destination_kind, destination_pitch, destination_rows) = end(&planes.destination)?;
    Ok(Copy {
        destination,
        source,
        size: (width * height * depth) as u64,
        destination_kind,
        source_kind,
        is_async: wait == Wait::No,
        peers: None,
        shape: Some(Shape {
            pitches: [destination_pitch, source_pitch],
            heights: [destination_rows, source_rows],
            width: width as u64,
            height: height as u64,
            depth: depth as u64,
        }),
    })
}

impl Planes {
    /// A copy as the driver describes one that a graph makes.
    pub(crate) fn of(copy: &Copy) -> Self {
        let shape = copy.shape.unwrap_or(Shape {
            pitches: [copy.size; 2],
            heights: [1; 2],
            width: copy.size,
            height: 1,
            depth: 1,
        });
        let end = |address: u64, kind: MemoryKind, index: usize| PlanesEnd {
            kind: if kind == MemoryKind::Pageable { HOST } else { 2 },
            host: if kind == MemoryKind::Pageable { address } else { 0 },
            device: if kind == MemoryKind::Pageable { 0 } else { address },
            pitch: shape.pitches[index] as usize,
            height: shape.heights[index] as usize,
            ..PlanesEnd::default()
        };
        Self {
            source: end(copy.source, copy.source_kind, 1),
            destination: end(copy.destination, copy.destination_kind, 0),
            width: shape.width as usize,
            height: shape.height as usize,
            depth: shape.depth as usize,
        }
    }
}
