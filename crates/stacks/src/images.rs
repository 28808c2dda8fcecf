//! The mapped program and libraries, with their unwind tables.
//!
//! Unwind tables are read from a second mapping of the file. The loader's mapping disappears when the library is
//! unloaded, possibly during an unwind. The second mapping is never unmapped. A file is mapped only once ([`files`]),
//! even if a program loads it repeatedly. An image that is loaded again at the same address is reused.

use std::ffi::CString;
use std::ops::ControlFlow;
use std::sync::Arc;

use gimli::{BaseAddresses, EhFrame, EndianSlice, LittleEndian};

mod files;
pub(crate) mod index;
mod lookup;

use index::Index;

use crate::loaded::each_loaded;

type Bytes = EndianSlice<'static, LittleEndian>;

/// All images of the process at one time.
#[derive(Debug, Default)]
pub struct Images {
    /// By address.
    list: Vec<Arc<Image>>,
    /// Unloaded images, latest last. They can be loaded again.
    gone: Vec<Arc<Image>>,
    generation: u32,
}

/// Maximum number of unloaded images to keep.
const MOST_GONE: usize = 256;

/// A mapped program or library.
pub struct Image {
    /// Start address.
    pub start: u64,
    /// End address.
    pub end: u64,
    /// The difference between addresses in memory and in the file.
    pub bias: u64,
    /// The file. Empty if there is none.
    pub path: CString,
    /// The build ID. Empty if there is none.
    pub build_id: Vec<u8>,
    tables: Option<Tables>,
}

/// The unwind tables of all functions.
pub(crate) struct Tables {
    pub(crate) index: Index,
    pub(crate) frames: EhFrame<Bytes>,
    pub(crate) bases: BaseAddresses,
}

impl Images {
    /// A list with only this image.
    pub(crate) fn of_one(image: Image) -> Self {
        Self {
            list: vec![Arc::new(image)],
            gone: Vec::new(),
            generation: 1,
        }
    }

    /// Lists the mapped images, and reuses known ones. The generation changes if an image was unloaded.
    pub fn list(before: Option<&Self>) -> Self {
        let mut found: Vec<ListedImage> = Vec::new();
        each_loaded(|object| {
            // SAFETY: the loader holds its lock while we look.
            found.extend(unsafe {
                ListedImage::read(object.bias(), object.path().to_owned(), object.headers())
            });
            ControlFlow::Continue(())
        });
        let known = |found: &ListedImage| before?.known(found);
        let mut list: Vec<Arc<Image>> = found
            .into_iter()
            .map(|found| known(&found).unwrap_or_else(|| Arc::new(Image::from_listed(found))))
            .collect();
        list.sort_by_key(|image| image.start);
        let generation = before.map_or(1, |before| {
            let all_there = before
                .list
                .iter()
                .all(|image| list.iter().any(|other| Arc::ptr_eq(image, other)));
            before.generation + u32::from(!all_there)
        });
        let gone = before
            .map(|before| before.gone_without(&list))
            .unwrap_or_default();
        Self {
            list,
            gone,
            generation,
        }
    }

    /// The known image, if it is mapped now or was loaded again.
    fn known(&self, found: &ListedImage) -> Option<Arc<Image>> {
        let mut images = self.list.iter().chain(&self.gone);
        images.find(|image| image.is(found)).map(Arc::clone)
    }

    /// The images that a new list lacks.
    fn gone_without(&self, list: &[Arc<Image>]) -> Vec<Arc<Image>> {
        let has_gone = |image: &&Arc<Image>| !list.iter().any(|other| Arc::ptr_eq(image, other));
        let images = self.gone.iter().chain(&self.list);
        let gone: Vec<Arc<Image>> = images.filter(has_gone).map(Arc::clone).collect();
        gone[gone.len().saturating_sub(MOST_GONE)..].to_vec()
    }

    /// Adds the image that contains `address` to the list. The address must be on the calling thread's own stack, so
    /// that the image cannot be unloaded. Takes no lock of the loader. Needs glibc 2.35 or later.
    pub fn with_image_at(&self, address: u64) -> Option<Self> {
        let found = lookup::find(address)?;
        let image = self
            .known(&found)
            .unwrap_or_else(|| Arc::new(Image::from_listed(found)));
        let mut list = self.list.clone();
        // The image that was there before is gone.
        let before = list.len();
        list.retain(|other| other.end <= image.start || other.start >= image.end);
        let generation = self.generation + u32::from(list.len() != before);
        let at = list.partition_point(|other| other.start < image.start);
        list.insert(at, image);
        let gone = self.gone_without(&list);
        Some(Self {
            list,
            gone,
            generation,
        })
    }

