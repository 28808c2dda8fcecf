//! What can be chosen about a server.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::replay::Replayer;

/// How a server is started.
#[derive(Clone, Debug)]
pub struct Options {
    /// The files that are open from the start.
    pub files: Vec<PathBuf>,
    /// The folder below which other files can be opened.
    pub folder: PathBuf,
    /// The address to listen on instead of this machine's own.
    pub listen: Option<IpAddr>,
    /// The port; 0 for a free one.
    pub port: u16,
    /// Names other than `localhost` that the browser may know the server by.
    pub allowed_hosts: Vec<String>,
    /// Whether pages may change files and use the GPU.
    pub control: Control,
    /// Ends the server when no page was open for this time.
    pub idle_limit: Option<Duration>,
    /// The program that replays recordings. Without one, pages cannot look into them.
    pub replayer: Option<Replayer>,
    /// How pages record programs, if they may change files.
    pub recorder: Option<Recorder>,
    /// Reads the pages from this folder instead of from the program.
    pub pages: Option<PathBuf>,
}

/// Whether pages may do more than look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Control {
    /// They only read.
    #[default]
    Refused,
    /// They may write files below the folder, and run recorded calls on the GPU.
    Allowed,
}

/// How pages record programs.
#[derive(Clone, Debug)]
pub struct Recorder {
    /// The program with a `record` command: `tracesmith`.
    pub program: PathBuf,
    /// Finds the processes that can be recorded now.
    pub processes: fn() -> Vec<Recordable>,
}

/// A process that can be recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recordable {
    /// Its number.
    pub pid: u32,
    /// Its command line.
    pub command: String,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            files: Vec::new(),
            folder: PathBuf::from("."),
            listen: None,
            port: 0,
            allowed_hosts: Vec::new(),
            control: Control::Refused,
            idle_limit: None,
            replayer: None,
            recorder: None,
            pages: None,
        }
    }
}
