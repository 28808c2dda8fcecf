//! Variables of device code: no parameter points to them, and a kernel uses them
//! all the same.
//!
//! Which ones a module has is read from its code when it is loaded. What they
//! hold is read before the first kernel of the module is launched. Code that was
//! loaded before anyone watched is told within that launch: see
//! [`stalled`](super::stalled).

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    ffi::{CStr, CString},
    ops::Range,
};

use tracesmith_cuda::cubin;
use tracesmith_wire::record::Buffer;
use xxhash_rust::xxh3::xxh3_64;

use super::{
    PIECE_BYTES, Since, State,
    memory::{BEGIN, END, Kind},
    modules::Module,
};

/// Variables that are known, and the code that they are of.
#[derive(Default)]
pub(super) struct Variables {
    /// Code that was loaded and has variables.
    code: Vec<Code>,
    /// Which of it has a function with this hash of a name.
    with_function: HashMap<u64, Vec<usize>>,
    /// Modules that were looked at, by their ids.
    seen: HashSet<u64>,
    /// Modules of kernels that are being launched and whose code is not known.
    awaited: Vec<Awaited>,
    /// By their addresses.
    known: BTreeMap<u64, Variable>,
}

struct Code {
    variables: Vec<CString>,
}

struct Awaited {
    module: Module,
    /// The hash of the kernel's name.
    function: u64,
    context: u32,
}

struct Variable {
    bytes: u64,
    name: CString,
    module: Module,
    context: u32,
    is_read: bool,
}

impl Variables {
    /// Code was loaded, or is told now.
    pub(super) fn loaded(&mut self, code: &[u8]) {
        let names = cubin::names(code);
        let place = self.code.len();
        for function in names.functions {
            self.with_function
                .entry(xxh3_64(function))
                .or_default()
                .push(place);
        }
        let variables = names
            .variables
            .into_iter()
            .filter_map(|name| CString::new(name).ok());
        self.code.push(Code {
            variables: variables.collect(),
        });
    }

    /// Modules are gone, and their variables with them.
    pub(super) fn unloaded(&mut self, handles: &[u64]) {
        self.known
            .retain(|_, variable| !handles.contains(&variable.module.handle));
        self.awaited
            .retain(|awaited| !handles.contains(&awaited.module.handle));
    }

    /// Whether code was told that has a function of this name.
    pub(super) fn knows(&self, function: &[u8]) -> bool {
        self.with_function.contains_key(&xxh3_64(function))
    }

    /// Whether code is not known of which a kernel is being launched.
    pub(super) fn is_awaited(&self) -> bool {
        let known = |awaited: &Awaited| self.with_function.contains_key(&awaited.function);
        !self.awaited.iter().all(known)
    }

    /// The addresses that variables lie between.
    pub(super) fn span(&self) -> Option<Range<u64>> {
        let (first, _) = self.known.first_key_value()?;
        let (last, variable) = self.known.last_key_value()?;
        Some(*first..last + variable.bytes)
    }

    /// Whether an address lies in a variable.
    pub(super) fn holds(&self, address: u64) -> bool {
        self.find(address).is_some()
    }

    fn find(&self, address: u64) -> Option<u64> {
        let (base, variable) = self.known.range(..=address).next_back()?;
        (address - base < variable.bytes).then_some(*base)
    }

    /// The program asked where a variable lies.
    pub(super) fn found(&mut self, address: u64, bytes: u64, name: &CStr, module: Module, context: u32) {
        let variable = Variable {
            bytes,
            name: name.to_owned(),
            module,
            context,
            is_read: false,
        };
        let known = self.known.entry(address).or_insert(variable);
        if module.handle != 0 {
            known.module = module;
        }
    }
}

impl State {
    /// Reads the variables of kernels that are held back. Where the driver told no
    /// code, none are known, and the kernel cannot be run again either.
    pub(super) fn read_awaited(&mut self) {
        for Awaited {
            module,
            function,
            context,
        } in std::mem::take(&mut self.memory.variables.awaited)
        {
            self.read_variables(module, function, context);
        }
    }

    /// A kernel of a module is going to run: what its variables hold is read once.
    pub(super) fn reach_variables(&mut self, module: Module, function: &[u8], context: u32) {
        let variables = &mut self.memory.variables;
        if module.handle == 0 || !variables.seen.insert(module.id) {
            return;
        }
        let function = xxh3_64(function);
        if variables.with_function.contains_key(&function) {
            self.read_variables(module, function, context);
        } else if self.since == Since::Late {
            variables.awaited.push(Awaited {
                module,
                function,
                context,
            });
        }
    }

    fn read_variables(&mut self, module: Module, function: u64, context: u32) {
        let places = self.memory.variables.with_function.get(&function);
        let places = places.cloned().unwrap_or_default();
        let mut addresses = Vec::new();
        for place in places {
            // Several modules may have a function of this name: the driver knows which variables this one has.
            let names = std::mem::take(&mut self.memory.variables.code[place].variables);
            for name in &names {
                if let Some((address, bytes)) = self.driver.variable(module.handle, name) {
                    self.memory.variables.found(address, bytes, name, module, context);
                    addresses.push(address);
                }
            }
            self.memory.variables.code[place].variables = names;
        }
        for address in addresses {
            self.reach_variable(address);
        }
    }

    /// A variable is used: what it holds is read once.
    pub(super) fn reach_variable(&mut self, address: u64) {
        let Some(base) = self.memory.variables.find(address) else {
            return;
        };
        let is_read = self.memory.variables.known.get_mut(&base);
        if is_read.is_some_and(|variable| std::mem::replace(&mut variable.is_read, true)) {
            return;
        }
        self.synchronize();
        let found = self.read_variable(base, BEGIN);
        self.read_all(found);
    }

    /// Tells what a variable holds; gives back what it points to that was not
    /// reached before.
    fn read_variable(&mut self, base: u64, moment: u8) -> Vec<u64> {
        let mut found = Vec::new();
        let Some(variable) = self.memory.variables.known.get(&base) else {
            return found;
        };
        let buffer = Buffer {
            address: base,
            bytes: variable.bytes,
            module: variable.module.id,
            context: variable.context,
            moment,
            memory: Kind::Device as u8,
            ..Buffer::default()
        };
        let (name, bytes, context) = (variable.name.clone(), variable.bytes, variable.context);
        self.send(&buffer, &[name.to_bytes()]);
        let mut at = 0;
        while at < bytes {
            let length = (bytes - at).min(PIECE_BYTES as u64) as usize;
            let mut content = vec![0; length];
            if !self.read_device(base + at, &mut content) {
                self.mark_incomplete("a variable of device code could not be read");
                break;
            }
            if moment == BEGIN {
                self.find_addresses(&content, context, &mut found);
            }
            self.send_piece(base + at, moment, &content);
            at += length as u64;
        }
        found
    }

    /// Tells what variables hold at the end.
    pub(super) fn read_variables_at_end(&mut self) {
        let read = self.memory.variables.known.iter();
        let read: Vec<u64> = read
            .filter(|(_, variable)| variable.is_read)
            .map(|(base, _)| *base)
            .collect();
        for base in read {
            self.read_variable(base, END);
        }
    }
}
