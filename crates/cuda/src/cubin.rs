//! What a cubin holds: the names of its kernels and variables.
//!
//! A cubin is an ELF file for the GPU. Kernels are functions in it; variables of
//! device code are objects in the sections `.nv.global*` and `.nv.constant*`.
//! Nothing in it is trusted: what does not fit is left out.

const HEADER: usize = 64;
const SECTION: usize = 64;
const SYMBOL: usize = 24;

/// `SHT_SYMTAB`.
const SYMBOL_TABLE: u32 = 2;
/// `STT_OBJECT` and `STT_FUNC`.
const OBJECT: u8 = 1;
const FUNCTION: u8 = 2;
/// `STO_CUDA_ENTRY`, in what ELF calls a symbol's visibility: a kernel.
const KERNEL: u8 = 0x10;
/// `SHN_UNDEF`: the symbol is defined elsewhere.
const UNDEFINED: u16 = 0;

/// The names in a cubin.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names<'c> {
    /// Kernels, and functions that they call.
    pub functions: Vec<&'c [u8]>,
    /// Those that can be launched.
    pub kernels: Vec<&'c [u8]>,
    /// Variables in global and constant memory.
    pub variables: Vec<&'c [u8]>,
}

/// The names in some code; none when it is not a cubin.
pub fn names(code: &[u8]) -> Names<'_> {
    read(code).unwrap_or_default()
}

/// `e_machine` of NVIDIA's GPUs.
const MACHINE: u16 = 190;

/// The compute capability that a cubin was compiled for: major and minor. None of what is no cubin, or of one whose
/// header we do not know.
pub fn capability(code: &[u8]) -> Option<(u32, u32)> {
    if !code.starts_with(b"\x7fELF\x02\x01") || short(code, 18)? != MACHINE {
        return None;
    }
    let flags = word(code, 48)?;
    // The version of the binary interface; the newer one has room for numbers from 100 on.
    let number = match code.get(8)? {
        7 => flags & 0xFF,
        8 => flags >> 8 & 0xFF,
        _ => return None,
    };
    (30..250).contains(&number).then_some((number / 10, number % 10))
}

struct Section<'c> {
    name: u32,
    kind: u32,
    content: &'c [u8],
    link: u32,
}

fn read(code: &[u8]) -> Option<Names<'_>> {
    if !code.starts_with(b"\x7fELF\x02\x01") || code.len() < HEADER {
        return None;
    }
    let table = usize::try_from(long(code, 40)?).ok()?;
    let (count, strings) = (usize::from(short(code, 60)?), usize::from(short(code, 62)?));
    let sections: Vec<Section<'_>> = (0..count)
        .map_while(|index| section(code, table.checked_add(index * SECTION)?))
        .collect();
    let section_names = sections.get(strings)?.content;
    let mut names = Names::default();
    for symbols in sections.iter().filter(|section| section.kind == SYMBOL_TABLE) {
        let Some(texts) = sections.get(symbols.link as usize) else {
            continue;
        };
        for symbol in symbols.content.chunks_exact(SYMBOL) {
            let name = text(texts.content, word(symbol, 0)?);
            let section = short(symbol, 6)?;
            let has_code = section != UNDEFINED;
            let of = sections.get(usize::from(section));
            match (name, symbol[4] & 15) {
                (Some(name), FUNCTION) => {
                    names.functions.push(name);
                    if symbol[5] & KERNEL != 0 && has_code {
                        names.kernels.push(name);
                    }
                }
                (Some(name), OBJECT)
                    if of
                        .and_then(|of| text(section_names, of.name))
                        .is_some_and(holds_variables) =>
                {
                    names.variables.push(name);
                }
                _ => {}
            }
        }
    }
    Some(names)
}

fn holds_variables(section: &[u8]) -> bool {
    section.starts_with(b".nv.global") || section.starts_with(b".nv.constant")
}

fn section(code: &[u8], at: usize) -> Option<Section<'_>> {
    let header = code.get(at..at.checked_add(SECTION)?)?;
    let (offset, size) = (long(header, 24)?, long(header, 32)?);
    let begin = usize::try_from(offset).ok()?;
    let end = begin.checked_add(usize::try_from(size).ok()?)?;
    Some(Section {
        name: word(header, 0)?,
        kind: word(header, 4)?,
        // One without content (memory that begins as zeros) claims a length and has no bytes.
        content: code.get(begin..end).unwrap_or_default(),
        link: word(header, 40)?,
    })
}

