//! Arguments of the commands that say what a trace means.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args as ClapArgs, ValueEnum};
use tracesmith_trace::TimeArg;
use tracesmith_trace::analysis::{ANALYZERS, Analyzer};

/// A stretch of time that is looked at alone.
#[derive(ClapArgs)]
pub(crate) struct TimeRangeArgs {
    /// Start of the time range
    #[arg(long, value_name = "TIME", conflicts_with = "step")]
    pub(crate) from: Option<TimeArg>,
    /// End of the time range
    #[arg(long, value_name = "TIME", conflicts_with = "step")]
    pub(crate) to: Option<TimeArg>,
    /// The time range of this step, counted from 0; the analysis 'steps' lists them
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = super::units::number_from_0)]
    pub(crate) step: Option<usize>,
}

/// What is looked at: a stretch of time, and some processes, GPUs and streams. The same in every command that has it.
#[derive(ClapArgs)]
pub(crate) struct SelectArgs {
    #[command(flatten)]
    pub(crate) stretch: TimeRangeArgs,
    /// Only these processes: a PID, or #ID
    #[arg(long, value_delimiter = ',', value_name = "PID")]
    pub(crate) process: Vec<String>,
    /// Only the processes of these ranks
    #[arg(long, value_delimiter = ',', value_name = "RANK")]
    pub(crate) rank: Vec<u32>,
    /// Only these GPUs: the driver's index, HOST:INDEX, or #ID
    #[arg(long, value_delimiter = ',', value_name = "GPU")]
    pub(crate) device: Vec<String>,
    /// Only these streams
    #[arg(long, value_delimiter = ',', value_name = "ID")]
    pub(crate) stream: Vec<u64>,
}

#[derive(ClapArgs)]
pub(crate) struct AnalyzeArgs {
    /// The trace, in any supported format, or - for standard input
    pub(crate) file: PathBuf,
    /// Show only this analysis
    #[arg(long, value_name = "NAME", value_parser = AnalyzerParser)]
    pub(crate) only: Option<&'static Analyzer>,
    /// Group kernels by this key
    #[arg(long, value_enum, default_value = "name", value_name = "KEY")]
    pub(crate) by: KernelKeyArg,
    #[command(flatten)]
    pub(crate) select: SelectArgs,
    /// Show at most this many rows per table; 0 for all [default: 10 in tables, all in json]
    #[arg(long, short = 'n', value_name = "N", allow_negative_numbers = true, value_parser = super::units::number_from_0)]
    pub(crate) limit: Option<usize>,
    /// Show full C++ names in tables
    #[arg(long)]
    pub(crate) wide: bool,
    /// Print lean JSON, on one line: lists have as many entries as tables have rows, and entries have no lists
    #[arg(long)]
    pub(crate) lean: bool,
    /// Predict the total time if matching GPU work took FACTOR times as long (flash*=0.5); repeatable
    #[arg(long, value_name = "PATTERN=FACTOR")]
    pub(crate) scale: Vec<String>,
    /// Predict the total time with this many streams per device, or 'unlimited'
    #[arg(long, value_name = "COUNT")]
    pub(crate) streams: Option<StreamsArg>,
    /// Predict the total time without CPU waits for the GPU, or without those in matching functions or code lines:
    /// --without-sync='train.py:88*'
    #[arg(long, value_name = "PATTERN", num_args = 0..=1, require_equals = true)]
    pub(crate) without_sync: Option<Option<String>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamsArg {
    Unlimited,
    AtMost(usize),
}

impl std::str::FromStr for StreamsArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(0) => Err("at least one stream is needed".to_owned()),
            Ok(count) => Ok(StreamsArg::AtMost(count)),
            Err(_) if text == "unlimited" => Ok(StreamsArg::Unlimited),
            Err(_) => Err("neither a number nor 'unlimited'".to_owned()),
        }
    }
}

