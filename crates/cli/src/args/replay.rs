//! Arguments of the commands that run recorded work again.

use std::ops::Range;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args as ClapArgs, ValueEnum};

#[derive(ClapArgs)]
pub(crate) struct ReplayArgs {
    /// A trace that was recorded with 'tracesmith profile --record'
    pub(crate) file: PathBuf,
    /// What to do with it
    #[arg(long, value_enum, default_value = "full", value_name = "MODE")]
    pub(crate) mode: ReplayMode,
    /// Run it so often
    #[arg(long, default_value = "1", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) repeat: u32,
    /// Compare the memory after every call across runs, and name the first that does not repeat itself
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) check: Option<CheckArg>,
    /// Time only the calls with these numbers, the last one left out
    #[arg(long, value_name = "A..B", conflicts_with = "kernel")]
    pub(crate) ops: Option<OpsArg>,
    /// Time only this launch: a part of the kernel's name, and which of its launches
    #[arg(long, value_name = "NAME[#N]")]
    pub(crate) kernel: Option<KernelArg>,
    /// Stop before the call with this number, and write a buffer as it is then
    #[arg(long, value_name = "N", requires = "dump")]
    pub(crate) until: Option<u64>,
    /// Write the buffer at this address as an array for NumPy
    #[arg(long, value_name = "ADDRESS", value_parser = address, requires = "out")]
    pub(crate) dump: Option<u64>,
    /// What the array's elements are
    #[arg(long = "type", value_enum, default_value = "u8", value_name = "TYPE")]
    pub(crate) element: ElementArg,
    /// The array's file
    #[arg(short, long, value_name = "FILE", requires = "dump")]
    pub(crate) out: Option<PathBuf>,
    /// The GPU to run it on
    #[arg(long, default_value = "0", value_name = "N")]
    pub(crate) device: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReplayMode {
    /// Run it, and compare the memory with what was recorded
    Full,
    /// The same, with one call after another in one stream
    Serial,
    /// What each call takes on the GPU, with the same memory before it each time
    Timing,
    /// Only say what would be done; needs no GPU
    DryRun,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckArg {
    Determinism,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ElementArg {
    U8,
    I32,
    I64,
    F16,
    F32,
    F64,
}

/// Numbers of calls.
#[derive(Clone)]
pub(crate) struct OpsArg(pub(crate) Range<u64>);

impl FromStr for OpsArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (first, last) = text.split_once("..").ok_or("two numbers with .. between them")?;
        let number = |text: &str| {
            text.parse::<u64>()
                .map_err(|error| format!("{text:?} is no number: {error}"))
        };
        let range = number(first)?..number(last)?;
        if range.is_empty() {
            return Err("the second number must be the larger one".to_owned());
        }
        Ok(Self(range))
    }
}

/// One launch of a kernel.
#[derive(Clone)]
pub(crate) struct KernelArg {
    pub(crate) name: String,
    /// Counted from 1.
    pub(crate) nth: usize,
}

impl FromStr for KernelArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, nth) = text.rsplit_once('#').unwrap_or((text, "1"));
        match nth.parse() {
            Ok(nth) if nth > 0 => Ok(Self {
                name: name.to_owned(),
                nth,
            }),
            _ => Err(format!("{nth:?} is no number from 1 on")),
        }
    }
}

fn address(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|error| format!("{text:?} is no address: {error}"))
}