/// The text that begins at an offset; none when it is empty.
fn text(strings: &[u8], at: u32) -> Option<&[u8]> {
    let rest = strings.get(at as usize..)?;
    let end = rest.iter().position(|byte| *byte == 0)?;
    (end != 0).then(|| &rest[..end])
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with a kernel, a variable in each of three sections, and things that are neither.
    fn file() -> Vec<u8> {
        let section_names = b"\0.strtab\0.symtab\0.nv.global\0.nv.constant3\0.nv.shared.k\0.text.k\0";
        let at = |name: &[u8], all: &[u8]| {
            all.windows(name.len() + 2)
                .position(|window| {
                    window[0] == 0 && &window[1..=name.len()] == name && window[name.len() + 1] == 0
                })
                .map(|at| at as u32 + 1)
                .expect("in the list")
        };
        let names = b"\0kernel\0counter\0table\0tile\0label\0";
        let mut symbols = vec![0; SYMBOL];
        for (name, kind, section) in [
            (&b"kernel"[..], 0x12, 6u16),
            (b"counter", 0x11, 3),
            (b"table", 0x01, 4),
            (b"tile", 0x11, 5),
            (b"label", 0x00, 6),
        ] {
            symbols.extend(at(name, names).to_le_bytes());
            symbols.extend([kind, 0]);
            symbols.extend(section.to_le_bytes());
            symbols.extend([0; 16]);
        }
        let contents: [(&[u8], u32, &[u8], u32); 7] = [
            (b"", 0, &[], 0),
            (b".strtab", 3, names, 0),
            (b".symtab", 2, &symbols, 1),
            (b".nv.global", 8, &[], 0),
            (b".nv.constant3", 1, &[0; 4], 0),
            (b".nv.shared.k", 8, &[], 0),
            (b".text.k", 1, section_names, 0),
        ];
        let mut file = b"\x7fELF\x02\x01\x01".to_vec();
        file.resize(HEADER, 0);
        let mut headers = Vec::new();
        for (name, kind, content, link) in contents {
            let mut header = vec![0; SECTION];
            let name = if name.is_empty() {
                0
            } else {
                at(name, section_names)
            };
            header[..4].copy_from_slice(&name.to_le_bytes());
            header[4..8].copy_from_slice(&kind.to_le_bytes());
            header[24..32].copy_from_slice(&(file.len() as u64).to_le_bytes());
            header[32..40].copy_from_slice(&(content.len() as u64).to_le_bytes());
            header[40..44].copy_from_slice(&link.to_le_bytes());
            headers.extend(header);
            file.extend(content);
        }
        let table = file.len() as u64;
        file.extend(headers);
        file[40..48].copy_from_slice(&table.to_le_bytes());
        file[60..62].copy_from_slice(&7u16.to_le_bytes());
        // The sections' names lie, to make it simple, in the one for code.
        file[62..64].copy_from_slice(&6u16.to_le_bytes());
        file
    }

    #[test]
    fn kernels_and_variables_are_told_apart_from_the_rest() {
        let file = file();
        let names = names(&file);
        assert_eq!(names.functions, [b"kernel"]);
        assert_eq!(names.variables, [&b"counter"[..], b"table"]);
    }

    #[test]
    fn a_cubin_says_what_it_is_for() {
        let mut code = file();
        assert_eq!(capability(&code), None, "it is for no GPU");
        code[18..20].copy_from_slice(&MACHINE.to_le_bytes());
        code[8] = 7;
        code[48..52].copy_from_slice(&0x005A_055A_u32.to_le_bytes());
        assert_eq!(capability(&code), Some((9, 0)));
        code[8] = 8;
        code[48..52].copy_from_slice(&0x0600_7802_u32.to_le_bytes());
        assert_eq!(capability(&code), Some((12, 0)));
        code[8] = 9;
        assert_eq!(capability(&code), None);
        assert_eq!(capability(b".version 7.0"), None);
    }

    #[test]
    fn what_is_cut_or_spoilt_is_left_out() {
        let whole = file();
        for length in 0..whole.len() {
            let _ = names(&whole[..length]);
        }
        for at in 0..whole.len() {
            for byte in [0, 0x7F, 0xFF] {
                let mut spoilt = whole.clone();
                spoilt[at] = byte;
                let _ = names(&spoilt);
            }
        }
        assert_eq!(names(b"ptx"), Names::default());
    }
}
