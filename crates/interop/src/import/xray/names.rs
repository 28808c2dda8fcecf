//! Function names, from the instrumentation map of the program that was traced.
//!
//! The log numbers functions. The runtime counts them in the order of the map, one number for each run of entries of
//! the same function, from 1; counting again gives the same numbers. This holds for the program itself, not for
//! libraries that it loads.

use std::fs;
use std::path::Path;

use object::read::elf::ElfFile64;
use object::{Object, ObjectSection, ObjectSymbol, RelocationTarget};
use rustc_hash::FxHashMap;
use tracesmith_symbols::demangle_cpp;

use crate::error::Error;

/// One entry: address, function, kind, whether it is always instrumented, version, padding.
const ENTRY_BYTES: usize = 32;
/// Where the function's address is in an entry, and the version.
const FUNCTION_OFFSET: usize = 8;
const VERSION_OFFSET: usize = 18;
/// From this version on, addresses count from the field that they stand in.
const RELATIVE_VERSION: u8 = 2;

/// A program for the machines that XRay's runtime is for.
type Program<'f> = ElfFile64<'f, object::LittleEndian>;

/// The names of a program's functions by their XRay numbers.
#[derive(Debug, Default)]
pub(super) struct FunctionNames {
    names: Vec<String>,
}

impl FunctionNames {
    /// Reads the map of a program.
    pub(super) fn read(program: &Path) -> Result<Self, Error> {
        let bytes = fs::read(program).map_err(|source| Error::Open { source })?;
        Self::from_elf(&bytes).map_err(|problem| Error::Foreign {
            format: "xray",
            problem,
            position: program.display().to_string(),
        })
    }

    /// A function's name.
    pub(super) fn get(&self, function: i32) -> Option<&str> {
        let index = usize::try_from(function).ok()?.checked_sub(1)?;
        self.names.get(index).map(String::as_str)
    }

    fn from_elf(bytes: &[u8]) -> Result<Self, String> {
        let file =
            Program::parse(bytes).map_err(|error| format!("the program is no 64-bit ELF file: {error}"))?;
        let map = file
            .section_by_name("xray_instr_map")
            .ok_or("the program has no instrumentation map (built without -fxray-instrument, or stripped)")?;
        let entries = map
            .data()
            .map_err(|error| format!("the instrumentation map cannot be read: {error}"))?;
        if entries.len() % ENTRY_BYTES != 0 {
            return Err(format!(
                "the instrumentation map has {} bytes, no multiple of {ENTRY_BYTES}",
                entries.len()
            ));
        }
        let addends = addends(&file, map.address(), entries.len() as u64);
        let symbols = symbols(&file);
        let mut names = Vec::new();
        let mut last = None;
        for (index, entry) in entries.chunks_exact(ENTRY_BYTES).enumerate() {
            let field = map
                .address()
                .wrapping_add((index * ENTRY_BYTES + FUNCTION_OFFSET) as u64);
            let stored = entry[FUNCTION_OFFSET..]
                .first_chunk()
                .map_or(0, |bytes| u64::from_le_bytes(*bytes));
            let function = match stored {
                _ if entry[VERSION_OFFSET] >= RELATIVE_VERSION => stored.wrapping_add(field),
                0 => addends.get(&field).copied().unwrap_or(0),
                absolute => absolute,
            };
            if last != Some(function) {
                last = Some(function);
                names.push(name_of(&symbols, function));
            }
        }
        Ok(FunctionNames { names })
    }
}

/// What the loader would write into the map, for maps of absolute addresses in a program that can lie anywhere.
fn addends(file: &Program<'_>, start: u64, length: u64) -> FxHashMap<u64, u64> {
    let mut addends = FxHashMap::default();
    for (offset, relocation) in file.dynamic_relocations().into_iter().flatten() {
        let in_map = offset.wrapping_sub(start) < length;
        if in_map && relocation.target() == RelocationTarget::Absolute {
            addends.insert(offset, relocation.addend() as u64);
        }
    }
    addends
}

/// Names by address. Of several at one place the first in the table is taken, global ones before local ones.
fn symbols<'f>(file: &'f Program<'f>) -> FxHashMap<u64, &'f str> {
    let mut symbols: FxHashMap<u64, (bool, &str)> = FxHashMap::default();
    for symbol in file.symbols().chain(file.dynamic_symbols()) {
        let Ok(name) = symbol.name() else {
            continue;
        };
        if !symbol.is_definition() || name.is_empty() {
            continue;
        }
        let is_global = symbol.is_global();
        let known = symbols.entry(symbol.address()).or_insert((is_global, name));
        if is_global && !known.0 {
            *known = (true, name);
        }
    }
    symbols
        .into_iter()
        .map(|(address, (_, name))| (address, name))
        .collect()
}

fn name_of(symbols: &FxHashMap<u64, &str>, function: u64) -> String {
    match symbols.get(&function) {
        Some(name) => demangle_cpp(name).unwrap_or_else(|| (*name).to_owned()),
        None => format!("{function:#x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_files_are_refused_in_words() {
        for bytes in [&b""[..], b"\x7fELF", b"hello", &[0; 4096]] {
            let problem = FunctionNames::from_elf(bytes).expect_err("no ELF file");
            assert!(problem.contains("no 64-bit ELF file"), "{problem}");
        }
    }

    #[test]
    fn ids_count_from_one() {
        let names = FunctionNames {
            names: vec!["main".to_owned()],
        };
        assert_eq!(
            [i32::MIN, -1, 0, 1, 2].map(|id| names.get(id)),
            [None, None, None, Some("main"), None]
        );
    }
}
