//! Arguments of `tracesmith studio`.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;

#[derive(Args)]
pub(crate) struct StudioArgs {
    /// The traces, in any supported format. Without one, the page lists the files below the current folder
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Only print the address, and start no browser
    #[arg(long)]
    pub(crate) no_browser: bool,
    /// Listen on this port [default: a free one]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub(crate) port: u16,
    /// Listen on this address of the machine, not only for programs on it. Traffic is not encrypted
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<IpAddr>,
    /// Accept this name in the browser's address bar, such as that of a proxy; repeatable
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_host: Vec<String>,
    /// Let pages write files below the current folder, record programs, and run recordings on the GPU
    #[arg(long)]
    pub(crate) control: bool,
}
