//! Logs as LLVM's own reader sees them, record by record and field by field.

#![allow(clippy::unwrap_used, reason = "a test may stop on any error")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use tracesmith_trace::Trace;

use super::names::FunctionNames;
use super::records::{Record, RecordKind};
use super::sniff;
use super::tests::records_of;
use crate::import::{ImportOptions, Input, Sink, import, support};

/// A tool of LLVM in whatever version is installed.
fn tool(name: &str) -> Option<String> {
    let names = [
        format!("{name}-19"),
        name.to_owned(),
        format!("{name}-22"),
        format!("{name}-14"),
    ];
    let found = names.into_iter().find(|name| {
        Command::new(name)
            .arg("--version")
            .output()
            .is_ok_and(|output| output.status.success())
    });
    if found.is_none() {
        tracesmith_skip::without("llvm", name);
    }
    found
}

/// A record as `llvm-xray convert` prints it, by the names of its fields.
fn converted(convert: &str, log: &Path, program: Option<&Path>) -> Vec<BTreeMap<String, String>> {
    let mut command = Command::new(convert);
    command.args(["convert", "-f", "yaml", "--sort=false", "-o", "-"]);
    if let Some(program) = program {
        command.args(["--symbolize", "--instr_map"]).arg(program);
    }
    let output = command.arg(log).output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().filter_map(yaml_record).collect()
}

/// `- { type: 0, func-id: 7, function: 'f(int, int)', args: [ 1, 2 ], … }`
fn yaml_record(line: &str) -> Option<BTreeMap<String, String>> {
    let mut rest = line.trim().strip_prefix("- {")?.strip_suffix('}')?.trim();
    let mut fields = BTreeMap::new();
    while let Some((key, value)) = rest.split_once(':') {
        let value = value.trim_start();
        let length = match value.chars().next() {
            Some('\'') => 1 + value[1..].find('\'').unwrap() + 1,
            Some('[') => value.find(']').unwrap() + 1,
            _ => value.find(',').unwrap_or(value.len()),
        };
        let clean = value[..length].trim_matches(['\'', '[', ']', ' ']);
        fields.insert(key.trim().to_owned(), clean.to_owned());
        rest = value[length..].trim_start_matches([',', ' ']);
    }
    Some(fields)
}

fn ours(record: &Record, names: Option<&FunctionNames>) -> BTreeMap<String, String> {
    let kind = match record.kind {
        RecordKind::Enter => "function-enter",
        RecordKind::Exit => "function-exit",
        RecordKind::TailExit => "function-tail-exit",
        RecordKind::EnterWithArgument => "function-enter-arg",
        RecordKind::CustomEvent => "custom-event",
        RecordKind::TypedEvent => "typed-event",
    };
    let mut fields = BTreeMap::from([
        ("kind", kind.to_owned()),
        ("cpu", record.cpu.to_string()),
        ("thread", record.thread.to_string()),
        ("process", record.process.to_string()),
        ("tsc", record.counter.to_string()),
        ("data", String::from_utf8_lossy(&record.data).into_owned()),
    ]);
    if record.data.is_empty() {
        fields.insert("func-id", record.function.to_string());
        let name = match names {
            // LLVM closes nested template arguments without the space that C++ once needed.
            Some(names) => names
                .get(record.function)
                .unwrap()
                .replace("> >", ">>")
                .replace("> >", ">>"),
            None => record.function.to_string(),
        };
        fields.insert("function", name);
    }
    if !record.arguments.is_empty() {
        let arguments: Vec<String> = record.arguments.iter().map(u64::to_string).collect();
        fields.insert("args", arguments.join(", "));
    }
    fields
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
}

