//! Replaces a recorded kernel with another one: the same inputs, other code.

use std::ffi::CString;
use std::rc::Rc;

use tracesmith_cuda::cubin;
use tracesmith_cuda::driver::{Function, Parameter};
use tracesmith_format::tables::CommandKind;

use crate::error::Error;
use crate::recording::{Command, Recording};
use crate::run::{Replaced, Replay};
use crate::timing::Timing;
use crate::verdict::Verdict;

/// A kernel to launch instead of recorded ones.
#[derive(Clone, Debug)]
pub struct Replacement {
    /// A part of the name of the recorded kernels.
    pub kernel: String,
    /// The launch to replace, counted from 1. `None` replaces all.
    pub nth: Option<usize>,
    /// A cubin or PTX.
    pub code: Vec<u8>,
    /// The kernel in the new module. `None` uses the kernel with the recorded name, or the only kernel.
    pub symbol: Option<String>,
}

/// What a replacement will change, as far as the files tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedReplacement {
    /// The numbers of the calls.
    pub calls: Vec<u64>,
    /// The kernel of the new module that they launch.
    pub symbol: String,
    /// The compute capability that the new module was compiled for. `None` if the driver compiles it.
    pub capability: Option<(u32, u32)>,
}

impl Replacement {
    /// Checks the replacement without a GPU. Parameters are checked when it is loaded.
    ///
    /// # Errors
    ///
    /// If there is no such launch, or if the new module lacks the kernel.
    pub fn plan(&self, recording: &Recording) -> Result<PlannedReplacement, Error> {
        let launches = self.launches(&recording.commands);
        let names = kernel_names(&self.code);
        let symbol = self.symbol_for(&launches, &names)?;
        // Code in another container does not list its kernels here.
        if !names.is_empty() && !names.contains(&symbol) {
            return Err(no_such(&symbol, &names));
        }
        Ok(PlannedReplacement {
            calls: launches.iter().map(|launch| launch.number).collect(),
            symbol,
            capability: cubin::capability(&self.code),
        })
    }

    fn launches(&self, commands: &[Command]) -> Vec<Command> {
        let all = commands
            .iter()
            .filter(|command| command.kind == CommandKind::LAUNCH && command.function.contains(&self.kernel));
        match self.nth {
            None => all.cloned().collect(),
            Some(nth) => all.skip(nth.saturating_sub(1)).take(1).cloned().collect(),
        }
    }

    fn symbol_for(&self, launches: &[Command], names: &[String]) -> Result<String, Error> {
        let Some(first) = launches.first() else {
            return Err(Error::Replacement(match self.nth {
                Some(nth) => format!("the recording has no launch {nth} of kernel {:?}", self.kernel),
                None => format!("the recording has no launch of kernel {:?}", self.kernel),
            }));
        };
        symbol_of(self, &first.function, names)
    }
}

/// A recorded launch and its replacement, with the same memory before each.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Times of the recorded kernel.
    pub old: Timing,
    /// Times of the new kernel.
    pub new: Vec<std::time::Duration>,
    /// The results of the new kernel, compared with those of the recorded kernel.
    pub verdict: Verdict,
}

