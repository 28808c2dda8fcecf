//! `tracesmith doctor`.

use std::path::Path;

use serde_json::{Value, json};
use tracesmith_collect::{Capture, STACK_MEMORY_BYTES};
use tracesmith_machine::doctor::{Check, State, find_program};
use tracesmith_machine::{DoctorReport, Surroundings};
use tracesmith_wire::control::armed;

use super::ourselves::run_bare;
use crate::args::{DoctorArgs, Format};
use crate::exit::Exit;
use crate::output::{BAD, CAREFUL, FAINT, GOOD, Output};

pub(crate) fn run(args: &DoctorArgs, output: &mut Output) -> anyhow::Result<Exit> {
    let target_memory_bytes = Capture::default().memory_bytes + STACK_MEMORY_BYTES;
    // A name that is not on `PATH` is reported as unreadable.
    let program = args
        .program
        .as_ref()
        .map(|name| find_program(name, std::env::var_os("PATH").as_deref()).unwrap_or_else(|| name.clone()));
    let lossy = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
    let report = DoctorReport::new(&Surroundings {
        variables: std::env::vars_os()
            .map(|(name, value)| (lossy(name), lossy(value)))
            .collect(),
        target_memory_bytes,
        runtime_directory: armed::directory().map_err(|error| error.to_string()),
        armed: armed::waiting().into_iter().map(|(process, _)| process).collect(),
        program,
        cupti_version: &cupti_version,
    });
    match output.format {
        Format::Json => output.json(&json_of(&report, target_memory_bytes))?,
        Format::Csv => {
            output.csv(["name", "state", "what", "found", "remedy"])?;
            for check in &report.checks {
                let remedy = check.remedy.as_deref().unwrap_or_default();
                output.csv([check.name, check.state.name(), check.what, &check.found, remedy])?;
            }
        }
        Format::Table => show(&report, output)?,
    }
    Ok(Exit::from_check(report.can_record()))
}

/// Runs in a separate process, because it can crash.
fn cupti_version(library: &Path) -> Result<u32, String> {
    let report =
        run_bare(&["cupti-version".as_ref(), library.as_os_str()]).map_err(|error| error.to_string())?;
    let version = report["version"]
        .as_u64()
        .and_then(|version| version.try_into().ok());
    version.ok_or_else(|| "no version found".to_owned())
}

fn show(report: &DoctorReport, output: &mut Output) -> anyhow::Result<()> {
    let widest = report
        .checks
        .iter()
        .map(|check| check.what.len())
        .max()
        .unwrap_or(0);
    for check in &report.checks {
        let Check {
            what, state, found, ..
        } = check;
        let (style, word) = match state {
            State::Ok => (GOOD, "ok  "),
            State::Warning => (CAREFUL, "warn"),
            State::No => (BAD, "no  "),
        };
        output.line(&format!(
            "{style}{word}{style:#}  {what:<widest$}  {}",
            found.trim_end()
        ))?;
        if let Some(remedy) = &check.remedy {
            output.line(&format!("      {:widest$}  {FAINT}remedy:{FAINT:#} {remedy}", ""))?;
        }
    }
    output.line("")?;
    let warnings = match report.count(State::Warning) {
        0 => String::new(),
        1 => ", with one warning".to_owned(),
        warnings => format!(", with {warnings} warnings"),
    };
    if report.can_record() {
        output.line(&format!("{GOOD}recording works here{GOOD:#}{warnings}"))?;
    } else {
        output.line(&format!("{BAD}recording does not work here{BAD:#}{warnings}"))?;
    }
    Ok(())
}

fn json_of(report: &DoctorReport, target_memory_bytes: u64) -> Value {
    let checks: Vec<Value> = report
        .checks
        .iter()
        .map(|check| {
            json!({
                "name": check.name, "what": check.what, "state": check.state.name(), "found": check.found,
                "remedy": check.remedy,
            })
        })
        .collect();
    json!({ "can_record": report.can_record(), "target_memory_bytes": target_memory_bytes, "checks": checks })
}
