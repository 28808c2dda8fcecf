//! The symbol table of a file: the start and size of functions.

use object::{Object, ObjectSymbol, ReadRef, SymbolKind};

/// Functions by address.
#[derive(Debug, Default)]
pub(crate) struct SymbolTable {
    entries: Vec<Entry>,
    names: String,
    /// Whether it contains functions that are not exported.
    is_whole: bool,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    start: u64,
    /// 0 means up to the next function. Assembler code often has no size.
    size: u64,
    name: (u32, u32),
}

impl SymbolTable {
    /// Reads both symbol tables. Often only exported symbols are left.
    pub(crate) fn read<'f, R: ReadRef<'f>>(file: &object::File<'f, R>) -> Self {
        let mut table = Self {
            is_whole: file.symbols().next().is_some(),
            ..Self::default()
        };
        for symbol in file.symbols().chain(file.dynamic_symbols()) {
            let is_code = matches!(symbol.kind(), SymbolKind::Text | SymbolKind::Unknown);
            // An unreadable name counts as a missing one.
            let name = symbol.name().unwrap_or_default();
            if is_code && symbol.is_definition() && !name.is_empty() && symbol.address() != 0 {
                table.add(symbol.address(), symbol.size(), name);
            }
        }
        // Of several names, take one with a size. Of those, take the first in the file, which is not a later alias.
        table.entries.sort_by_key(|entry| (entry.start, entry.size == 0));
        table.entries.dedup_by_key(|entry| entry.start);
        table
    }

    fn add(&mut self, start: u64, size: u64, name: &str) {
        let from = self.names.len();
        // After 4 GiB of names, further symbols are left out.
        let (Ok(from), Ok(to)) = (u32::try_from(from), u32::try_from(from + name.len())) else {
            return;
        };
        self.names.push_str(name);
        self.entries.push(Entry {
            start,
            size,
            name: (from, to),
        });
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.is_whole
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Start, size and name of all functions, by their starts.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (u64, u64, &str)> {
        self.entries.iter().map(|entry| {
            let name = &self.names[entry.name.0 as usize..entry.name.1 as usize];
            (entry.start, entry.size, name)
        })
    }

    /// The name of the function at an address, as it is in the file.
    pub(crate) fn find(&self, address: u64) -> Option<&str> {
        let behind = self.entries.partition_point(|entry| entry.start <= address);
        let entry = self.entries.get(behind.checked_sub(1)?)?;
        let is_inside = entry.size == 0 || address - entry.start < entry.size;
        is_inside.then(|| &self.names[entry.name.0 as usize..entry.name.1 as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_belongs_to_the_function_around_it() {
        let mut table = SymbolTable::default();
        table.add(100, 10, "first");
        table.add(120, 0, "assembler");
        table.add(140, 5, "last");
        assert_eq!(table.find(99), None);
        assert_eq!(table.find(109), Some("first"));
        assert_eq!(table.find(110), None, "between two functions");
        assert_eq!(table.find(139), Some("assembler"), "it states no size");
        assert_eq!(table.find(145), None);
        assert!(!table.is_empty());
    }
}
