//! One program or library, ready to be asked.

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

/// Functions inlined into one another that are followed.
const MAX_INLINED: usize = 256;

/// What is known of a program or library.
pub struct Module {
    path: PathBuf,
    debug: Option<addr2line::Context<Reader>>,
    symbols: SymbolTable,
    /// Where code is. Debug information also speaks of functions that the linker left out, at address 0.
    code: Vec<Range<u64>>,
}

/// A function that an address is in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Function {
    /// Its name, demangled.
    pub name: String,
    /// Its source file; empty when not known.
    pub file: String,
    /// The line; 0 when not known.
    pub line: u32,
    /// The column; 0 when not known.
    pub column: u32,
}

/// How much a program or library says of its functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Extent {
    /// Files and lines too: it has debug information.
    Lines,
    /// The names of all functions: it has a symbol table.
    Functions,
    /// Only the names of those that it exports: it was stripped.
    Exports,
}

/// Why nothing is known of a program or library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unresolved {
    /// Its file is nowhere.
    Missing,
    /// There is a file, but not the one that ran.
    Another,
    /// It has neither debug information nor symbols.
    Bare,
}

impl Module {
    /// Finds the file that was at `path` with this build id (in hexadecimal, empty when it had none) and what belongs to
    /// it.
    ///
    /// # Errors
    ///
    /// When there is none, or none with any names.
    pub fn open(path: &Path, build_id: &str, sources: &Sources) -> Result<Self, Unresolved> {
        Self::open_below(Path::new("/"), path, build_id, sources)
    }

    /// The same of a process whose files are below `root`: those of a container.
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
                // Without a number a file of that name elsewhere proves nothing.
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

    /// Takes what a file has that was not found before.
    fn add(&mut self, path: &Path, sources: &Sources) {
        // It could be opened and read a moment ago.
        let Ok(file) = open_plain(path) else { return };
        let cache = ReadCache::new(file);
        let Ok(file) = object::File::parse(&cache) else {
            return;
        };
        if self.code.is_empty() {
            self.code = code(&file);
        }
        if self.debug.is_none() {
            self.debug = sections::context(&file, path, sources);
        }
        if self.symbols.is_empty() {
            self.symbols = SymbolTable::read(&file);
        }
    }

    /// The file as it was recorded.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How much the file says.
    pub fn extent(&self) -> Extent {
        match &self.debug {
            Some(_) => Extent::Lines,
            None if self.symbols.is_whole() => Extent::Functions,
            None => Extent::Exports,
        }
    }

    /// The functions at an address of the file's own numbering: the innermost inlined one first, none when nothing is
    /// known.
    pub fn functions(&self, address: u64) -> Vec<Function> {
        if !self.code.is_empty() && !self.code.iter().any(|code| code.contains(&address)) {
            return Vec::new();
        }
        let symbol = self.symbols.find(address);
        let mut functions = self.by_debug_information(address);
        match (functions.last_mut(), symbol) {
            // Code without a function of its own in the debug information, such as assembler, has its lines there. And
            // a name without what it stands in, as debug information of Rust has them, is whole in the symbol.
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
        // Whatever cannot be read ends the list: the symbol table may know more.
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

/// The sections that are executed. A file of debug information has them without their content.
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

/// Whether a symbol is mangled, and the name from the debug information is not the result of that.
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
