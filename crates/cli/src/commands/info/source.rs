//! What a file is: a trace, or a file of another tool that was read as one.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use tracesmith_format::MAGIC;
use tracesmith_trace::{Trace, units};

/// The bytes that files compressed with gzip and zstd start with.
const GZIP: &[u8] = b"\x1f\x8b";
const ZSTD: &[u8] = b"\x28\xb5\x2f\xfd";

/// What a file is.
pub(super) enum Source {
    /// A trace of our own.
    Native,
    /// A file of another tool. The trace exists only in memory, so its size and blocks say nothing about the file.
    Foreign(Foreign),
}

/// A file of another tool.
pub(super) struct Foreign {
    /// Its format, in words.
    pub(super) title: String,
    /// Its size. `None` if it came from a pipe.
    pub(super) bytes: Option<u64>,
    /// How it is compressed, if it is.
    pub(super) compression: Option<&'static str>,
    /// Versions that it states.
    pub(super) versions: Vec<String>,
}

impl Source {
    pub(super) fn of(trace: &Trace, file: &Path) -> Self {
        let Some(title) = trace.metadata.get("import.format") else {
            return Source::Native;
        };
        // A trace that `import` wrote keeps the format of its origin. From a pipe, its ID shows that it was a file.
        let start = start_of(file);
        let has_id = trace.header().is_some_and(|header| header.id != [0; 16]);
        if start.starts_with(&MAGIC) || (start.is_empty() && has_id) {
            return Source::Native;
        }
        Source::Foreign(Foreign {
            title: title.clone(),
            bytes: std::fs::metadata(file).ok().map(|file| file.len()),
            compression: match &start {
                start if start.starts_with(GZIP) => Some("gzip"),
                start if start.starts_with(ZSTD) => Some("zstd"),
                _ => None,
            },
            versions: versions(trace),
        })
    }
}

impl Foreign {
    /// `PyTorch profiler (Kineto) JSON, schema 1, CUDA 12.4, 1.1 MiB (gzip)`.
    pub(super) fn text(&self) -> String {
        let mut parts = vec![self.title.clone()];
        parts.extend(self.versions.iter().cloned());
        if let Some(bytes) = self.bytes {
            parts.push(match self.compression {
                Some(compression) => format!("{} ({compression})", units::bytes(bytes)),
                None => units::bytes(bytes),
            });
        }
        parts.join(", ")
    }
}

/// The first bytes of a file; none of a pipe, which was read already.
fn start_of(file: &Path) -> Vec<u8> {
    let mut start = Vec::new();
    if file != Path::new("-")
        && let Ok(file) = File::open(file)
    {
        // A file that was read a moment ago; what cannot be read now is not recognized.
        let _ = file.take(MAGIC.len() as u64).read_to_end(&mut start);
    }
    start
}

/// The versions that a file states, in words.
fn versions(trace: &Trace) -> Vec<String> {
    let known = |key: &str| trace.metadata.get(key).map(|text| text.trim_matches('"'));
    let cuda = |number: &str| {
        let number: u64 = number.parse().ok()?; // a version in another form is not shown
        Some(format!("{}.{}", number / 1000, number % 1000 / 10))
    };
    let mut versions = Vec::new();
    if let Some(schema) = known("import.json.schemaVersion") {
        versions.push(format!("schema {schema}"));
    }
    for (key, name) in [
        ("import.json.cuda_runtime_version", "CUDA runtime"),
        ("import.json.cuda_driver_version", "CUDA driver"),
        ("nsys.system.CudaDriverVersion", "CUDA driver"),
    ] {
        if let Some(version) = known(key).and_then(cuda) {
            versions.push(format!("{name} {version}"));
        }
    }
    versions
}
