//! Apple's Instruments, on macOS.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use tracesmith_interop::import::xctrace_tables;

use super::Recorder;

/// The exit code of xctrace if its time limit has ended the program. The recording is complete.
const LIMIT_REACHED: i32 = 54;

pub(super) struct Xctrace<'a> {
    /// The template to record.
    pub(super) template: &'a str,
    /// How long to record. Without it, until the program ends.
    pub(super) duration: Option<Duration>,
}

impl Recorder for Xctrace<'_> {
    fn program(&self) -> &'static str {
        "xcrun"
    }

    fn hint(&self) -> &'static str {
        "xctrace comes with Xcode, on macOS; recordings made elsewhere can be read with 'tracesmith import'"
    }

    fn importer(&self) -> &'static str {
        "xctrace"
    }

    fn check(&self, program: &Path) -> anyhow::Result<()> {
        let found = Command::new(program).args(["--find", "xctrace"]).output();
        if found.is_ok_and(|found| found.status.success()) {
            Ok(())
        } else {
            Err(anyhow!("xcrun cannot find xctrace"))
        }
    }

    fn record(&self, program: &Path, base: &Path) -> anyhow::Result<Command> {
        let mut command = Command::new(program);
        command
            .args(["xctrace", "record", "--template", self.template])
            .arg("--output")
            .arg(base.with_extension("trace"));
        if let Some(duration) = self.duration {
            command
                .arg("--time-limit")
                .arg(format!("{}ms", duration.as_millis().max(1)));
        }
        command.args(["--launch", "--"]);
        Ok(command)
    }

    fn is_end(&self, code: i32) -> bool {
        self.duration.is_some() && code == LIMIT_REACHED
    }

    fn export(&self, program: &Path, base: &Path) -> anyhow::Result<Vec<PathBuf>> {
        let recording = base.with_extension("trace");
        if !recording.exists() {
            bail!("xctrace wrote no recording");
        }
        let tables = base.with_extension("xml");
        let export = Command::new(program)
            .args(["xctrace", "export", "--input"])
            .arg(&recording)
            .args(["--xpath", &tables_xpath(), "--output"])
            .arg(&tables)
            .stdin(Stdio::null())
            .output()
            .context("starting xctrace export")?;
        if !export.status.success() || !tables.exists() {
            let words = String::from_utf8_lossy(&export.stderr);
            bail!("xctrace export failed ({}): {}", export.status, words.trim());
        }
        Ok(vec![tables])
    }

    fn endings(&self) -> &'static [&'static str] {
        &["trace", "xml"]
    }
}

/// All tables in one export, so that references between values work in all of them.
fn tables_xpath() -> String {
    let schemas: Vec<String> = xctrace_tables()
        .map(|name| format!("@schema=\"{name}\""))
        .collect();
    format!(
        "/trace-toc/run[@number=\"1\"]/data/table[{}]",
        schemas.join(" or ")
    )
}
