//! The program and its libraries, as they are mapped, with the compiler's tables of each.
//!
//! Tables are read from the file, mapped once more by us: the loader's own mapping goes away with the library, and a walk
//! may be in the middle of it then. Our mapping is never taken back. A file is mapped once ([`files`]), however often a
//! program loads and unloads it, and an image that comes back to its place is the one that was learned before.

use std::ffi::{CStr, CString, c_int, c_void};
use std::sync::Arc;

use gimli::{BaseAddresses, EhFrame, EndianSlice, LittleEndian};

mod files;
pub(crate) mod index;
mod lookup;

use index::Index;

type Bytes = EndianSlice<'static, LittleEndian>;

/// All images of the process at one moment.
#[derive(Debug, Default)]
pub struct Images {
    /// By address.
    list: Vec<Arc<Image>>,
    /// Images that were unloaded, the latest last: they may come back.
    gone: Vec<Arc<Image>>,
    generation: u32,
}

/// Images that have gone which are kept in mind.
const MOST_GONE: usize = 256;

/// A program or library that is mapped.
pub struct Image {
    /// Where it begins.
    pub start: u64,
    /// Where it ends.
    pub end: u64,
    /// What is added to the file's own addresses.
    pub bias: u64,
    /// The file; empty for what has none.
    pub path: CString,
    /// The number that the linker gave it; empty without one.
    pub build_id: Vec<u8>,
    tables: Option<Tables>,
}

/// What the compiler says of every function.
pub(crate) struct Tables {
    pub(crate) index: Index,
    pub(crate) frames: EhFrame<Bytes>,
    pub(crate) bases: BaseAddresses,
}

impl Images {
    /// This one alone.
    pub(crate) fn of_one(image: Image) -> Self {
        Self {
            list: vec![Arc::new(image)],
            gone: Vec::new(),
            generation: 1,
        }
    }