    /// The image that contains an address.
    #[inline]
    pub fn find(&self, address: u64) -> Option<&Image> {
        let behind = self.list.partition_point(|image| image.start <= address);
        let image = self.list.get(behind.checked_sub(1)?)?;
        (address < image.end).then_some(image)
    }

    /// The first return address of a stack whose image was replaced: a library was unloaded, and another was loaded
    /// there. For a stack of the calling thread. `None` if the C library cannot look up addresses.
    pub fn first_replaced(&self, return_addresses: &[u64]) -> Option<u64> {
        let mut last: Option<&Image> = None;
        let mut calls = return_addresses.iter().map(|address| address.wrapping_sub(1));
        calls.find(|&address| {
            let Some(image) = self.find(address) else {
                return false;
            };
            // Frames of the same image are usually adjacent.
            let is_looked_at = last.is_some_and(|last| std::ptr::eq(last, image));
            last = Some(image);
            !is_looked_at && lookup::find(address).is_some_and(|found| !image.is(&found))
        })
    }

    /// Whether both lists have the same images.
    pub fn is_same_as(&self, other: &Self) -> bool {
        self.list.len() == other.list.len()
            && self
                .list
                .iter()
                .zip(&other.list)
                .all(|(one, other)| Arc::ptr_eq(one, other))
    }

    /// All images by address.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Image>> {
        self.list.iter()
    }

    /// Changes when an image is unloaded. Cached results may refer to that image.
    #[inline]
    pub fn generation(&self) -> u32 {
        self.generation
    }
}

/// An image as listed by the loader.
struct ListedImage {
    bias: u64,
    path: CString,
    segments: Vec<Segment>,
    index: Option<Segment>,
    /// The first bytes of the index in memory, to recognize the file.
    sample: Vec<u8>,
    build_id: Vec<u8>,
}

/// A mapped segment of a file.
#[derive(Clone, Copy, Debug)]
struct Segment {
    /// The address without the bias.
    address: u64,
    memory_size: u64,
    file_offset: u64,
    file_size: u64,
}

impl Segment {
    fn holds(&self, address: u64) -> bool {
        address.wrapping_sub(self.address) < self.file_size
    }
}

/// The build ID in the notes of an image.
fn build_id(mut notes: &[u8]) -> Option<&[u8]> {
    const BUILD_ID: u32 = 3;
    loop {
        let word = |at: usize| Some(u32::from_le_bytes(*notes.get(at..)?.first_chunk()?));
        let (name, description, kind) = (word(0)? as usize, word(4)? as usize, word(8)?);
        let name_end = 12 + name.checked_next_multiple_of(4)?;
        let end = name_end.checked_add(description)?;
        if kind == BUILD_ID && notes.get(12..12 + name)? == b"GNU\0" {
            return notes.get(name_end..end);
        }
        notes = notes.get(end.checked_next_multiple_of(4)?..)?;
    }
}

impl Image {
    fn is(&self, found: &ListedImage) -> bool {
        self.bias == found.bias
            && self.start == found.start()
            && self.end == found.end()
            && self.build_id == found.build_id
            && (self.path == found.path || found.path.is_empty())
    }

    fn from_listed(found: ListedImage) -> Self {
        Self {
            start: found.start(),
            end: found.end(),
            bias: found.bias,
            tables: found.tables(),
            path: found.path,
            build_id: found.build_id,
        }
    }

    /// A synthetic image for fuzzing and tests.
    pub(crate) fn made_up(place: std::ops::Range<u64>, path: CString, tables: Option<Tables>) -> Self {
        Self {
            start: place.start,
            end: place.end,
            bias: place.start,
            path,
            build_id: Vec::new(),
            tables,
        }
    }

    pub(crate) fn tables(&self) -> Option<&Tables> {
        self.tables.as_ref()
    }
}

