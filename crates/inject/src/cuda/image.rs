//! What a loaded library says of itself: the tables that the loader reads.

use std::ffi::{CStr, c_char, c_void};
use std::ops::{ControlFlow, Range};
use std::sync::{Mutex, OnceLock};

use tracesmith_stacks::loaded::{LoadedObject, each_loaded};

use crate::guard::lock;

/// `Elf64_Dyn`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Dynamic {
    tag: i64,
    value: u64,
}

/// `Elf64_Sym`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Symbol {
    name: u32,
    pub(super) info: u8,
    other: u8,
    section: u16,
    pub(super) value: u64,
    size: u64,
}

const _: () = assert!(size_of::<Symbol>() == 24);

/// `Elf64_Rela`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Relocation {
    pub(super) offset: u64,
    pub(super) info: u64,
    addend: i64,
}

const _: () = assert!(size_of::<Relocation>() == 24);

const DT_PLTRELSZ: i64 = 2;
const DT_HASH: i64 = 4;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_RELA: i64 = 7;
const DT_RELASZ: i64 = 8;
const DT_JMPREL: i64 = 23;
/// How many entries at the beginning of `DT_RELA` name no symbol.
const DT_RELACOUNT: i64 = 0x6fff_fff9;

/// `PT_GNU_RELRO`.
const READ_ONLY: u32 = 0x6474_e552;

/// Bytes of a page of this machine: a Grace machine may have pages of 64 KiB.
fn page() -> u64 {
    static PAGE: OnceLock<u64> = OnceLock::new();
    // SAFETY: it has no conditions.
    let size = || u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
    *PAGE.get_or_init(size)
}

/// One word at a time: who seals a page may not do so while another thread writes to it.
static WRITING: Mutex<()> = Mutex::new(());

/// One library, as it is loaded.
pub(super) struct Image<'l> {
    object: &'l LoadedObject<'l>,
    strings: u64,
    symbols: u64,
    hash: u64,
    /// Where relocations that may name a symbol lie, and how many bytes they take.
    relocations: [(u64, u64); 2],
    /// How many relocations at the beginning of the first table name none.
    relative: u64,
}

