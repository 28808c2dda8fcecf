//! Other tools that use CUPTI or debug CUDA programs, and conflict with TraceSmith.

use std::env;
use std::path::{Path, PathBuf};

use tracesmith_wire::environment::{self, is_injected_library};

use super::process::{ancestors, name_of};
use super::{Check, Surroundings};

/// Programs that use CUPTI or stop a program's kernels.
const TOOLS: &[&str] = &[
    "nsys",
    "nsys-launcher",
    "ncu",
    "nv-nsight-cu-cli",
    "nvprof",
    "cuda-gdb",
    "compute-sanitizer",
    "cuda-memcheck",
];

/// The names of Nsight Compute.
const NSIGHT_COMPUTE: &[&str] = &["ncu", "nv-nsight-cu-cli"];

/// Parts of the names of libraries that such tools preload.
const PRELOADED: &[&str] = &["nsight", "nsys", "ToolsInjection", "cuda-injection", "sanitizer"];

pub(super) fn checks(surroundings: &Surroundings<'_>) -> Vec<Check> {
    vec![
        injection(
            surroundings,
            "tools.injection",
            environment::CUDA_INJECTION,
            "library loaded with CUDA",
        ),
        injection(
            surroundings,
            "tools.nvtx",
            environment::NVTX_INJECTION,
            "library loaded with NVTX",
        ),
        preload(surroundings),
        running_under(Path::new("/proc")),
        armed(Path::new("/proc"), &surroundings.armed),
    ]
}

fn injection(
    surroundings: &Surroundings<'_>,
    name: &'static str,
    variable: &'static str,
    what: &'static str,
) -> Check {
    match surroundings.variable(variable) {
        None => Check::ok(name, what, "none"),
        Some(path) if is_injected_library(Path::new(path)) && Path::new(path).exists() => {
            Check::ok(name, what, format!("TraceSmith: {path}"))
        }
        Some(path) if is_injected_library(Path::new(path)) => Check::warning(
            name,
            what,
            format!("TraceSmith, but the file is missing: {path}"),
            format!("set the variables again (eval \"$(tracesmith env)\") or unset {variable}"),
        ),
        Some(path) => Check::warning(
            name,
            what,
            format!("from another tool: {path}"),
            format!("unset {variable}: it names one library, and tracesmith profile replaces it"),
        ),
    }
}

fn preload(surroundings: &Surroundings<'_>) -> Check {
    let (name, what) = ("tools.preload", "preloaded libraries");
    let Some(libraries) = surroundings.variable(environment::PRELOAD) else {
        return Check::ok(name, what, "none");
    };
    let of_a_tool: Vec<&str> = libraries
        .split([':', ' '])
        .filter(|library| PRELOADED.iter().any(|part| library.contains(part)))
        .collect();
    if of_a_tool.is_empty() {
        return Check::ok(
            name,
            what,
            format!("{libraries}; TraceSmith's library is loaded before them"),
        );
    }
    Check::warning(
        name,
        what,
        format!("from another tool: {}", of_a_tool.join(", ")),
        "unset LD_PRELOAD, or run without that tool: only one of the two can use CUPTI",
    )
}

/// The library of another tool that the driver would load, if TraceSmith did not replace it.
pub fn displaced_library() -> Option<PathBuf> {
    let library = PathBuf::from(env::var_os(environment::CUDA_INJECTION)?);
    (!library.as_os_str().is_empty() && !is_injected_library(&library)).then_some(library)
}

/// The pid of Nsight Compute, if it is an ancestor of this process. Nsight Compute kills programs that load another
/// tool's library.
pub fn nsight_compute_above() -> Option<u32> {
    let mut above = ancestors(Path::new("/proc")).into_iter();
    let tool = above.find(|process| NSIGHT_COMPUTE.contains(&process.name.as_str()));
    tool.map(|process| process.pid)
}

fn running_under(proc: &Path) -> Check {
    let (name, what) = ("tools.parents", "other profilers above this shell");
    let tool = ancestors(proc)
        .into_iter()
        .find(|process| TOOLS.contains(&process.name.as_str()));
    match tool {
        None => Check::ok(name, what, "none"),
        Some(tool) => Check::no(
            name,
            what,
            format!("{} (process {})", tool.name, tool.pid),
            "run tracesmith without the other tool: only one of the two can use CUPTI",
        ),
    }
}

fn armed(proc: &Path, processes: &[u32]) -> Check {
    let (name, what) = ("tools.armed", "attachable processes");
    let named: Vec<String> = processes
        .iter()
        .filter_map(|pid| Some(format!("{} ({pid})", name_of(proc, *pid)?)))
        .collect();
    let found = if named.is_empty() {
        "none; programs started with the variables of tracesmith env are attachable".to_owned()
    } else {
        format!("{}; tracesmith record can attach to them", named.join(", "))
    };
    Check::ok(name, what, found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::State;

    fn with(variable: &str, value: &str) -> Surroundings<'static> {
        Surroundings {
            variables: [(variable.to_owned(), value.to_owned())].into(),
            target_memory_bytes: 0,
            runtime_directory: Err(String::new()),
            armed: Vec::new(),
            program: None,
            cupti_version: &|_| Err(String::new()),
        }
    }

    fn state(variable: &'static str, value: &str) -> State {
        injection(&with(variable, value), "x", variable, "x").state
    }

    #[test]
    fn our_own_library_is_nobody_in_the_way() {
        let folder = tempfile::tempdir().unwrap();
        let library = folder.path().join("libtracesmith_inject.so");
        assert_eq!(
            state("CUDA_INJECTION64_PATH", library.to_str().unwrap()),
            State::Warning
        );
        std::fs::write(&library, "").unwrap();
        assert_eq!(
            state("CUDA_INJECTION64_PATH", library.to_str().unwrap()),
            State::Ok
        );
        let others = folder.path().join("tracesmith/libToolsInjection64.so");
        std::fs::create_dir(others.parent().unwrap()).unwrap();
        std::fs::write(&others, "").unwrap();
        assert_eq!(
            state("CUDA_INJECTION64_PATH", others.to_str().unwrap()),
            State::Warning,
            "another tool's, in a folder of our name"
        );
        assert_eq!(
            state("NVTX_INJECTION64_PATH", "/opt/nsys/libToolsInjection64.so"),
            State::Warning
        );
        assert_eq!(
            state("CUDA_INJECTION64_PATH", ""),
            State::Ok,
            "an empty variable is none"
        );
    }

    #[test]
    fn only_tools_among_preloaded_libraries_are_in_the_way() {
        assert_eq!(
            preload(&with("LD_PRELOAD", "/usr/lib/libjemalloc.so.2")).state,
            State::Ok
        );
        let tool = preload(&with(
            "LD_PRELOAD",
            "/usr/lib/libjemalloc.so.2:/opt/nvidia/nsight-systems/libx.so",
        ));
        assert_eq!(tool.state, State::Warning);
        assert!(!tool.found.contains("jemalloc"));
    }
}
