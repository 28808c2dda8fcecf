//! Files of other tools: importers, exporters, and [`open()`] for a trace of any format.
//!
//! An importer reads a foreign file and writes it as a native trace. An exporter reads a [`tracesmith_trace::Trace`] and
//! writes a foreign file. A new one is a file in `import/` or `export/` and a line in its list.

mod error;
pub mod export;
#[doc(hidden)]
pub mod fuzz;
mod html;
pub mod import;
mod open;
mod perfetto;

pub use error::Error;
pub use html::{HtmlReportOptions, html_report};
pub use open::{open, open_bytes};
