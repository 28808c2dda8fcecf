//! A replay plan from a file: `--plan FILE.json`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Deserialize;
use tracesmith_replay::{Float, Part, Recording, Replacement, Tolerance};

use super::ReplayRequest;
use super::selection::{place_before, replaced_launch};
use crate::args::ElementArg;
use clap::ValueEnum;

/// The contents of the file. Unknown fields are errors, because they would be ignored otherwise.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanFile {
    /// Numbers of the calls to run, in this order. All calls by default.
    #[serde(default)]
    calls: Option<Vec<u64>>,
    #[serde(default)]
    replace: Vec<Replace>,
    #[serde(default)]
    tolerance: Vec<ToleranceSpec>,
    #[serde(default)]
    dump: Vec<Dump>,
    #[serde(default)]
    repeat: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Replace {
    kernel: String,
    #[serde(default)]
    nth: Option<usize>,
    file: PathBuf,
    #[serde(default)]
    symbol: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToleranceSpec {
    #[serde(rename = "type")]
    float: String,
    #[serde(default)]
    relative: f64,
    #[serde(default)]
    absolute: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Dump {
    /// The number of the call before which memory is written. The end by default.
    #[serde(default)]
    before: Option<u64>,
    address: u64,
    #[serde(default, rename = "type")]
    element: Option<String>,
    file: PathBuf,
}

/// An array to write during the run.
pub(super) struct Written {
    pub(super) place: usize,
    /// The given address, which can be inside the buffer.
    pub(super) wanted: u64,
    pub(super) address: u64,
    pub(super) bytes: u64,
    pub(super) element: Option<ElementArg>,
    pub(super) file: PathBuf,
}

/// Reads a plan. Paths in it are relative to the file.
pub(super) fn request(path: &Path, recording: &Recording) -> anyhow::Result<ReplayRequest> {
    let name = path.display();
    let text = fs::read(path).with_context(|| format!("reading {name}"))?;
    let file: PlanFile = serde_json::from_slice(&text).with_context(|| format!("reading {name}"))?;
    anyhow::ensure!(
        file.repeat != Some(0),
        "reading {name}: `repeat` must be at least 1"
    );
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut written = file
        .dump
        .iter()
        .map(|dump| array(dump, recording, folder))
        .collect::<anyhow::Result<Vec<Written>>>()?;
    written.sort_by_key(|array| array.place);
    let replacement = |replace: &Replace| {
        let kernel = replaced_launch(&replace.kernel, replace.nth, recording)?;
        let file = folder.join(&replace.file);
        let code = fs::read(&file).with_context(|| format!("reading {}", file.display()))?;
        Ok(Replacement {
            kernel,
            nth: replace.nth,
            code,
            symbol: replace.symbol.clone(),
        })
    };
    Ok(ReplayRequest {
        part: part(file.calls.as_deref(), recording)?,
        tolerances: file
            .tolerance
            .iter()
            .map(tolerance)
            .collect::<anyhow::Result<_>>()?,
        replacements: file
            .replace
            .iter()
            .map(replacement)
            .collect::<anyhow::Result<_>>()?,
        written,
        repeat: file.repeat,
    })
}

fn part(calls: Option<&[u64]>, recording: &Recording) -> anyhow::Result<Part> {
    let Some(calls) = calls else {
        return Ok(Part::whole(recording.commands.len()));
    };
    let place = |number: &u64| {
        let found = recording
            .commands
            .binary_search_by_key(number, |command| command.number);
        found
            .ok()
            .with_context(|| format!("the recording has no call #{number}"))
    };
    let places = calls.iter().map(place).collect::<anyhow::Result<Vec<usize>>>()?;
    Ok(Part::in_order(places))
}

fn tolerance(apart: &ToleranceSpec) -> anyhow::Result<Tolerance> {
    let float = Float::from_name(&apart.float)
        .with_context(|| format!("{:?} is not one of f16, bf16, f32, f64", apart.float))?;
    Ok(Tolerance {
        float,
        absolute: apart.absolute,
        relative: apart.relative,
    })
}

fn array(dump: &Dump, recording: &Recording, folder: &Path) -> anyhow::Result<Written> {
    let (address, bytes) = super::extent(recording, dump.address)?;
    let element = match &dump.element {
        None => None,
        Some(name) => {
            let found = ElementArg::from_str(name, true).ok();
            Some(found.with_context(|| format!("{name:?} is not one of u8, i32, i64, f16, f32, f64"))?)
        }
    };
    Ok(Written {
        place: place_before("`before`", dump.before, recording)?,
        wanted: dump.address,
        address,
        bytes,
        element,
        file: folder.join(&dump.file),
    })
}
