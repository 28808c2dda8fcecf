//! A thousand addresses against another symbolizer.

#![allow(
    clippy::unwrap_used,
    clippy::tests_outside_test_module,
    clippy::print_stdout,
    reason = "a test may stop on any error and say what it skips"
)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use object::{Object, ObjectSymbol, SymbolKind};
use tracesmith_symbols::{Extent, Module, Sources};

/// Addresses in functions of a file, spread over all of them.
fn addresses(program: &Path, count: usize) -> Vec<u64> {
    let bytes = std::fs::read(program).unwrap();
    let file = object::File::parse(&*bytes).unwrap();
    let mut functions: Vec<(u64, u64)> = file
        .symbols()
        .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 8)
        .map(|symbol| (symbol.address(), symbol.size()))
        .collect();
    functions.sort_unstable();
    functions.dedup_by_key(|(start, _)| *start);
    let step = (functions.len() / count).max(1);
    let chosen: Vec<_> = functions.iter().step_by(step).take(count).collect();
    // Somewhere in the middle, another place in each, and several where there are few.
    let place = |at: usize| (at + at / chosen.len()) as u64 % 29 + 1;
    let mut addresses: Vec<u64> = (0..count)
        .map(|at| (at, chosen[at % chosen.len()]))
        .map(|(at, (start, size))| start + size * place(at) / 31)
        .collect();
    addresses.sort_unstable();
    addresses.dedup();
    addresses
}

/// What llvm-symbolizer says: for each address the functions, files and lines, the innermost first.
fn llvm(program: &Path, addresses: &[u64]) -> Option<Vec<Vec<(String, String, u32)>>> {
    let start = |name: &str| {
        let mut command = Command::new(name);
        command.args(["--inlines", "--no-demangle", "--obj"]).arg(program);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()
    };
    // Debian's package has only the name with the version.
    let mut child = start("llvm-symbolizer").or_else(|| start("llvm-symbolizer-19"))?;
    let mut input = child.stdin.take().unwrap();
    let lines: String = addresses
        .iter()
        .map(|address| format!("0x{address:x}\n"))
        .collect();
    let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let answers = text.trim_end().split("\n\n").map(|answer| {
        let lines: Vec<&str> = answer.lines().collect();
        lines
            .chunks_exact(2)
            .map(|pair| {
                let mut place = pair[1].rsplitn(3, ':');
                let _column = place.next();
                let line = place.next().and_then(|line| line.parse().ok()).unwrap_or(0);
                let file = place.next().unwrap_or_default();
                (
                    pair[0].to_owned(),
                    file.rsplit('/').next().unwrap_or_default().to_owned(),
                    line,
                )
            })
            .collect()
    });
    Some(answers.collect())
}

/// Names as they are in the file, made readable by the demanglers themselves.
fn readable(name: &str) -> String {
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return format!("{rust:#}");
    }
    let cpp = cpp_demangle::Symbol::new(name)
        .ok()
        .filter(|_| name.starts_with("_Z"));
    let cpp = cpp.and_then(|symbol| symbol.demangle().ok());
    // A part of a function that was moved away has a symbol of its own.
    let cpp = cpp.as_ref().and_then(|name| name.split(" [clone ").next());
    cpp.unwrap_or(name).to_owned()
}

fn compare(program: &Path) {
    let addresses = addresses(program, 1000);
    let Some(theirs) = llvm(program, &addresses) else {
        return tracesmith_skip::without("llvm", "llvm-symbolizer");
    };
    assert_eq!(theirs.len(), addresses.len());
    let module = Module::open(program, "", &Sources::default()).unwrap();
    let mut different = Vec::new();
    for (address, theirs) in addresses.iter().zip(&theirs) {
        let ours: Vec<_> = module
            .functions(*address)
            .into_iter()
            .map(|function| {
                let file = function.file.rsplit('/').next().filter(|_| function.line > 0);
                let file = file.unwrap_or_default().to_owned();
                (function.name, file, function.line)
            })
            .collect();
        let theirs: Vec<_> = theirs
            .iter()
            .map(|(name, file, line)| {
                // Without a line it is the file that the linker read, which nobody wants to know.
                let file = if file == "??" || *line == 0 { "" } else { file };
                (readable(name), file.to_owned(), *line)
            })
            .collect();
        if ours != theirs {
            let pair = ours.iter().zip(&theirs).find(|(ours, theirs)| ours != theirs);
            let counts = (ours.len(), theirs.len());
            different.push(format!("0x{address:x} {counts:?} {pair:?}"));
        }
    }
    println!(
        "{}: {} of {} differ",
        program.display(),
        different.len(),
        addresses.len()
    );
    // The two read line tables of empty ranges in different ways.
    assert!(
        different.len() * 100 <= addresses.len(),
        "{}",
        different[..different.len().min(10)].join("\n")
    );
}

#[test]
fn a_thousand_addresses_of_a_rust_program_are_those_of_llvm() {
    compare(&std::env::current_exe().unwrap());
}