impl Replay<'_> {
    /// Launches another kernel from now on. Returns the numbers of the affected calls.
    ///
    /// # Errors
    ///
    /// If there is no such launch, if the module does not load or lacks the kernel, or if the parameters differ.
    pub fn replace(&mut self, replacement: &Replacement) -> Result<Vec<u64>, Error> {
        let launches = replacement.launches(&self.recording.commands);
        let names = kernel_names(&replacement.code);
        let symbol = replacement.symbol_for(&launches, &names)?;
        let function = Rc::new(self.load_replacement(replacement, &symbol, &names)?);
        // Check all launches first, so that an error changes nothing.
        for launch in &launches {
            self.check_parameters(launch, &function, &symbol)?;
        }
        let most_shared = launches.iter().map(|launch| launch.shared).max().unwrap_or(0);
        if most_shared > 0 {
            // If the value is not allowed, the launch reports it.
            let _ = function.set_attribute(crate::load::MAX_DYNAMIC_SHARED, most_shared as i32);
        }
        for launch in &launches {
            self.replaced.insert(launch.number, function.clone());
        }
        // Instantiated graphs contain the old kernels.
        self.graphs.clear();
        Ok(launches.iter().map(|launch| launch.number).collect())
    }

    /// Launches the recorded kernels from now on.
    pub(crate) fn restore_kernels(&mut self) {
        if !self.replaced.is_empty() {
            self.replaced.clear();
            self.graphs.clear();
        }
    }

    /// The offsets of a kernel's parameters, if the driver reports them.
    pub(crate) fn parameter_offsets(&self, place: usize) -> Option<Vec<usize>> {
        let launch = self.recording.commands.get(place)?;
        let function = self.functions.get(&(launch.module, launch.function.clone()))?;
        // Without them, parameters are named by their offsets.
        let parameters = function.parameters().ok().flatten()?;
        Some(parameters.iter().map(|parameter| parameter.offset).collect())
    }

    fn load_replacement(
        &self,
        replacement: &Replacement,
        symbol: &str,
        names: &[String],
    ) -> Result<Function, Error> {
        let module = self
            .context
            .module_of(&replacement.code)
            .map_err(Error::device("loading the new module"))?;
        let name = CString::new(symbol).map_err(|_| no_such(symbol, names))?;
        const NOT_FOUND: i64 = 500;
        match module.function(&name) {
            Ok(function) => Ok(function),
            Err(error) if error.code() == Some(NOT_FOUND) => Err(no_such(symbol, names)),
            Err(error) => Err(Error::device(format!("finding {symbol} in the new module"))(
                error,
            )),
        }
    }

    /// Checks that both kernels have the same parameter layout.
    fn check_parameters(&self, launch: &Command, function: &Function, symbol: &str) -> Result<(), Error> {
        let asked = || Error::device("querying parameters");
        let key = (launch.module, launch.function.clone());
        let old = match self.functions.get(&key) {
            Some(old) => old.parameters().map_err(asked())?,
            None => None,
        };
        let (Some(old), Some(new)) = (old, function.parameters().map_err(asked())?) else {
            return Ok(());
        };
        if old == new {
            return Ok(());
        }
        Err(Error::Replacement(format!(
            "the parameters of {symbol} differ from those of {}: {} instead of {}",
            launch.function,
            sizes(&new),
            sizes(&old)
        )))
    }

    /// Measures each replaced launch with the old and the new kernel, `repeat` times each. Every run starts with the
    /// memory of the recorded program. Compares the results of both kernels.
    ///
    /// # Errors
    ///
    /// If the driver reports an error, or if the device does not have enough memory for three copies.
    pub fn time_replaced(&mut self, repeat: u32) -> Result<Vec<Comparison>, Error> {
        let replaced = std::mem::take(&mut self.replaced);
        self.graphs.clear();
        let compared = self.freshly(|replay| replay.compare_replaced(&replaced, repeat));
        self.replaced = replaced;
        compared
    }

    fn compare_replaced(&mut self, replaced: &Replaced, repeat: u32) -> Result<Vec<Comparison>, Error> {
        let places: Vec<usize> = (0..self.recording.commands.len())
            .filter(|place| replaced.contains_key(&self.recording.commands[*place].number))
            .collect();
        let mut comparisons = Vec::new();
        let mut at = 0;
        self.go_to(0)?;
        for place in places {
            self.issue_all(at..place)?;
            at = place;
            let before = self.left()?;
            let mut is_changing = false;
            let command = self.recording.commands[place].clone();
            let mut times = [Vec::new(), Vec::new()];
            let mut left = None;
            for (kernel, times) in times.iter_mut().enumerate() {
                if kernel == 1 {
                    let unchanged = self.compare_with(&before, &self.memory())?;
                    is_changing = !matches!(unchanged, Verdict::Same { .. });
                    left = Some(self.left()?);
                    self.replaced.clone_from(replaced);
                }
                // The first run loads code and tables, and does not count.
                for run in 0..=repeat {
                    self.put_back(&before.memory)?;
                    let time = self.time_one(place)?;
                    if run > 0 {
                        times.push(time);
                    }
                }
            }
            let verdict = match &left {
                Some(left) => self.compare_with(left, &self.memory())?,
                None => continue,
            };
            // A kernel that does nothing would have the same result.
            let why = "the recorded kernel changed no memory";
            let verdict = match verdict {
                Verdict::Same { .. } | Verdict::Within { .. } if !is_changing => Verdict::Unproven { why },
                verdict => verdict,
            };
            self.replaced.clear();
            self.put_back(&before.memory)?;
            let [old, new] = times;
            comparisons.push(Comparison {
                old: Timing {
                    command: command.number,
                    name: command.name(),
                    bytes: command.bytes,
                    recorded: command.recorded,
                    runs: old,
                },
                new,
                verdict,
            });
        }
        Ok(comparisons)
    }
}

