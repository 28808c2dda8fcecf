//! Arguments of the commands that say what a trace means.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};

use crate::time_arg::TimeArg;

/// A stretch of time that is looked at alone.
#[derive(ClapArgs)]
pub(crate) struct StretchArgs {
    /// Only from this time on
    #[arg(long, value_name = "TIME", conflicts_with = "step")]
    pub(crate) from: Option<TimeArg>,
    /// Only before this time
    #[arg(long, value_name = "TIME", conflicts_with = "step")]
    pub(crate) to: Option<TimeArg>,
    /// Only this step, counted from 0; 'tracesmith analyze FILE --only steps' lists them
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = super::units::number_from_0)]
    pub(crate) step: Option<usize>,
}

#[derive(ClapArgs)]
pub(crate) struct AnalyzeArgs {
    /// The trace, of any format that can be read, or - for standard input
    pub(crate) file: PathBuf,
    /// Only this analysis
    #[arg(long, value_enum, value_name = "NAME")]
    pub(crate) only: Option<AnalysisArg>,
    /// What makes two kernels the same, in the table of kernels
    #[arg(long, value_enum, default_value = "name", value_name = "KEY")]
    pub(crate) by: KernelKeyArg,
    #[command(flatten)]
    pub(crate) stretch: StretchArgs,
    /// At most this many rows of a table; 0 is all [default: 10 in tables, all in json]
    #[arg(long, short = 'n', value_name = "N", allow_negative_numbers = true, value_parser = super::units::number_from_0)]
    pub(crate) limit: Option<usize>,
    /// Show whole names of C++ functions in tables, not only what tells them apart
    #[arg(long)]
    pub(crate) wide: bool,
    /// What if work of such a name took so many times as long (flash*=0.5); may be given several times
    #[arg(long, value_name = "PATTERN=FACTOR")]
    pub(crate) scale: Vec<String>,
    /// What if there were so many streams on each device, or 'unlimited'
    #[arg(long, value_name = "COUNT")]
    pub(crate) streams: Option<StreamsArg>,
    /// What if the host never waited for a device, or not in these functions or lines of code: --without-sync='train.py:88*'
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
    /// The trace, of any format that can be read, or - for standard input
    pub(crate) file: PathBuf,
    /// Only these streams, and no devices and contexts
    #[arg(long, value_delimiter = ',', value_name = "ID")]
    pub(crate) stream: Vec<u64>,
    /// The state of everything at this moment
    #[arg(long, value_name = "TIME", conflicts_with_all = ["from", "to", "step", "intervals"])]
    pub(crate) at: Option<TimeArg>,
    #[command(flatten)]
    pub(crate) stretch: StretchArgs,
    /// Every stretch of time in one state, not only the totals
    #[arg(long)]
    pub(crate) intervals: bool,
    /// At most this many rows; 0 is all [default: 100 in tables, all in json and csv]
    #[arg(long, short = 'n', value_name = "N", allow_negative_numbers = true, value_parser = super::units::number_from_0)]
    pub(crate) limit: Option<usize>,
}

#[derive(ClapArgs)]
pub(crate) struct DiffArgs {
    /// The trace to compare with
    pub(crate) before: PathBuf,
    /// The trace that is compared
    pub(crate) after: PathBuf,
    /// Exit with 1 when the second takes so much more time, and not by chance: 5%
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true)]
    pub(crate) fail_over: Option<ShareArg>,
    /// At most this many kernels; 0 is all [default: 20 in tables, all in json and csv]
    #[arg(long, short = 'n', value_name = "N", allow_negative_numbers = true, value_parser = super::units::number_from_0)]
    pub(crate) limit: Option<usize>,
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

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AnalysisArg {
    #[value(alias = "gpu-util")]
    Utilization,
    Streams,
    Idle,
    Steps,
    #[value(alias = "hotspots")]
    Kernels,
    Copies,
    Launches,
    Memory,
    CriticalPath,
    Slack,
    WhatIf,
    Findings,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum KernelKeyArg {
    /// Their names
    Name,
    /// Their names without arguments of templates and functions
    Short,
    /// Their names and the shapes of grid and block
    Shape,
    /// The line of code that launched them
    Stack,
    /// The NVTX ranges that were open when they were launched
    Nvtx,
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
