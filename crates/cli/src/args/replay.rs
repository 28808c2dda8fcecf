//! Arguments of the commands that run recorded work again.

use std::ops::Range;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args as ClapArgs, ValueEnum};
use tracesmith_replay::Float;

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
    /// Only the calls with these numbers, the last one left out
    #[arg(long, value_name = "A..B", conflicts_with = "kernel")]
    pub(crate) ops: Option<OpsArg>,
    /// Only this launch: a part of the kernel's name, and which of its launches
    #[arg(long, value_name = "NAME[#N]")]
    pub(crate) kernel: Option<KernelArg>,
    /// Only calls of this stream, as '--mode dry-run' shows it
    #[arg(long, value_name = "STREAM", value_parser = address)]
    pub(crate) stream: Option<u64>,
    /// Launch another kernel instead: a part of the recorded one's name, a cubin or PTX, and the kernel in it
    #[arg(long, value_name = "NAME=FILE[:SYMBOL]")]
    pub(crate) replace: Vec<ReplaceArg>,
    /// Numbers may be so far apart: |new - recorded| <= ABSOLUTE + RELATIVE × |recorded|; one number is both
    #[arg(long, value_delimiter = ',', value_name = "[TYPE=]RELATIVE[:ABSOLUTE]")]
    pub(crate) tolerance: Vec<ToleranceArg>,
    /// Do what a file says: calls, their order, other kernels, arrays to write (docs/guides/replay.md)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["ops", "kernel", "stream", "replace", "tolerance", "step", "check", "until", "dump"])]
    pub(crate) plan: Option<PathBuf>,
    /// Go through the calls one by one: next, back, buffers, dump (commands on standard input)
    #[arg(long, conflicts_with_all = ["check", "until", "dump", "replace"])]
    pub(crate) step: bool,
    /// Keep a copy of the memory every N calls, so that going back is fast
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) snapshot_every: Option<u32>,
    /// Stop before the call with this number, and write a buffer as it is then
    #[arg(long, value_name = "N", requires = "dump")]
    pub(crate) until: Option<u64>,
    /// Write the buffer at this address as an array for NumPy
    #[arg(long, value_name = "ADDRESS", value_parser = address, requires = "out")]
    pub(crate) dump: Option<u64>,
    /// What elements are: of the array [default: u8], and of a tolerance without a type
    #[arg(long = "type", value_enum, value_name = "TYPE")]
    pub(crate) element: Option<ElementArg>,
    /// The array's file
    #[arg(short, long, value_name = "FILE", requires = "dump")]
    pub(crate) out: Option<PathBuf>,
    /// Replace the array's file if it exists
    #[arg(long)]
    pub(crate) force: bool,
    /// Where an address cannot be had, take another one and change all that looks like an address in it
    #[arg(long)]
    pub(crate) relocate: bool,
    /// Give up when the GPU comes no further for so many seconds; 0: never
    #[arg(long, default_value = "60", value_name = "SECONDS")]
    pub(crate) timeout: u32,
    /// The GPU to run it on
    #[arg(long, default_value = "0", value_name = "N")]
    pub(crate) device: u32,
}

#[derive(ClapArgs)]
pub(crate) struct ExtractArgs {
    /// A trace that was recorded with 'tracesmith profile --record'
    pub(crate) file: PathBuf,
    /// The launch: a part of the kernel's name, and which of its launches
    #[arg(long, value_name = "NAME[#N]")]
    pub(crate) kernel: KernelArg,
    /// The folder to write, which must be new or empty
    #[arg(short, long = "output", value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Write into the folder even if there is something in it
    #[arg(long)]
    pub(crate) force: bool,
    /// The GPU to run on what comes before
    #[arg(long, default_value = "0", value_name = "N")]
    pub(crate) device: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReplayMode {
    /// Run it, and compare the memory with what was recorded
    Full,
    /// The same, with one call after another in one stream
    Serial,
    /// As full, with the program's pauses between calls
    AsRecorded,
    /// What each call takes on the GPU, with the same memory before it each time
    Timing,
    /// Only say what would be done; needs no GPU
    DryRun,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckArg {
    Determinism,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
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

/// A kernel that takes the place of another.
#[derive(Clone, Debug)]
pub(crate) struct ReplaceArg {
    pub(crate) kernel: String,
    pub(crate) file: PathBuf,
    pub(crate) symbol: Option<String>,
}

impl FromStr for ReplaceArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kernel, rest) = text.split_once('=').ok_or("a name, =, and a file")?;
        // A file's name may hold a colon; a kernel's cannot.
        let (file, symbol) = match rest.rsplit_once(':') {
            Some((file, symbol)) if !file.is_empty() && !symbol.contains('/') => (file, Some(symbol)),
            _ => (rest, None),
        };
        if kernel.is_empty() || file.is_empty() || symbol == Some("") {
            return Err("a name, =, and a file".to_owned());
        }
        Ok(Self {
            kernel: kernel.to_owned(),
            file: PathBuf::from(file),
            symbol: symbol.map(str::to_owned),
        })
    }
}

/// How far numbers may be apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ToleranceArg {
    pub(crate) float: Option<Float>,
    pub(crate) relative: f64,
    pub(crate) absolute: f64,
}

impl FromStr for ToleranceArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (float, numbers) = match text.split_once('=') {
            None => (None, text),
            Some((name, numbers)) => {
                let float = Float::from_name(name)
                    .ok_or_else(|| format!("{name:?} is none of f16, bf16, f32, f64"))?;
                (Some(float), numbers)
            }
        };
        let number = |text: &str| match text.parse::<f64>() {
            Ok(number) if number >= 0.0 && number.is_finite() => Ok(number),
            _ => Err(format!("{text:?} is no number from 0 on")),
        };
        let (relative, absolute) = numbers.split_once(':').unwrap_or((numbers, numbers));
        Ok(Self {
            float,
            relative: number(relative)?,
            absolute: number(absolute)?,
        })
    }
}

fn address(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|error| format!("{text:?} is no address: {error}"))
}
