//! The memory that ships: mapped or on the heap, reached through one pointer.
#![allow(
    unsafe_code,
    reason = "memory shared with another process is reached by pointer; \
              all such access is in this file"
)]

use std::{
    alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error},
    marker::PhantomData,
    ptr::{self, NonNull},
};

use super::Access;
use crate::{
    config::Capacity,
    layout::{HEADER_BYTES, Header},
    sync::{AtomicU64, Ordering},
};

/// Below this length bytes are copied out in the pieces they were stored in.
/// `memcpy` would load other pieces, which the processor cannot forward from
/// its store buffer, so a record read right after it was written would wait.
const SMALL_BYTES: usize = 128 + 8;

/// Header and data area, for as long as it lives.
pub(crate) struct Region {
    base: NonNull<u8>,
    capacity: Capacity,
    backing: Backing,
}

enum Backing {
    Heap(Layout),
    Mapping,
}

// SAFETY: the header is atomics, and the data area is copied from and to by one
// producer and one consumer whose positions keep them apart (`Access::Apart`)
// or by relaxed atomics (`Access::Contended`). The pointer itself is freed once.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// Zeroed memory within this process.
    pub(crate) fn on_heap(capacity: Capacity) -> Self {
        let layout = Layout::from_size_align(Self::total_bytes(capacity), HEADER_BYTES)
            .expect("a gigabyte and a page is a valid layout");
        // SAFETY: the layout holds at least the header page, so it is not empty.
        let base = unsafe { alloc_zeroed(layout) };
        let Some(base) = NonNull::new(base) else {
            handle_alloc_error(layout)
        };
        Self {
            base,
            capacity,
            backing: Backing::Heap(layout),
        }
    }

    /// Takes over a mapping.
    ///
    /// # Safety
    ///
    /// `base` is a shared, writable mapping of `total_bytes(capacity)` bytes
    /// that cannot shrink, page-aligned, and nobody else unmaps it.
    pub(crate) unsafe fn from_mapping(base: NonNull<u8>, capacity: Capacity) -> Self {
        Self {
            base,
            capacity,
            backing: Backing::Mapping,
        }
    }

    /// Header page and data area.
    pub(crate) fn total_bytes(capacity: Capacity) -> usize {
        HEADER_BYTES + capacity.bytes() as usize
    }

    #[inline]
    pub(crate) fn header(&self) -> &Header {
        let header = self.base.cast::<Header>();
        // SAFETY: the memory is page-aligned, longer than a header, lives as
        // long as self, and any bytes are a valid header: it is all atomics.
        unsafe { header.as_ref() }
    }

    #[inline]
    pub(crate) fn data(&self, access: Access) -> Data<'_> {
        // SAFETY: the memory is longer than its header page.
        let base = unsafe { self.base.add(HEADER_BYTES) };
        Data {
            base,
            capacity: self.capacity.bytes() as usize,
            access,
            region: PhantomData,
        }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        match self.backing {
            // SAFETY: allocated in `on_heap` with this layout.
            Backing::Heap(layout) => unsafe { dealloc(self.base.as_ptr(), layout) },
            Backing::Mapping => {
                let length = Self::total_bytes(self.capacity);
                // SAFETY: `from_mapping` was promised that it is ours to unmap.
                let unmapped = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), length) };
                // It fails only for arguments that mmap would have refused.
                debug_assert!(unmapped.is_ok());
            }
        }
    }
}

/// The data area. Positions count from the ring's beginning and are reduced to
/// offsets here, so no position can reach outside.
#[derive(Clone, Copy)]
pub(crate) struct Data<'r> {
    base: NonNull<u8>,
    capacity: usize,
    access: Access,
    region: PhantomData<&'r Region>,
}