/// Templates with lambdas and the standard library inlined into them, some hundred times over.
#[test]
fn a_thousand_addresses_of_templates_are_those_of_llvm() {
    const SOURCE: &str = r#"
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>
namespace deep { namespace inner {
template <int N> struct Job {
    std::vector<long> values;
    __attribute__((noinline)) long run(const std::string &name) {
        std::sort(values.begin(), values.end(), [](long a, long b) { return a * N < b * (N + 1); });
        auto last = std::unique(values.begin(), values.end());
        values.erase(last, values.end());
        long sum = N;
        for (char letter : name) sum += letter * values.size();
        return sum + Job<N - 1>{values}.run(name + char('a' + N % 26));
    }
};
template <> struct Job<0> { std::vector<long> values; long run(const std::string &name) { return name.size(); } };
} }
int main(int count, char **words) {
    std::vector<long> values(words ? count : 0, 7);
    std::printf("%ld\n", deep::inner::Job<40>{values}.run(words[0]));
}
"#;
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("jobs.cpp"), folder.path().join("jobs"));
    std::fs::write(&source, SOURCE).unwrap();
    let built = Command::new("c++")
        .args(["-w", "-O1", "-g", "-o"])
        .args([&program, &source])
        .status();
    if !built.is_ok_and(|status| status.success()) {
        return tracesmith_skip::without("cc", "c++");
    }
    assert!(addresses(&program, 1000).len() >= 900);
    compare(&program);
}

#[test]
fn addresses_of_a_cpp_program_are_those_of_llvm() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("program");
    let source = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../fake-cuda/targets/paths.cpp");
    let built = Command::new("c++")
        .args(["-w", "-O2", "-g", "-o"])
        .arg(&program)
        .arg(source)
        .arg("-ldl")
        .status();
    if !built.is_ok_and(|status| status.success()) {
        return tracesmith_skip::without("cc", "c++");
    }
    compare(&program);
}

/// Debug information that was split off is found by the build id, compressed or not, and not taken for another's.
#[test]
fn debug_files_are_found_by_build_id() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let source = "int twice(int n) { return 2 * n; }\nint main(int n, char **v) { return twice(n); }\n";
    std::fs::write(path("program.c"), source).unwrap();
    let run = |program: &str, arguments: &[&str]| {
        let status = Command::new(program)
            .args(arguments)
            .current_dir(folder.path())
            .status();
        status.is_ok_and(|status| status.success())
    };
    let built = run(
        "cc",
        &[
            "-O0",
            "-g",
            "-Wl,--build-id=0xabcdef0123",
            "-o",
            "program",
            "program.c",
        ],
    ) && run(
        "objcopy",
        &[
            "--only-keep-debug",
            "--compress-debug-sections",
            "program",
            "program.split",
        ],
    ) && run("cp", &["program", "whole"])
        && run("strip", &["program"]);
    if !built {
        return tracesmith_skip::without("cc", "cc or binutils");
    }
    let whole = Module::open(&path("whole"), "abcdef0123", &Sources::default()).unwrap();
    assert_eq!(whole.extent(), Extent::Lines);
    let twice = (0x1000..0x2000).find(|address| {
        let functions = whole.functions(*address);
        functions.first().is_some_and(|function| function.name == "twice")
    });
    let twice = twice.unwrap();
    assert!(
        Module::open(&path("program"), "abcdef0123", &Sources::default())
            .map_or(true, |module| module.functions(twice).is_empty())
    );
    let debug = path("debug/.build-id/ab");
    std::fs::create_dir_all(&debug).unwrap();
    std::fs::rename(path("program.split"), debug.join("cdef0123.debug")).unwrap();
    let sources = Sources::with_folders([path("debug")]);
    let module = Module::open(&path("program"), "abcdef0123", &sources).unwrap();
    let functions = module.functions(twice);
    assert_eq!((functions[0].name.as_str(), functions[0].line), ("twice", 1));
    assert!(functions[0].file.ends_with("program.c"));
    // Also on a machine that has the debug file only.
    let module = Module::open(Path::new("/nowhere/program"), "abcdef0123", &sources).unwrap();
    assert_eq!(module.functions(twice)[0].name, "twice");
    assert_eq!(
        Module::open(&path("program"), "abcdef0124", &sources).unwrap_err(),
        tracesmith_symbols::Unresolved::Another
    );
    assert_eq!(
        Module::open(Path::new("/nowhere/program"), "", &sources).unwrap_err(),
        tracesmith_symbols::Unresolved::Missing
    );
}

/// A table of all functions is told from that of the exported ones, which a stripped library still has.
#[test]
fn a_stripped_library_names_what_it_exports() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let source = "static __attribute__((noinline)) int inner(int n) { return n * n; }\nint outer(int n) { return inner(n) + 1; }\n";
    std::fs::write(path("library.c"), source).unwrap();
    for (name, flag, extent) in [
        ("whole.so", "-g0", Extent::Functions),
        ("bare.so", "-s", Extent::Exports),
    ] {
        let built = Command::new("cc")
            .args(["-O1", "-shared", "-fPIC", flag, "-o", name, "library.c"])
            .current_dir(folder.path())
            .status();
        if !built.is_ok_and(|status| status.success()) {
            return tracesmith_skip::without("cc", "");
        }
        let module = Module::open(&path(name), "", &Sources::default()).unwrap();
        assert_eq!(module.extent(), extent, "{name}");
        let mut names: Vec<String> = (0..0x4000)
            .flat_map(|address| module.functions(address))
            .map(|function| function.name)
            .filter(|name| matches!(name.as_str(), "inner" | "outer"))
            .collect();
        names.dedup();
        let known: &[&str] = match extent {
            Extent::Exports => &["outer"],
            _ => &["inner", "outer"],
        };
        assert_eq!(names, known, "{name}");
    }
}
