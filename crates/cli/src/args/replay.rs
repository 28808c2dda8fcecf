//! Arguments of the commands that run recorded work again.

use std::ops::Range;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args as ClapArgs, ValueEnum};
use tracesmith_replay::Float;

#[derive(ClapArgs)]
pub(crate) struct ReplayArgs {
    /// A trace recorded with 'tracesmith profile --record'
    pub(crate) file: PathBuf,
    /// How to replay
    #[arg(long, value_enum, default_value = "full", value_name = "MODE")]
    pub(crate) mode: ReplayMode,
    /// Number of runs
    #[arg(long, default_value = "1", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) repeat: u32,
    /// Compare memory after every call across runs, and report the first nondeterministic call
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) check: Option<CheckArg>,
    /// Only calls A to B-1
    #[arg(long, value_name = "A..B", conflicts_with = "kernel")]
    pub(crate) ops: Option<OpsArg>,
    /// Only this launch: a part of the kernel's name, and the number of the launch, from 1
    #[arg(long, value_name = "NAME[#N]")]
    pub(crate) kernel: Option<KernelArg>,
    /// Only calls of this stream, as shown by '--mode dry-run'
    #[arg(long, value_name = "STREAM", value_parser = address)]
    pub(crate) stream: Option<u64>,
    /// Replace a kernel: a part of the recorded name, a cubin or PTX file, and the new kernel's name in it
    #[arg(long, value_name = "NAME=FILE[:SYMBOL]")]
    pub(crate) replace: Vec<ReplaceArg>,
    /// Allowed difference of floats: |new - recorded| <= ABSOLUTE + RELATIVE × |recorded|; a single number sets both
    #[arg(long, value_delimiter = ',', value_name = "[TYPE=]RELATIVE[:ABSOLUTE]")]
    pub(crate) tolerance: Vec<ToleranceArg>,
    /// Read a JSON plan: calls to run, kernels to replace, buffers to dump (docs/guides/replay.md)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["ops", "kernel", "stream", "replace", "tolerance", "step", "check", "until", "dump"])]
    pub(crate) plan: Option<PathBuf>,
    /// Step through the calls interactively: next, back, buffers, dump
    #[arg(long, conflicts_with_all = ["check", "until", "dump", "replace"])]
    pub(crate) step: bool,
    /// Snapshot memory every N calls, so that stepping back is fast
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) snapshot_every: Option<u32>,
    /// Dump the buffer as it is before this call
    #[arg(long, value_name = "N", requires = "dump")]
    pub(crate) until: Option<u64>,
    /// Write the buffer at this address as a NumPy array
    #[arg(long, value_name = "ADDRESS", value_parser = address, requires = "out")]
    pub(crate) dump: Option<u64>,
    /// Element type of the array [default: u8], and of a --tolerance without a type
    #[arg(long = "type", value_enum, value_name = "TYPE")]
    pub(crate) element: Option<ElementArg>,
    /// File for the array
    #[arg(short, long, value_name = "FILE", requires = "dump")]
    pub(crate) out: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long)]
    pub(crate) force: bool,
    /// If a recorded address is not available, use another one and rewrite values that look like pointers to it
    #[arg(long)]
    pub(crate) relocate: bool,
    /// Stop if the GPU makes no progress for this many seconds; 0 for no limit
    #[arg(long, default_value = "60", value_name = "SECONDS")]
    pub(crate) timeout: u32,
    /// The GPU
    #[arg(long, default_value = "0", value_name = "N")]
    pub(crate) device: u32,
}

#[derive(ClapArgs)]
pub(crate) struct ExtractArgs {
    /// A trace recorded with 'tracesmith profile --record'
    pub(crate) file: PathBuf,
    /// The launch: a part of the kernel's name, and the number of the launch, from 1
    #[arg(long, value_name = "NAME[#N]")]
    pub(crate) kernel: KernelArg,
    /// The folder to write; must be new or empty
    #[arg(short, long = "output", value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Write into the folder even if it is not empty
    #[arg(long)]
    pub(crate) force: bool,
    /// The GPU that runs the calls before the launch
    #[arg(long, default_value = "0", value_name = "N")]
    pub(crate) device: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReplayMode {
    /// Run all calls and compare memory with the recording
    Full,
    /// As full, but one call at a time, in one stream
    Serial,
    /// As full, with the recorded pauses between calls
    AsRecorded,
    /// Measure the GPU time of each call, from the same memory each time
    Timing,
    /// Show what would run; needs no GPU
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
                    .ok_or_else(|| format!("{name:?} is not one of f16, bf16, f32, f64"))?;
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
    parsed.map_err(|error| format!("{text:?} is not an address: {error}"))
}