impl Data<'_> {
    /// Writes a frame's header at `position` and its payload behind it.
    ///
    /// The frame fits the ring, `position` is a multiple of eight, and the
    /// producer owns those bytes.
    #[inline]
    pub(crate) fn write_frame(self, position: u64, header: u64, payload: &[u8]) {
        match self.access {
            Access::Apart => {
                let offset = self.offset(position);
                self.copy_in(offset, &header.to_ne_bytes());
                // At the very end the payload begins at the capacity, with no
                // byte before the wrap.
                let body = offset + 8;
                if payload.len() <= self.capacity - body {
                    self.copy_in(body, payload);
                } else {
                    self.copy_in_wrapped(body, payload);
                }
            }
            Access::Contended => self.store_frame(position, header, payload),
        }
    }

    /// Has the lines at `position` fetched for writing, while the caller does
    /// something else. The consumer has read what was there, so they are in its
    /// cache, and a push that comes upon them takes twice as long (bench `ring`).
    #[inline]
    pub(crate) fn expect(self, position: u64) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        {
            const LINE: usize = 64;
            let offset = self.offset(position);
            for line in [offset, (offset + LINE) & (self.capacity - 1)] {
                let address = self.base.as_ptr().wrapping_add(line);
                // SAFETY: a hint. It reads and writes nothing, and a processor that does not know it does nothing.
                unsafe {
                    std::arch::asm!("prefetchw [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
                }
            }
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        let _ = position;
    }

    /// The word at `position`, a multiple of eight.
    pub(crate) fn load_word(self, position: u64) -> u64 {
        self.word(position).load(Ordering::Relaxed)
    }

    /// Copies out what lies at `position`. Both it and the length are multiples
    /// of eight; the length is at most the capacity.
    #[inline]
    pub(crate) fn copy_out(self, position: u64, out: &mut [u8]) {
        let offset = self.offset(position);
        let fits = out.len() <= self.capacity - offset;
        match self.access {
            Access::Apart if fits && out.len() < SMALL_BYTES => self.copy_out_small(offset, out),
            Access::Apart if fits => self.copy_out_at(offset, out),
            Access::Apart => self.copy_out_wrapped(offset, out),
            Access::Contended => self.load_out(position, out),
        }
    }

    /// Reduces a position to a multiple-of-eight offset below the capacity.
    #[inline]
    fn offset(self, position: u64) -> usize {
        position as usize & (self.capacity - 1) & !7
    }

    #[inline]
    fn copy_in(self, offset: usize, bytes: &[u8]) {
        debug_assert!(offset + bytes.len() <= self.capacity);
        // SAFETY: offset is below the capacity.
        let to = unsafe { self.base.add(offset) };
        // SAFETY: both callers checked that offset + length is within the data
        // area; the source is memory of our own, so they do not overlap. Until
        // the position is published the consumer does not read these bytes.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to.as_ptr(), bytes.len()) };
    }

    #[cold]
    fn copy_in_wrapped(self, offset: usize, bytes: &[u8]) {
        let (first, second) = bytes.split_at(self.capacity - offset);
        self.copy_in(offset, first);
        self.copy_in(0, second);
    }

    /// Copies a header word and then powers of two, largest first: the pieces
    /// in which a small record is stored.
    #[inline]
    fn copy_out_small(self, offset: usize, out: &mut [u8]) {
        let (mut offset, mut out) = (offset, out);
        for piece in [8, 64, 32, 16, 8] {
            if out.len() >= piece {
                let (now, rest) = out.split_at_mut(piece);
                self.copy_out_at(offset, now);
                offset += piece;
                out = rest;
            }
        }
    }

    #[inline]
    fn copy_out_at(self, offset: usize, out: &mut [u8]) {
        // SAFETY: offset is at most the capacity.
        let from = unsafe { self.base.add(offset) };
        // SAFETY: the caller checked that offset + length is within the data
        // area. A producer that keeps the protocol does not write these bytes
        // until their room is released; one that does not can only change what
        // arrives in `out`, where any bytes are valid.
        unsafe { ptr::copy_nonoverlapping(from.as_ptr(), out.as_mut_ptr(), out.len()) };
    }

    #[cold]
    fn copy_out_wrapped(self, offset: usize, out: &mut [u8]) {
        let (first, second) = out.split_at_mut(self.capacity - offset);
        self.copy_out_at(offset, first);
        self.copy_out_at(0, second);
    }

    #[inline(never)]
    fn load_out(self, position: u64, out: &mut [u8]) {
        for (index, word) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            *word = self.load_word(position + index as u64 * 8).to_ne_bytes();
        }
    }

    fn store_frame(self, position: u64, header: u64, payload: &[u8]) {
        self.word(position).store(header, Ordering::Relaxed);
        let (words, rest) = payload.as_chunks::<8>();
        let mut position = position + 8;
        for word in words {
            self.word(position)
                .store(u64::from_ne_bytes(*word), Ordering::Relaxed);
            position += 8;
        }
        if !rest.is_empty() {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            self.word(position)
                .store(u64::from_ne_bytes(word), Ordering::Relaxed);
        }
    }

    #[inline]
    fn word(&self, position: u64) -> &AtomicU64 {
        // SAFETY: the offset is below the capacity.
        let at = unsafe { self.base.add(self.offset(position)) };
        // SAFETY: the data area is page-aligned and the offset a multiple of
        // eight below a capacity that is one too, so a whole aligned word lies
        // there, and it lives as long as the region.
        unsafe { AtomicU64::from_ptr(at.as_ptr().cast()) }
    }
}
