//! NVIDIA Nsight Systems.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use super::Recorder;
use super::words::words;

pub(super) struct Nsys<'a> {
    /// More arguments of the user, as in a shell.
    pub(super) arguments: &'a str,
}

impl Recorder for Nsys<'_> {
    fn program(&self) -> &'static str {
        "nsys"
    }

    fn hint(&self) -> &'static str {
        "install NVIDIA Nsight Systems and put its folder on PATH, or record without --nsys"
    }

    fn importer(&self) -> &'static str {
        "nsys"
    }

    fn record(&self, program: &Path, base: &Path) -> anyhow::Result<Command> {
        let further = words(self.arguments).context("reading the profiler's arguments")?;
        let mut command = Command::new(program);
        command
            .args([
                "profile",
                "--force-overwrite=true",
                "--trace=cuda,nvtx,osrt",
                "--sample=none",
                "--cpuctxsw=none",
                "--cuda-graph-trace=node",
            ])
            .arg(option("--output=", base))
            .args(further);
        Ok(command)
    }

    fn export(&self, program: &Path, base: &Path) -> anyhow::Result<Vec<PathBuf>> {
        let report = ["nsys-rep", "qdrep"]
            .map(|ending| base.with_extension(ending))
            .into_iter()
            .find(|path| path.exists())
            .context("nsys wrote no report")?;
        let database = base.with_extension("sqlite");
        let export = Command::new(program)
            .args(["export", "--type=sqlite", "--force-overwrite=true"])
            .arg(option("--output=", &database))
            .arg(&report)
            .output()
            .context("starting nsys export")?;
        if !export.status.success() || !database.exists() {
            let words = String::from_utf8_lossy(&export.stderr);
            bail!(
                "nsys export failed: {}",
                words.lines().last().unwrap_or("nsys printed no error")
            );
        }
        Ok(vec![database])
    }

    fn endings(&self) -> &'static [&'static str] {
        &["nsys-rep", "qdrep", "sqlite"]
    }
}

fn option(name: &str, value: &Path) -> OsString {
    let mut option = OsString::from(name);
    option.push(value);
    option
}
