//! Reads the debug information of a file.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use gimli::{Dwarf, EndianArcSlice, LittleEndian, SectionId};
use object::{CompressionFormat, Object, ObjectSection, ReadCache, ReadRef};

use crate::opening::open_plain;
use crate::sources::{Sources, hexadecimal};

pub(crate) type Reader = EndianArcSlice<LittleEndian>;

/// Larger decompressed sections are an error in the file, or an attack.
const MAX_SECTION: u64 = 16 << 30;

/// The debug information of a file. `None` if there is none, or if it is unusable.
pub(crate) fn context<'f, R: ReadRef<'f>>(
    file: &object::File<'f, R>,
    path: &Path,
    sources: &Sources,
) -> Option<addr2line::Context<Reader>> {
    file.section_by_name(".debug_info")
        .or_else(|| file.section_by_name(".debug_line"))?;
    let mut dwarf = dwarf(file);
    if let Ok(Some((link, build_id))) = file.gnu_debugaltlink() {
        let link = Path::new(std::str::from_utf8(link).ok()?); // names of such files are plain
        if let Some(shared) = sources.supplement(path, link, &hexadecimal(build_id)) {
            let cache = ReadCache::new(open_plain(&shared).ok()?);
            dwarf.set_sup(self::dwarf(&object::File::parse(&cache).ok()?));
        }
    }
    // If it cannot be read, the symbol table remains.
    addr2line::Context::from_dwarf(dwarf).ok()
}

fn dwarf<'f, R: ReadRef<'f>>(file: &object::File<'f, R>) -> Dwarf<Reader> {
    let load = |id: SectionId| -> Result<Reader, std::convert::Infallible> {
        let section = file.section_by_name(id.name());
        let bytes = section.and_then(|section| contents(&section)).unwrap_or_default();
        Ok(EndianArcSlice::new(Arc::from(bytes), LittleEndian))
    };
    match Dwarf::load(load) {
        Ok(dwarf) => dwarf,
    }
}

/// The decompressed bytes of a section. `None` if they cannot be read.
fn contents<'f>(section: &impl ObjectSection<'f>) -> Option<Vec<u8>> {
    let compressed = section.compressed_data().ok()?;
    let size = compressed.uncompressed_size;
    match compressed.format {
        CompressionFormat::None => Some(compressed.data.to_vec()),
        _ if size > MAX_SECTION => None,
        CompressionFormat::Zlib => read_all(flate2::read::ZlibDecoder::new(compressed.data), size),
        CompressionFormat::Zstandard => {
            read_all(zstd::stream::read::Decoder::new(compressed.data).ok()?, size)
        }
        _ => None,
    }
}

fn read_all(decoder: impl Read, size: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    // A truncated section gives nothing instead of a part.
    decoder.take(size).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 == size).then_some(bytes)
}
