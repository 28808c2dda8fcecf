//! One program or library, opened for lookups.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use object::elf::SHF_EXECINSTR;
use object::{Object, ObjectSection, ReadCache, SectionFlags};

use crate::names::demangled;
use crate::opening::open_plain;
use crate::sections::{self, Reader};
use crate::sources::{Sources, below, build_id_of};
use crate::table::SymbolTable;

/// Maximum depth of inlined functions.
const MAX_INLINED: usize = 256;

/// The symbols of a program or library.
pub struct Module {
    path: PathBuf,
    debug: Option<addr2line::Context<Reader>>,
    symbols: SymbolTable,
    /// The address ranges of code. Debug information also contains functions that the linker removed, at address 0.
    code: Vec<Range<u64>>,
    /// Whether a part of the debug information is in another file, which several share.
    has_supplement: bool,
}

/// A function that contains an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Function {
    /// The demangled name.
    pub name: String,
    /// The source file. Empty if unknown.
    pub file: String,
    /// The line. 0 if unknown.
    pub line: u32,
    /// The column. 0 if unknown.
    pub column: u32,
}

/// How much a file reveals about its functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Extent {
    /// Names, files and lines: it has debug information.
    Lines,
    /// The names of all functions: it has a symbol table.
    Functions,
    /// Only the names of exported functions: it was stripped.
    Exports,
}

/// Why a file could not be resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unresolved {
    /// The file was not found.
    Missing,
    /// There is a file, but not the recorded one.
    Another,
    /// The file has no debug information and no symbols.
    Bare,
}

impl Module {
    /// Opens the file that was at `path` with this build ID (hexadecimal, empty if it had none), and its debug files.
    ///
    /// # Errors
    ///
    /// If there is no such file, or if it has no symbols.
    pub fn open(path: &Path, build_id: &str, sources: &Sources) -> Result<Self, Unresolved> {
        Self::open_below(Path::new("/"), path, build_id, sources)
    }

    /// Like [`Module::open`], for a process whose files are below `root`, such as in a container.
    ///
    /// # Errors
    ///
    /// As [`Module::open`].
    pub fn open_below(
        root: &Path,
        path: &Path,
        build_id: &str,
        sources: &Sources,
    ) -> Result<Self, Unresolved> {
        let mut module = Self {
            path: path.to_owned(),
            debug: None,
            symbols: SymbolTable::default(),
            code: Vec::new(),
            has_supplement: false,
        };
        let mut worst = Unresolved::Missing;
        let own = below(root, path);
        for candidate in sources.candidates(root, path, build_id) {
            match build_id_of(&candidate) {
                None => continue,
                Some(found) if !build_id.is_empty() && found != build_id => {
                    worst = Unresolved::Another;
                    continue;
                }
                // Without a build ID, a file with the same name elsewhere proves nothing.
                Some(_) if build_id.is_empty() && candidate != own => continue,
                Some(_) => {}
            }
            module.add(&candidate, sources);
            if module.debug.is_some() && !module.symbols.is_empty() {
                return Ok(module);
            }
            worst = Unresolved::Bare;
        }
        if module.debug.is_some() || !module.symbols.is_empty() {
            Ok(module)
        } else {
            Err(worst)
        }
    }

    /// Adds what a file has and what was not found before.
    fn add(&mut self, path: &Path, sources: &Sources) {
        // It was readable a moment ago.
        let Ok(file) = open_plain(path) else { return };
        let cache = ReadCache::new(file);
        let Ok(file) = object::File::parse(&cache) else {
            return;
        };
        if self.code.is_empty() {
            self.code = code(&file);
        }
        self.has_supplement |= file.gnu_debugaltlink().is_ok_and(|link| link.is_some());
        if self.debug.is_none() {
            self.debug = sections::context(&file, path, sources);
        }
        if self.symbols.is_empty() {
            self.symbols = SymbolTable::read(&file);
        }
    }

    /// The recorded path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How much the file reveals.
    pub fn extent(&self) -> Extent {
        match &self.debug {
            Some(_) => Extent::Lines,
            None if self.symbols.is_whole() => Extent::Functions,
            None => Extent::Exports,
        }
    }

    pub(crate) fn symbols(&self) -> &SymbolTable {
        &self.symbols
    }

    pub(crate) fn code(&self) -> &[Range<u64>] {
        &self.code
    }

    /// Whether its names depend only on the files where they are searched.
    pub(crate) fn is_cacheable(&self) -> bool {
        !self.has_supplement
    }

    /// The functions at an address relative to the file, innermost inlined function first. Empty if unknown.
    pub fn functions(&self, address: u64) -> Vec<Function> {
        if !self.code.is_empty() && !self.code.iter().any(|code| code.contains(&address)) {
            return Vec::new();
        }
        let symbol = self.symbols.find(address);
        let mut functions = self.by_debug_information(address);
        match (functions.last_mut(), symbol) {
            // Some code, such as assembler, has lines but no function in the debug information. And Rust's debug
            // information has names without their modules, which the symbol has.
            (Some(outermost), Some(symbol))
                if outermost.name.is_empty() || is_part(&outermost.name, symbol) =>
            {
                outermost.name = demangled(symbol);
            }
            (None, Some(symbol)) => functions.push(Function {
                name: demangled(symbol),
                ..Function::default()
            }),
            _ => {}
        }
        functions.retain(|function| !function.name.is_empty());
        functions
    }

    fn by_debug_information(&self, address: u64) -> Vec<Function> {
        let mut functions = Vec::new();
        let Some(debug) = &self.debug else {
            return functions;
        };
        // An unreadable entry ends the list. The symbol table may contain more.
        let Ok(mut frames) = debug.find_frames(address).skip_all_loads() else {
            return functions;
        };
        while let Ok(Some(frame)) = frames.next() {
            let name = frame.function.as_ref().and_then(|function| {
                let name = function.raw_name().ok()?; // not text
                Some(demangled(&name))
            });
            let location = frame.location.as_ref();
            functions.push(Function {
                name: name.unwrap_or_default(),
                file: location.and_then(|at| at.file).unwrap_or_default().to_owned(),
                line: location.and_then(|at| at.line).unwrap_or(0),
                column: location.and_then(|at| at.column).unwrap_or(0),
            });
            if functions.len() == MAX_INLINED {
                break;
            }
        }
        functions
    }
}

/// The executable sections. A debug file has them without contents.
fn code<'f>(file: &object::File<'f, impl object::ReadRef<'f>>) -> Vec<Range<u64>> {
    let mut code = Vec::new();
    for section in file.sections() {
        if let SectionFlags::Elf { sh_flags, .. } = section.flags()
            && sh_flags.contains(SHF_EXECINSTR)
        {
            code.push(section.address()..section.address().saturating_add(section.size()));
        }
    }
    code
}

/// Whether a symbol is mangled, and the name in the debug information is not its demangled form.
fn is_part(name: &str, symbol: &str) -> bool {
    let bare = name.split('<').next().unwrap_or(name);
    !bare.contains("::") && !bare.contains('(') && demangled(symbol) != symbol
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Module")
            .field("path", &self.path)
            .field("has_debug_information", &self.debug.is_some())
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Unresolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "file not found",
            Self::Another => "the file differs from the recorded one",
            Self::Bare => "no debug information and no symbols",
        })
    }
}