fn symbol_of(replacement: &Replacement, recorded: &str, names: &[String]) -> Result<String, Error> {
    if let Some(symbol) = &replacement.symbol {
        return Ok(symbol.clone());
    }
    if names.iter().any(|name| name == recorded) {
        return Ok(recorded.to_owned());
    }
    match names {
        [only] => Ok(only.clone()),
        _ => Err(no_such(recorded, names)),
    }
}

fn no_such(symbol: &str, names: &[String]) -> Error {
    const SHOWN: usize = 8;
    let mut known = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        known.push_str(", …");
    }
    Error::Replacement(match names {
        [] => format!("the new module has no kernel {symbol:?}"),
        _ => format!("the new module has no kernel {symbol:?}; it has {known}"),
    })
}

fn sizes(parameters: &[Parameter]) -> String {
    let list: Vec<String> = parameters
        .iter()
        .map(|parameter| parameter.bytes.to_string())
        .collect();
    format!("{} of {} bytes", list.len(), list.join(" + "))
}

/// The names of the kernels in a cubin or in PTX.
fn kernel_names(code: &[u8]) -> Vec<String> {
    let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
    if code.starts_with(b"\x7fELF") {
        return cubin::names(code).functions.into_iter().map(text).collect();
    }
    let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$');
    let mut names = Vec::new();
    for at in memchr::memmem::find_iter(code, b".entry") {
        let rest = code[at + ".entry".len()..].trim_ascii_start();
        let end = rest
            .iter()
            .position(|byte| !is_of_name(byte))
            .unwrap_or(rest.len());
        if end > 0 {
            names.push(text(&rest[..end]));
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_of_ptx_are_found() {
        let ptx = b".version 7.0\n.visible .entry one(.param .u64 a)\n{ret;}\n.entry _Z3twov()\n{ret;}";
        assert_eq!(kernel_names(ptx), ["one", "_Z3twov"]);
        assert!(kernel_names(b".entry").is_empty());
    }

    #[test]
    fn a_kernel_is_that_of_the_same_name_or_the_only_one() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let mut replacement = Replacement {
            kernel: "fill".to_owned(),
            nth: None,
            code: Vec::new(),
            symbol: None,
        };
        let found =
            |replacement: &Replacement, all: &[&str]| symbol_of(replacement, "fill", &names(all)).ok();
        assert_eq!(found(&replacement, &["fill", "other"]).as_deref(), Some("fill"));
        assert_eq!(found(&replacement, &["other"]).as_deref(), Some("other"));
        assert_eq!(found(&replacement, &["one", "other"]), None);
        replacement.symbol = Some("one".to_owned());
        assert_eq!(found(&replacement, &["one", "other"]).as_deref(), Some("one"));
    }
}
