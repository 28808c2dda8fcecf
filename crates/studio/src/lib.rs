//! Traces in the browser: a server for the user of this machine alone, and the pages that it serves.
//!
//! Every answer is one that a library of this project computes, and that a command prints too. The server adds what a
//! browser needs: tiles of a timeline, a key, and limits. Nothing is sent to anybody else, and pages load nothing from
//! elsewhere.
//!
//! ```no_run
//! use tracesmith_studio::{Options, Server};
//!
//! let server = Server::bind(Options { files: vec!["train.sbt".into()], ..Options::default() })?;
//! println!("{}", server.url());
//! server.run()?;
//! # Ok::<(), tracesmith_studio::Error>(())
//! ```

mod access;
mod answers;
mod assets;
mod browser;
mod connections;
mod error;
mod events;
mod facts;
mod folder;
mod follow;
mod headers;
mod identity;
mod idle;
mod key;
mod library;
mod notes;
mod opened;
mod options;
mod payload;
mod places;
mod predictions;
mod reading;
mod ready;
mod recorder;
mod replay;
mod reply;
mod routes;
mod server;
mod studio;
mod tabs;
mod work;
mod writer;

pub use browser::{Browser, has_display};
pub use error::Error;
pub use options::{Control, Options, Recordable, Recorder};
pub use replay::Replayer;
pub use server::{Ended, Server};