/// Calls `visit` for each library of the process.
pub(super) fn each(mut visit: impl FnMut(&Image<'_>)) {
    each_loaded(|object| {
        // SAFETY: the loader visits libraries that are loaded.
        if let Some(image) = unsafe { Image::new(object) } {
            visit(&image);
        }
        ControlFlow::Continue(())
    });
}

impl<'l> Image<'l> {
    /// # Safety
    ///
    /// `object` is loaded.
    unsafe fn new(object: &'l LoadedObject<'l>) -> Option<Self> {
        let mut image = Self {
            object,
            strings: 0,
            symbols: 0,
            hash: 0,
            relocations: [(0, 0); 2],
            relative: 0,
        };
        let dynamic = image.segment(libc::PT_DYNAMIC)?;
        let mut entry = dynamic.start as *const Dynamic;
        loop {
            // SAFETY: the section ends with an entry of tag 0.
            let Dynamic { tag, value } = unsafe { entry.read() };
            match tag {
                0 => break,
                DT_HASH => image.hash = image.absolute(value),
                DT_STRTAB => image.strings = image.absolute(value),
                DT_SYMTAB => image.symbols = image.absolute(value),
                DT_RELA => image.relocations[0].0 = image.absolute(value),
                DT_RELASZ => image.relocations[0].1 = value,
                DT_JMPREL => image.relocations[1].0 = image.absolute(value),
                DT_PLTRELSZ => image.relocations[1].1 = value,
                DT_RELACOUNT => image.relative = value,
                _ => {}
            }
            entry = entry.wrapping_add(1);
        }
        // A large library has a million of those, which would be read from its file for nothing.
        let skipped = (image.relative * size_of::<Relocation>() as u64).min(image.relocations[0].1);
        image.relocations[0].0 += skipped;
        image.relocations[0].1 -= skipped;
        (image.strings != 0 && image.symbols != 0).then_some(image)
    }

    /// glibc relocates these entries in place, other loaders do not.
    fn absolute(&self, value: u64) -> u64 {
        if value < self.base() {
            value + self.base()
        } else {
            value
        }
    }

    /// What is added to the addresses in its tables.
    pub(super) fn base(&self) -> u64 {
        self.object.bias()
    }

    /// Its file, under the name that was passed to the loader; empty for the program itself.
    pub(super) fn path(&self) -> &CStr {
        self.object.path()
    }

    fn place(&self, segment: &libc::Elf64_Phdr) -> Range<u64> {
        let start = self.base() + segment.p_vaddr;
        start..start + segment.p_memsz
    }

    fn segment(&self, kind: u32) -> Option<Range<u64>> {
        let found = self
            .object
            .headers()
            .iter()
            .find(|segment| segment.p_type == kind)?;
        Some(self.place(found))
    }

    /// Whether an address is the library's.
    pub(super) fn holds(&self, address: u64) -> bool {
        let loaded = |segment: &&libc::Elf64_Phdr| segment.p_type == libc::PT_LOAD;
        self.object
            .headers()
            .iter()
            .filter(loaded)
            .any(|segment| self.place(segment).contains(&address))
    }

    /// Where it lies in memory, from its first to its last segment.
    pub(super) fn extent(&self) -> Range<u64> {
        let loaded = |segment: &&libc::Elf64_Phdr| segment.p_type == libc::PT_LOAD;
        let places = || {
            self.object
                .headers()
                .iter()
                .filter(loaded)
                .map(|segment| self.place(segment))
        };
        let start = places().map(|place| place.start).min().unwrap_or(0);
        start..places().map(|place| place.end).max().unwrap_or(0)
    }

    /// The memory that it writes to.
    pub(super) fn writable(&self) -> impl Iterator<Item = Range<u64>> {
        let is_writable = |segment: &&libc::Elf64_Phdr| {
            segment.p_type == libc::PT_LOAD && segment.p_flags & libc::PF_W != 0
        };
        let found = self.object.headers().iter().filter(is_writable);
        found.map(|segment| self.place(segment))
    }

    /// Whether the loader has made an address read-only once it had written there.
    pub(super) fn is_sealed(&self, address: u64) -> bool {
        // Only whole pages are.
        self.segment(READ_ONLY).is_some_and(|sealed| {
            let whole = |address: u64| address & !(page() - 1);
            (whole(sealed.start)..whole(sealed.end)).contains(&address)
        })
    }

    /// How many symbols there are; 0 where the library does not say.
    pub(super) fn symbol_count(&self) -> usize {
        if self.hash == 0 {
            return 0;
        }
        // The table's second word.
        let count = (self.hash as *const u32).wrapping_add(1);
        // SAFETY: the loader has read it too.
        unsafe { count.read() as usize }
    }

    /// A symbol's entry.
    pub(super) fn symbol(&self, at: usize) -> *mut Symbol {
        (self.symbols as *mut Symbol).wrapping_add(at)
    }

    /// A symbol's name.
    pub(super) fn name(&self, symbol: &Symbol) -> &CStr {
        let text = (self.strings + u64::from(symbol.name)) as *const c_char;
        // SAFETY: a text of the library's string table.
        unsafe { CStr::from_ptr(text) }
    }

    /// What the loader wrote into the library.
    pub(super) fn relocations(&self) -> impl Iterator<Item = Relocation> {
        self.relocations.into_iter().flat_map(|(start, bytes)| {
            let count = if start == 0 {
                0
            } else {
                bytes as usize / size_of::<Relocation>()
            };
            let entry = move |at| (start as *const Relocation).wrapping_add(at);
            // SAFETY: within a table that the loader has read.
            (0..count).map(move |at| unsafe { entry(at).read() })
        })
    }
}

/// Writes one word that others may read meanwhile, in a page that they can only read. A system that forbids it leaves
/// it as it was.
///
/// # Safety
///
/// `word` lies in a mapped page that is private to this process and may only be read.
pub(super) unsafe fn write_sealed(word: *mut u64, value: u64) {
    let _one_at_a_time = lock(&WRITING);
    let start = word as u64 & !(page() - 1);
    let protect = |access| {
        // SAFETY: the page of the word; others in it lose nothing.
        unsafe { libc::mprotect(start as *mut c_void, page() as usize, access) }
    };
    if protect(libc::PROT_READ | libc::PROT_WRITE) != 0 {
        return;
    }
    // SAFETY: writable now; one aligned word, so who looks meanwhile sees the
    // old or the new one.
    unsafe { word.write_volatile(value) };
    // It is still readable if this fails.
    protect(libc::PROT_READ);
}