/// Compares all fields of all records, thread by thread: LLVM's reader gives threads out in the order of a hash table.
/// For events it repeats the last function's number, which means nothing.
fn assert_same(log: &Path, program: Option<&Path>, convert: &str) -> usize {
    let mut theirs = converted(convert, log, program);
    for record in &mut theirs {
        record.remove("type");
        if record["kind"].ends_with("event") {
            record.remove("func-id");
            record.remove("function");
        }
    }
    let names = program.map(|program| FunctionNames::read(program).unwrap());
    let (records, breaks) = records_of(&std::fs::read(log).unwrap());
    assert_eq!(breaks, [], "{}", log.display());
    let mut ours: Vec<_> = records
        .iter()
        .map(|record| ours(record, names.as_ref()))
        .collect();
    let by_thread = |record: &BTreeMap<String, String>| (record["process"].clone(), record["thread"].clone());
    theirs.sort_by_key(by_thread);
    ours.sort_by_key(by_thread);
    assert_eq!(ours, theirs, "{}", log.display());
    ours.len()
}

#[test]
fn stored_logs_are_read_as_llvm_reads_them() {
    // Counted with `llvm-xray-19 convert -f yaml LOG -o - | grep -c 'kind:'`.
    for (name, count) in [
        ("xray/basic-v3-clang14.xray", 190),
        ("xray/fdr-v5-clang14.xray", 188),
        ("xray/fdr-v5-custom-clang19.xray", 194),
        ("xray/fdr-v5-custom-clang22.xray", 194),
    ] {
        let Some(log) = support::data(name) else {
            continue;
        };
        let bytes = std::fs::read(&log).unwrap();
        assert!(sniff(&bytes), "{name}");
        assert_eq!(records_of(&bytes).0.len(), count, "{name}");
        if let Some(convert) = tool("llvm-xray") {
            assert_eq!(assert_same(&log, None, &convert), count);
        }
    }
}

/// Builds the collection's program with whatever clang is here, runs it in both modes, and compares all records.
#[test]
fn fresh_logs_are_read_as_llvm_reads_them_with_names() {
    let (Some(source), Some(clang), Some(convert)) =
        (support::data("xray/y.cc"), tool("clang++"), tool("llvm-xray"))
    else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("program");
    let built = Command::new(clang)
        .args([
            "-std=c++17",
            "-O2",
            "-g",
            "-fxray-instrument",
            "-fxray-instruction-threshold=1",
            "-DCUSTOM",
        ])
        .arg(source)
        .arg("-o")
        .arg(&program)
        .arg("-lpthread")
        .output()
        .unwrap();
    if !built.status.success() {
        return tracesmith_skip::without("llvm", "clang++ with XRay");
    }
    for (mode, calls) in [("xray-basic", 90), ("xray-fdr", 90)] {
        let base = folder.path().join(mode).display().to_string();
        let ran = Command::new(&program)
            .env(
                "XRAY_OPTIONS",
                format!("patch_premain=true xray_mode={mode} xray_logfile_base={base}."),
            )
            .env("XRAY_BASIC_OPTIONS", "func_duration_threshold_us=0")
            .output()
            .unwrap();
        assert!(ran.status.success());
        let log = log_of(folder.path(), mode);
        assert!(assert_same(&log, Some(&program), &convert) > calls * 2);
        let trace = import_with(&log, &program);
        let (_, rows) = trace.host_calls.columns().next().unwrap();
        let names: Vec<&str> = (0..rows.start.len())
            .map(|row| trace.string(rows.shape.get(row).name))
            .collect();
        let count = |name| names.iter().filter(|found| **found == name).count();
        assert_eq!(
            (count("leaf(int)"), count("mid(int)"), count("work(int)")),
            (60, 30, 2),
            "{mode}"
        );
    }
}

fn log_of(folder: &Path, mode: &str) -> PathBuf {
    let mut logs = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let prefix = format!("{mode}.");
    logs.find(|path| path.file_name().unwrap().to_str().unwrap().starts_with(&prefix))
        .unwrap()
}

fn import_with(log: &Path, program: &Path) -> Trace {
    let mut bytes = std::io::Cursor::new(Vec::new());
    let sink: Box<dyn Sink + '_> = Box::new(&mut bytes);
    let mut writer = tracesmith_format::Writer::new(sink, Default::default()).unwrap();
    let options = ImportOptions {
        binary: Some(program.to_owned()),
        ..ImportOptions::default()
    };
    import(vec![Input::open(log).unwrap()], &options, &mut writer).unwrap();
    writer.seal().unwrap();
    crate::open_bytes(bytes.into_inner()).unwrap()
}
