//! Cubins: what a module looks like once it is "compiled". As on a GPU it is an ELF file with a symbol for each kernel;
//! unlike there it has no machine code but carries the PTX along, so that a recorded module can be loaded again.

/// `e_machine` of NVIDIA's GPUs.
const MACHINE_CUDA: u16 = 190;
const HEADER: usize = 64;
const SECTION: usize = 64;
const SYMBOL: usize = 24;
const PTX_SECTION: &str = ".nv_fake_ptx";
const NAMES: [&str; 6] = ["", ".shstrtab", ".strtab", ".symtab", ".nv.global", PTX_SECTION];

/// The cubin of a PTX text with these kernels and variables.
pub(crate) fn wrap(ptx: &str, kernels: &[&str], variables: &[&str]) -> Vec<u8> {
    let (names, name_offsets) = strings(&NAMES);
    let symbols: Vec<&str> = [""].iter().chain(kernels).chain(variables).copied().collect();
    let (symbol_names, symbol_offsets) = strings(&symbols);
    let mut table = vec![0; SYMBOL];
    for (index, &offset) in symbol_offsets.iter().enumerate().skip(1) {
        table.extend((offset as u32).to_le_bytes());
        // A global function in the section that holds the text, or an object in that of variables.
        table.extend(if index <= kernels.len() {
            [0x12, 0, 5, 0]
        } else {
            [0x11, 0, 4, 0]
        });
        table.extend([0; 16]);
    }
    let contents = [
        Vec::new(),
        names,
        symbol_names,
        table,
        Vec::new(),
        ptx.as_bytes().to_vec(),
    ];
    let kinds: [u32; 6] = [0, 3, 3, 2, 8, 1];
    let mut file = vec![0; HEADER];
    let mut sections = Vec::new();
    for (index, content) in contents.iter().enumerate() {
        file.resize(file.len().next_multiple_of(8), 0);
        let is_symbols = kinds[index] == 2;
        let mut section = Vec::with_capacity(SECTION);
        section.extend((name_offsets[index] as u32).to_le_bytes());
        section.extend(kinds[index].to_le_bytes());
        section.extend([0; 16]);
        section.extend((file.len() as u64).to_le_bytes());
        section.extend((content.len() as u64).to_le_bytes());
        // Symbols name their strings' section and the first that is not local.
        section.extend(if is_symbols { 2_u32 } else { 0 }.to_le_bytes());
        section.extend(u32::from(is_symbols).to_le_bytes());
        section.extend(8_u64.to_le_bytes());
        section.extend(if is_symbols { SYMBOL as u64 } else { 0 }.to_le_bytes());
        sections.extend(section);
        file.extend(content);
    }
    file.resize(file.len().next_multiple_of(8), 0);
    let header = header(file.len() as u64);
    file[..HEADER].copy_from_slice(&header);
    file.extend(sections);
    file
}

/// The PTX in a cubin that `wrap` made.
pub(crate) fn unwrap(file: &[u8]) -> Option<String> {
    let number = |at: usize| Some(u64::from_le_bytes(file.get(at..at + 8)?.try_into().ok()?) as usize);
    // The text is the last section.
    let section = number(40)? + (NAMES.len() - 1) * SECTION;
    let (offset, size) = (number(section + 24)?, number(section + 32)?);
    let text = file.get(offset..offset.checked_add(size)?)?;
    Some(String::from_utf8_lossy(text).into_owned())
}

/// How long a file is whose header this is, if it is a cubin: the sections' headers come last.
pub(crate) fn length(header: &[u8]) -> Option<usize> {
    if !header.starts_with(b"\x7fELF") || header.get(18..20)? != MACHINE_CUDA.to_le_bytes() {
        return None;
    }
    let sections = u64::from_le_bytes(header.get(40..48)?.try_into().ok()?) as usize;
    sections.checked_add(NAMES.len() * SECTION)
}

/// Bytes of a header, for who reads them from C.
pub(crate) const HEADER_BYTES: usize = HEADER;

fn header(sections: u64) -> Vec<u8> {
    let mut header = b"\x7fELF\x02\x01\x01\x33\x07".to_vec();
    header.resize(16, 0);
    header.extend(2_u16.to_le_bytes());
    header.extend(MACHINE_CUDA.to_le_bytes());
    header.extend(1_u32.to_le_bytes());
    header.extend([0; 16]);
    header.extend(sections.to_le_bytes());
    header.extend(0x005A_055A_u32.to_le_bytes());
    for number in [HEADER, 0, 0, SECTION, NAMES.len(), 1] {
        header.extend((number as u16).to_le_bytes());
    }
    header
}

/// Strings one after the other, each ended by a zero byte, and where each begins.
fn strings(all: &[&str]) -> (Vec<u8>, Vec<usize>) {
    let mut bytes = Vec::new();
    let mut offsets = Vec::new();
    for text in all {
        offsets.push(bytes.len());
        bytes.extend(text.as_bytes());
        bytes.push(0);
    }
    (bytes, offsets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cubin_gives_its_text_back() {
        let file = wrap(".version 7.0 // text", &["noop", "fill"], &["counter"]);
        assert_eq!(length(&file[..HEADER_BYTES]), Some(file.len()));
        assert_eq!(unwrap(&file).as_deref(), Some(".version 7.0 // text"));
        assert_eq!(length(b".version 7.0"), None);
    }
}
