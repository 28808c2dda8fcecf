//! MetaX's mcTracer.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use super::Recorder;

pub(super) struct Mctracer;

impl Recorder for Mctracer {
    fn program(&self) -> &'static str {
        "mcTracer"
    }

    fn hint(&self) -> &'static str {
        "mcTracer comes with MetaX's MACA toolkit, in /opt/maca/bin; put that folder into PATH"
    }

    fn importer(&self) -> &'static str {
        "mctracer"
    }

    fn record(&self, program: &Path, base: &Path) -> anyhow::Result<Command> {
        let folder = folder(base);
        fs::create_dir(&folder).context("creating a folder for mcTracer")?;
        let mut command = Command::new(program);
        command
            .args(["--mctx", "--odname"])
            .arg(folder)
            .args(["--name", "trace"]);
        Ok(command)
    }

    fn export(&self, _program: &Path, base: &Path) -> anyhow::Result<Vec<PathBuf>> {
        let files = json_files(&folder(base))?;
        if files.is_empty() {
            bail!("mcTracer wrote no trace");
        }
        Ok(files)
    }

    fn endings(&self) -> &'static [&'static str] {
        &["mctracer"]
    }
}

/// mcTracer writes one file per process, with its own names.
fn folder(base: &Path) -> PathBuf {
    base.with_extension("mctracer")
}

fn json_files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).context("looking for the trace")? {
        let path = entry.context("looking for the trace")?.path();
        if path.is_dir() {
            files.extend(json_files(&path)?);
        } else if path.extension() == Some(OsStr::new("json")) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
