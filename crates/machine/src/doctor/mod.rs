//! Checks whether programs can be recorded on this machine.
//!
//! Every check has a name, a state, a finding and, if something is wrong, a remedy. "no" means that recording does
//! not work. A warning means that it works with limits.

mod clients;
mod cupti;
mod driver;
mod gpus;
mod limits;
mod process;
mod program;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::devices::DevicesReport;

pub use clients::{displaced_library, nsight_compute_above};
pub use program::find as find_program;
pub use tracesmith_cuda::cupti_version;

/// The results of all checks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DoctorReport {
    /// The checks, by topic.
    pub checks: Vec<Check>,
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// A stable name for programs, such as `driver.library`.
    pub name: &'static str,
    /// The subject, for display.
    pub what: &'static str,
    /// The state.
    pub state: State,
    /// The finding.
    pub found: String,
    /// The remedy.
    pub remedy: Option<String>,
}

/// The state of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// No problem.
    Ok,
    /// Recording works with limits, or can be disturbed.
    Warning,
    /// Recording does not work.
    No,
}

impl State {
    /// The name for programs and people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::No => "no",
        }
    }
}

impl Check {
    fn ok(name: &'static str, what: &'static str, found: impl Into<String>) -> Self {
        Self {
            name,
            what,
            state: State::Ok,
            found: found.into(),
            remedy: None,
        }
    }

    fn warning(
        name: &'static str,
        what: &'static str,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            state: State::Warning,
            remedy: Some(remedy.into()),
            ..Self::ok(name, what, found)
        }
    }

    fn no(
        name: &'static str,
        what: &'static str,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            state: State::No,
            remedy: Some(remedy.into()),
            ..Self::ok(name, what, found)
        }
    }
}

/// Inputs that the caller provides.
pub struct Surroundings<'a> {
    /// The environment of recorded programs.
    pub variables: BTreeMap<String, String>,
    /// The memory limit of recording in a target.
    pub target_memory_bytes: u64,
    /// The runtime directory, or why there is none.
    pub runtime_directory: Result<PathBuf, String>,
    /// Attachable processes.
    pub armed: Vec<u32>,
    /// A program to check.
    pub program: Option<PathBuf>,
    /// Queries the version of a libcupti in a separate process. Two copies in one process conflict, and some crash.
    pub cupti_version: &'a dyn Fn(&Path) -> Result<u32, String>,
}

impl Surroundings<'_> {
    fn variable(&self, name: &str) -> Option<&str> {
        self.variables
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }
}

impl DoctorReport {
    /// Runs all checks.
    pub fn new(surroundings: &Surroundings<'_>) -> Self {
        let driver = driver::Driver::find();
        let devices = DevicesReport::new();
        let mut checks = driver.checks(&devices, surroundings);
        checks.extend(gpus::checks(&devices, surroundings));
        checks.extend(cupti::checks(&driver, surroundings));
        checks.extend(clients::checks(surroundings));
        checks.extend(limits::checks(surroundings));
        if let Some(program) = &surroundings.program {
            checks.extend(program::checks(program));
        }
        Self { checks }
    }

    /// Whether recording works.
    pub fn can_record(&self) -> bool {
        self.checks.iter().all(|check| check.state != State::No)
    }

    /// Number of checks with this state.
    pub fn count(&self, state: State) -> usize {
        self.checks.iter().filter(|check| check.state == state).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_no_is_enough() {
        let ok = Check::ok("a", "a", "fine");
        let warning = Check::warning("b", "b", "less", "do this");
        let no = Check::no("c", "c", "nothing", "do that");
        let report = |checks: &[&Check]| DoctorReport {
            checks: checks.iter().map(|check| (*check).clone()).collect(),
        };
        assert!(report(&[&ok, &warning]).can_record());
        assert!(!report(&[&ok, &no]).can_record());
        assert_eq!(report(&[&ok, &warning, &no]).count(State::Warning), 1);
    }

    #[test]
    fn every_check_has_its_own_name_and_every_no_its_remedy() {
        let surroundings = Surroundings {
            variables: BTreeMap::new(),
            target_memory_bytes: 64 << 20,
            runtime_directory: Err("there is none".to_owned()),
            armed: Vec::new(),
            program: Some(PathBuf::from("/bin/sh")),
            cupti_version: &|_| Err("not asked".to_owned()),
        };
        let report = DoctorReport::new(&surroundings);
        let mut names: Vec<_> = report.checks.iter().map(|check| check.name).collect();
        names.sort_unstable();
        assert!(names.is_sorted_by(|a, b| a < b), "{names:?}");
        assert!(
            !report.can_record(),
            "a place to meet is missing, whatever else is there"
        );
        for check in &report.checks {
            assert!(
                check.state == State::Ok || check.remedy.is_some(),
                "{} has no remedy",
                check.name
            );
        }
    }
}