    /// What is mapped now. Images that were known before are taken over; the list is another one only for those who
    /// compare, and its generation changes when one has gone.
    pub fn list(before: Option<&Self>) -> Self {
        let mut found: Vec<ListedImage> = Vec::new();
        // SAFETY: the function gets a pointer to the vector, which lives until the call is over.
        unsafe { libc::dl_iterate_phdr(Some(list), (&raw mut found).cast()) };
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

    /// The image that was learned before, if it is there now or has come back.
    fn known(&self, found: &ListedImage) -> Option<Arc<Image>> {
        let mut images = self.list.iter().chain(&self.gone);
        images.find(|image| image.is(found)).map(Arc::clone)
    }

    /// What has gone with another list in the place of this one.
    fn gone_without(&self, list: &[Arc<Image>]) -> Vec<Arc<Image>> {
        let has_gone = |image: &&Arc<Image>| !list.iter().any(|other| Arc::ptr_eq(image, other));
        let images = self.gone.iter().chain(&self.list);
        let gone: Vec<Arc<Image>> = images.filter(has_gone).map(Arc::clone).collect();
        gone[gone.len().saturating_sub(MOST_GONE)..].to_vec()
    }

    /// The list with the image that `address` is in added to it: for an address of the calling thread's own stack, whose
    /// image therefore stays. Takes no lock of the loader's; needs a C library that can look it up so (glibc 2.35).
    pub fn with_image_at(&self, address: u64) -> Option<Self> {
        let found = lookup::find(address)?;
        let image = self
            .known(&found)
            .unwrap_or_else(|| Arc::new(Image::from_listed(found)));
        let mut list = self.list.clone();
        // What stood there before has gone.
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

    /// The image that an address is in.
    #[inline]
    pub fn find(&self, address: u64) -> Option<&Image> {
        let behind = self.list.partition_point(|image| image.start <= address);
        let image = self.list.get(behind.checked_sub(1)?)?;
        (address < image.end).then_some(image)
    }

    /// The first of a stack's return addresses whose image has taken the place of the one that is known: a library was
    /// unloaded since, and another loaded. For a stack of the calling thread; nothing where the C library cannot tell.
    pub fn first_replaced(&self, return_addresses: &[u64]) -> Option<u64> {
        let mut last: Option<&Image> = None;
        let mut calls = return_addresses.iter().map(|address| address.wrapping_sub(1));
        calls.find(|&address| {
            let Some(image) = self.find(address) else {
                return false;
            };
            // Frames of one image mostly stand together.
            let is_looked_at = last.is_some_and(|last| std::ptr::eq(last, image));
            last = Some(image);
            !is_looked_at && lookup::find(address).is_some_and(|found| !image.is(&found))
        })
    }

    /// Whether both list the same images.
    pub fn is_same_as(&self, other: &Self) -> bool {
        self.list.len() == other.list.len()
            && self
                .list
                .iter()
                .zip(&other.list)
                .all(|(one, other)| Arc::ptr_eq(one, other))
    }

    /// All of them, by address.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Image>> {
        self.list.iter()
    }

    /// Changes when an image has gone: what was worked out before may belong to it.
    #[inline]
    pub fn generation(&self) -> u32 {
        self.generation
    }
}

/// An image as the loader lists it.
struct ListedImage {
    bias: u64,
    path: CString,
    segments: Vec<Segment>,
    index: Option<Segment>,
    /// How the index begins in memory, to know the file by.
    sample: Vec<u8>,
    build_id: Vec<u8>,
}

/// A part of a file that is mapped.
#[derive(Clone, Copy, Debug)]
struct Segment {
    /// Where, without the bias.
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

/// Adds an image to the list.
///
/// # Safety
///
/// `info` is what the loader gives, `data` a vector of [`ListedImage`].
unsafe extern "C" fn list(info: *mut libc::dl_phdr_info, _size: usize, data: *mut c_void) -> c_int {
    // SAFETY: the loader gives a valid pointer.
    let info = unsafe { &*info };
    // SAFETY: the caller of the loader gave it.
    let found = unsafe { &mut *data.cast::<Vec<ListedImage>>() };
    if info.dlpi_phdr.is_null() {
        return 0;
    }
    // SAFETY: the loader's table has so many entries.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    let path = if info.dlpi_name.is_null() {
        CString::default()
    } else {
        // SAFETY: a name of the loader ends in a zero.
        unsafe { CStr::from_ptr(info.dlpi_name) }.to_owned()
    };
    // SAFETY: the loader holds its lock while we look.
    found.extend(unsafe { ListedImage::read(info.dlpi_addr, path, headers) });
    0
}

/// The build id among an image's notes.
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

    /// One that no loader knows.
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
    /// What the program headers of an image say; none for one without a segment.
    ///
    /// # Safety
    ///
    /// The image is mapped with this bias, as its headers say.
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

    /// The beginning of a part of the image in memory; nothing when it is not mapped.
    ///
    /// # Safety
    ///
    /// The image is mapped as long as the bytes are looked at.
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
        // An index that cannot be read is as good as none: the walk falls back.
        let index = Index::read(bytes.get(at..at + index.file_size as usize)?, index_address)?;
        let frames_address = index.frames();
        // The index says where the frames begin, not where they end: they do so in the same segment.
        let frames = bytes.get(usize::try_from(frames_address.checked_sub(base)?).ok()?..)?;
        Some(Tables {
            index,
            frames: EhFrame::new(frames, LittleEndian),
            bases: BaseAddresses::default().set_eh_frame(frames_address),
        })
    }

    /// The segment that holds the tables, from the file, if that is still the one that was loaded.
    fn map(&self, segment: &Segment, index: Segment) -> Option<&'static [u8]> {
        let base = self.bias.wrapping_add(segment.address);
        // The program itself has no name. Its file may be another than the system tells, when a loader was told to run it.
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
