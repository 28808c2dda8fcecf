//! `tracesmith version`.

use serde_json::json;
use tracesmith_format::{MAJOR_VERSION, MINOR_VERSION};

use crate::output::Output;

pub(crate) fn run(output: &mut Output) -> anyhow::Result<()> {
    output.facts(&[
        ("tracesmith", json!(env!("CARGO_PKG_VERSION"))),
        ("format", json!(format!("SBT {MAJOR_VERSION}.{MINOR_VERSION}"))),
        (
            "platform",
            json!(format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS)),
        ),
    ])?;
    Ok(())
}