impl ListedImage {
    /// Reads the program headers of an image. `None` if it has no segment.
    ///
    /// # Safety
    ///
    /// The image is mapped with this bias, as its headers describe.
    unsafe fn read(bias: u64, path: CString, headers: &[libc::Elf64_Phdr]) -> Option<Self> {
        let mut image = Self {
            bias,
            path,
            segments: Vec::new(),
            index: None,
            sample: Vec::new(),
            build_id: Vec::new(),
        };
        let mut notes = Vec::new();
        for header in headers {
            let segment = Segment {
                address: header.p_vaddr,
                memory_size: header.p_memsz,
                file_offset: header.p_offset,
                file_size: header.p_filesz,
            };
            match header.p_type {
                libc::PT_LOAD => image.segments.push(segment),
                libc::PT_GNU_EH_FRAME => image.index = Some(segment),
                libc::PT_NOTE => notes.push(segment),
                _ => {}
            }
        }
        for note in notes {
            // SAFETY: the caller vouches for it.
            let note = unsafe { image.mapped(&note, usize::MAX) };
            if let Some(build_id) = build_id(note) {
                image.build_id = build_id.to_vec();
            }
        }
        if let Some(index) = image.index {
            // SAFETY: as above.
            image.sample = unsafe { image.mapped(&index, 64) }.to_vec();
        }
        (!image.segments.is_empty()).then_some(image)
    }

    /// The first bytes of a segment in memory. Empty if it is not mapped.
    ///
    /// # Safety
    ///
    /// The image stays mapped while the bytes are used.
    unsafe fn mapped(&self, part: &Segment, most: usize) -> &[u8] {
        let end = part.address.saturating_add(part.file_size);
        let is_mapped = part.file_size > 0
            && self
                .segments
                .iter()
                .any(|segment| segment.holds(part.address) && segment.holds(end - 1));
        if !is_mapped {
            return &[];
        }
        let address = self.bias.wrapping_add(part.address) as *const u8;
        // SAFETY: it lies in a segment that is mapped, as the caller vouches.
        unsafe { std::slice::from_raw_parts(address, (part.file_size as usize).min(most)) }
    }

    fn start(&self) -> u64 {
        let first = self.segments.iter().map(|segment| segment.address).min();
        self.bias.wrapping_add(first.unwrap_or(0) & !0xfff)
    }

    fn end(&self) -> u64 {
        let ends = self
            .segments
            .iter()
            .map(|segment| segment.address.saturating_add(segment.memory_size));
        self.bias.wrapping_add(ends.max().unwrap_or(0))
    }

    fn tables(&self) -> Option<Tables> {
        let index = self.index?;
        let segment = self
            .segments
            .iter()
            .find(|segment| segment.holds(index.address))?;
        let bytes = self.map(segment, index)?;
        let base = self.bias.wrapping_add(segment.address);
        let at = (index.address - segment.address) as usize;
        let index_address = self.bias.wrapping_add(index.address);
        // An unreadable index counts as a missing one. The unwinder then uses frame pointers.
        let index = Index::read(bytes.get(at..at + index.file_size as usize)?, index_address)?;
        let frames_address = index.frames();
        // The index contains the start of the frames, but not the end. They end in the same segment.
        let frames = bytes.get(usize::try_from(frames_address.checked_sub(base)?).ok()?..)?;
        Some(Tables {
            index,
            frames: EhFrame::new(frames, LittleEndian),
            bases: BaseAddresses::default().set_eh_frame(frames_address),
        })
    }

    /// The segment with the tables, from the file. `None` if the file was replaced since it was loaded.
    fn map(&self, segment: &Segment, index: Segment) -> Option<&'static [u8]> {
        let base = self.bias.wrapping_add(segment.address);
        // The program itself has no name. If a loader was started explicitly, the system reports the loader's file.
        if self.path.is_empty() || self.path.as_bytes() == VDSO || self.path.as_bytes() == OLD_VDSO {
            // SAFETY: the program and the kernel's own image are mapped as long as the process lives.
            return Some(unsafe {
                std::slice::from_raw_parts(base as *const u8, segment.file_size as usize)
            });
        }
        let bytes = files::map(&self.path, segment.file_offset, segment.file_size)?;
        let at = (index.address - segment.address) as usize;
        bytes.get(at..)?.starts_with(&self.sample).then_some(bytes)
    }
}

const VDSO: &[u8] = b"linux-vdso.so.1";
const OLD_VDSO: &[u8] = b"linux-gate.so.1";

impl std::fmt::Debug for Image {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Image")
            .field("start", &self.start)
            .field("end", &self.end)
            .field("path", &self.path)
            .field("has_tables", &self.tables.is_some())
            .finish_non_exhaustive()
    }
}
