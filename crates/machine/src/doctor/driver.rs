//! Checks the driver: whether it exists, works and can be used.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use tracesmith_cuda::Error;
use tracesmith_cuda::driver::{self, Version};
use tracesmith_cuda::library::mapped;

use super::{Check, Surroundings};
use crate::devices::DevicesReport;

const IN_A_CONTAINER: &str = "in a container: start it with the host's driver (docker run --gpus all, podman run --device nvidia.com/gpu=all, apptainer run --nv)";

/// The state of the driver.
pub(super) struct Driver {
    loaded: Result<Version, Error>,
    initialised: Result<(), Error>,
    path: Option<PathBuf>,
}

impl Driver {
    /// Finds and initializes the driver.
    pub(super) fn find() -> Self {
        let (loaded, initialised) = match driver::Driver::load() {
            Ok(driver) => (driver.version(), driver.initialise()),
            Err(error) => (Err(error), Ok(())),
        };
        Self {
            loaded,
            initialised,
            path: mapped("libcuda.so").into_iter().next(),
        }
    }

    /// The newest CUDA version that the driver supports.
    pub(super) fn version(&self) -> Option<Version> {
        self.loaded.as_ref().ok().copied()
    }

    /// Whether CUDA programs run.
    pub(super) fn works(&self) -> bool {
        self.loaded.is_ok() && self.initialised.is_ok()
    }

    pub(super) fn checks(&self, devices: &DevicesReport, surroundings: &Surroundings<'_>) -> Vec<Check> {
        let mut checks = vec![self.library(devices)];
        if self.loaded.is_ok() {
            checks.push(self.initialises(surroundings));
        }
        checks.push(self.nodes(Path::new("/dev")));
        checks.extend(hardware_counters(Path::new("/proc/driver/nvidia/params")));
        checks
    }

    fn library(&self, devices: &DevicesReport) -> Check {
        let (name, what) = ("driver.library", "NVIDIA driver");
        match &self.loaded {
            Ok(cuda) => {
                let version = devices
                    .driver
                    .as_ref()
                    .map(|version| format!("driver {version}, "))
                    .unwrap_or_default();
                let path = self
                    .path
                    .as_ref()
                    .map(|path| format!(", {}", path.display()))
                    .unwrap_or_default();
                Check::ok(name, what, format!("{version}CUDA {cuda}{path}"))
            }
            Err(error @ Error::Missing { .. }) => Check::no(
                name,
                what,
                error.to_string(),
                format!("on a machine with a GPU: install the NVIDIA driver; {IN_A_CONTAINER}"),
            ),
            Err(error) => Check::no(
                name,
                what,
                error.to_string(),
                "update the NVIDIA driver: TraceSmith needs CUDA 11.4 (driver 470) or later",
            ),
        }
    }

    fn initialises(&self, surroundings: &Surroundings<'_>) -> Check {
        let (name, what) = ("driver.initialises", "CUDA initializes");
        match &self.initialised {
            Ok(()) => Check::ok(name, what, "yes"),
            Err(error) => Check::no(
                name,
                what,
                error.to_string(),
                remedy_of(error.code(), surroundings),
            ),
        }
    }

    /// The device files of the driver.
    fn nodes(&self, folder: &Path) -> Check {
        let (name, what) = ("driver.nodes", "device nodes");
        let nodes = device_nodes(folder);
        let closed: Vec<String> = nodes
            .iter()
            .filter(|node| access(node.as_path(), Access::READ_OK | Access::WRITE_OK).is_err())
            .map(|node| node.display().to_string())
            .collect();
        if !closed.is_empty() {
            return Check::no(
                name,
                what,
                format!("no permission for {}", closed.join(", ")),
                "give this user read and write permission: usually group video or render (usermod -aG video,render USER), or mode 0666 set by nvidia-modprobe",
            );
        }
        let found = |nodes: &[PathBuf]| {
            nodes
                .iter()
                .map(|node| node.display().to_string())
                .collect::<Vec<_>>()
                .join(", ")
        };
        match (nodes.is_empty(), self.works()) {
            (false, _) => Check::ok(name, what, found(&nodes)),
            (true, true) => Check::ok(name, what, "none; the driver works without them"),
            (true, false) => Check::no(
                name,
                what,
                format!("no {}/nvidia* found", folder.display()),
                format!("load the kernel module (modprobe nvidia nvidia-uvm); {IN_A_CONTAINER}"),
            ),
        }
    }
}

/// The remedy for an error code of the driver. <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html>
fn remedy_of(code: Option<i64>, surroundings: &Surroundings<'_>) -> String {
    match code {
        Some(100) if surroundings.variables.contains_key("CUDA_VISIBLE_DEVICES") => {
            "CUDA_VISIBLE_DEVICES hides every GPU: unset it, or set it to a GPU".to_owned()
        }
        Some(100) => format!("check that nvidia-smi lists a GPU; {IN_A_CONTAINER}"),
        Some(802) => "wait for the fabric manager, or start it (systemctl start nvidia-fabricmanager)".to_owned(),
        Some(803) => "the driver library and the kernel module have different versions: reboot, or reload the module; restart a container".to_owned(),
        Some(804) => "remove the compatibility package (cuda-compat) from the library path: this GPU needs the driver's own library".to_owned(),
        Some(3 | 999) => "check dmesg for NVRM errors; after a suspend, reload nvidia-uvm (modprobe -r nvidia-uvm && modprobe nvidia-uvm)".to_owned(),
        _ => "check that nvidia-smi works and dmesg shows no NVRM errors".to_owned(),
    }
}

fn device_nodes(folder: &Path) -> Vec<PathBuf> {
    let mut nodes: Vec<PathBuf> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| {
            let name = entry.file_name();
            let Some(rest) = name.as_bytes().strip_prefix(b"nvidia") else {
                return false;
            };
            rest == b"ctl" || rest == b"-uvm" || (!rest.is_empty() && rest.iter().all(u8::is_ascii_digit))
        })
        .map(|entry| entry.path())
        .collect();
    nodes.sort();
    nodes
}

/// Whether only root can use hardware counters. Tracing does not need them.
fn hardware_counters(params: &Path) -> Option<Check> {
    let restricted = is_restricted(&fs::read_to_string(params).ok()?)?;
    let found = if restricted {
        "root only; TraceSmith does not need them (NVreg_RestrictProfilingToAdminUsers=0 allows every user)"
    } else {
        "every user"
    };
    Some(Check::ok("driver.counters", "hardware counters", found))
}

/// Whether the driver's parameters restrict counters.
fn is_restricted(params: &str) -> Option<bool> {
    params.lines().find_map(|line| {
        let value = line.strip_prefix("RmProfilingAdminOnly:")?;
        Some(value.trim() != "0")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drivers_parameters_say_who_may_count() {
        assert_eq!(
            is_restricted("ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: 1\n"),
            Some(true)
        );
        assert_eq!(is_restricted("RmProfilingAdminOnly: 0\n"), Some(false));
        assert_eq!(is_restricted("RegistryDwords: \"\"\n"), None);
    }

    #[test]
    fn nodes_are_those_of_the_driver() {
        let folder = tempfile::tempdir().unwrap();
        for name in [
            "nvidia0",
            "nvidia12",
            "nvidiactl",
            "nvidia-uvm",
            "nvidia-modeset",
            "null",
            "nvidia",
        ] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let names: Vec<_> = device_nodes(folder.path())
            .iter()
            .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
            .collect();
        assert_eq!(names, ["nvidia-uvm", "nvidia0", "nvidia12", "nvidiactl"]);
    }
}