#[derive(ClapArgs)]
pub(crate) struct StatesArgs {
    /// The trace, in any supported format, or - for standard input
    pub(crate) file: PathBuf,
    /// Only these streams
    #[arg(long, value_delimiter = ',', value_name = "ID")]
    pub(crate) stream: Vec<u64>,
    /// Show all states at this time
    #[arg(long, value_name = "TIME", conflicts_with_all = ["from", "to", "step", "intervals"])]
    pub(crate) at: Option<TimeArg>,
    #[command(flatten)]
    pub(crate) stretch: TimeRangeArgs,
    /// List every interval, not only totals
    #[arg(long)]
    pub(crate) intervals: bool,
    /// Show at most this many rows; 0 for all [default: 100 in tables, all in json and csv]
    #[arg(long, short = 'n', value_name = "N", allow_negative_numbers = true, value_parser = super::units::number_from_0)]
    pub(crate) limit: Option<usize>,
}

#[derive(ClapArgs)]
pub(crate) struct DiffArgs {
    /// The baseline
    pub(crate) before: PathBuf,
    /// The trace to compare with the baseline
    pub(crate) after: PathBuf,
    /// Match kernels by name, or by short name: without template and function arguments
    #[arg(long, value_enum, default_value = "name", value_name = "KEY")]
    pub(crate) by: DiffKeyArg,
    /// Exit with 1 if the second trace is slower by more than this, such as 5%, and the change is certain (p < 0.01)
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true)]
    pub(crate) fail_over: Option<ShareArg>,
    /// Show at most this many kernels; 0 for all [default: 20 in tables, all in json and csv]
    #[arg(long, short = 'n', value_name = "N", allow_negative_numbers = true, value_parser = super::units::number_from_0)]
    pub(crate) limit: Option<usize>,
    /// Print lean JSON, on one line: lists have as many entries as tables have rows, and entries have no lists
    #[arg(long)]
    pub(crate) lean: bool,
}

/// A share of something, as percents.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct ShareArg(pub(crate) f64);

impl std::str::FromStr for ShareArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number: f64 = text
            .strip_suffix('%')
            .unwrap_or(text)
            .trim()
            .parse()
            .map_err(|_| "write a percentage of 0 or more, such as 5%".to_owned())?;
        if number.is_finite() && number >= 0.0 {
            Ok(ShareArg(number / 100.0))
        } else {
            Err("write a percentage of 0 or more, such as 5%".to_owned())
        }
    }
}

/// Accepts the names of the library's analyses.
#[derive(Clone)]
struct AnalyzerParser;

impl TypedValueParser for AnalyzerParser {
    type Value = &'static Analyzer;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<Self::Value, clap::Error> {
        let values = PossibleValuesParser::new(ANALYZERS.iter().map(possible_value));
        let name = values.parse_ref(command, arg, value)?;
        Ok(Analyzer::find(&name).expect("every possible value is an analysis"))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(ANALYZERS.iter().map(possible_value)))
    }
}

fn possible_value(analyzer: &Analyzer) -> PossibleValue {
    PossibleValue::new(analyzer.name)
        .help(analyzer.description)
        .aliases(analyzer.aliases)
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum KernelKeyArg {
    /// Name
    Name,
    /// Name without template and function arguments
    Short,
    /// Name, grid and block
    Shape,
    /// Source line of the launch; the operator if the line is unknown
    #[value(alias = "stack")]
    Line,
    /// NVTX ranges open at the launch
    Nvtx,
    /// Framework operator of the launch
    Operator,
    /// Process
    Process,
    /// Rank of the process
    Rank,
    /// Step
    Step,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DiffKeyArg {
    Name,
    Short,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_streams_are_read() {
        assert_eq!("5%".parse(), Ok(ShareArg(0.05)));
        assert_eq!("2.5".parse(), Ok(ShareArg(0.025)));
        for wrong in ["", "%", "-1%", "nan", "inf", "x"] {
            assert!(wrong.parse::<ShareArg>().is_err(), "{wrong}");
        }
        assert!("unlimited".parse() == Ok(StreamsArg::Unlimited) && "2".parse() == Ok(StreamsArg::AtMost(2)));
        assert!("0".parse::<StreamsArg>().is_err() && "many".parse::<StreamsArg>().is_err());
    }
}
