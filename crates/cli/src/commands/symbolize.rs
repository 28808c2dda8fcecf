//! `tracesmith symbolize`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::json;
use tracesmith_symbols::{Extent, File, Function, ModuleReport, PerfMap, Resolver, Sources};
use tracesmith_trace::{FrameToName, NamedFunction, RewriteReport, Trace, symbolize, units};

use crate::args::{Format, SymbolizeArgs};
use crate::commands::cut::warn_of_losses;
use crate::commands::out_file::{Schema, is_stdout, write_trace};
use crate::input::{open_trace, warn_of_damage};
use crate::output::Output;
use crate::output::table::{Align, TextTable};
use crate::progress::Progress;

pub(crate) fn run(args: &SymbolizeArgs, output: &mut Output) -> anyhow::Result<()> {
    for folder in &args.debug_dir {
        anyhow::ensure!(
            folder.is_dir(),
            "--debug-dir {}: no such directory",
            folder.display()
        );
    }
    let trace = open_trace(&args.file)?;
    let mut resolver = Resolver::new(Sources::with_folders(args.debug_dir.iter().cloned()));
    let mut kept = KeptFrames::new();
    let pids: Vec<u32> = trace.processes.iter().map(|process| process.pid).collect();
    let progress = Progress::new("naming", trace.file_bytes(), output.bar());
    let (report, bytes) = write_trace(&args.out, &[&args.file], Schema::Own, |writer| {
        let mut name = |frame: &FrameToName| {
            let found = functions(&mut resolver, &pids, frame);
            if found.is_empty() && frame.is_named {
                *kept.entry(PathBuf::from(&frame.path)).or_default() += 1;
            }
            found
        };
        Ok(symbolize(&trace, &mut name, writer, &mut |bytes| {
            progress.add(bytes);
        })?)
    })?;
    drop(progress);
    let mut modules = resolver.report();
    // If a file is missing, its frames keep their symbols.
    for module in &mut modules {
        module.unnamed -= kept.get(&module.path).copied().unwrap_or(0).min(module.unnamed);
    }
    let naming = Outcome {
        modules,
        kept: kept.values().sum(),
    };
    show(&trace, &report, &naming, bytes, args, output)
}

/// Frames that kept their symbols, by file.
type KeptFrames = BTreeMap<PathBuf, u64>;

/// The result of symbolizing.
struct Outcome {
    modules: Vec<ModuleReport>,
    kept: u64,
}

/// The functions of a frame. JIT-compiled code is looked up in the perf map of each process.
fn functions(resolver: &mut Resolver, pids: &[u32], frame: &FrameToName) -> Vec<NamedFunction> {
    let found = if frame.path.is_empty() {
        let made = pids.iter().find_map(|pid| {
            resolver.made_at_run_time(&PerfMap::path_of(Path::new("/"), *pid), frame.address)
        });
        made.into_iter().collect()
    } else {
        let file = File {
            root: PathBuf::from("/"),
            path: PathBuf::from(&frame.path),
            build_id: frame.build_id.clone(),
        };
        resolver.functions(&file, frame.address)
    };
    found.into_iter().map(named).collect()
}

fn named(function: Function) -> NamedFunction {
    NamedFunction {
        name: function.name,
        file: function.file,
        line: function.line,
        column: function.column,
    }
}

fn show(
    trace: &Trace,
    report: &RewriteReport,
    outcome: &Outcome,
    bytes: u64,
    args: &SymbolizeArgs,
    output: &mut Output,
) -> anyhow::Result<()> {
    warn_of_damage(trace, &args.file, output);
    warn_of_losses(report, output);
    if is_stdout(&args.out) {
        return Ok(());
    }
    let Outcome { modules, kept } = outcome;
    let named: u64 = modules.iter().map(|module| module.named).sum();
    let unnamed: u64 = modules.iter().map(|module| module.unnamed).sum();
    if output.format != Format::Table {
        let list: Vec<_> = modules.iter().map(json_of).collect();
        return Ok(output.facts(&[
            ("frames_named", json!(named)),
            ("frames_kept", json!(kept)),
            ("frames_unnamed", json!(unnamed)),
            ("modules", json!(list)),
            ("bytes", json!(bytes)),
        ])?);
    }
    let kept_in_words = match kept {
        0 => String::new(),
        kept => format!(", {} keep their symbols", units::count(*kept)),
    };
    output.line(&format!(
        "symbolized {} of {} native frames{kept_in_words} ({})",
        units::count(named),
        units::count(named + kept + unnamed),
        units::bytes(bytes)
    ))?;
    if unnamed == 0 {
        return Ok(());
    }
    let mut table = TextTable::new(&[
        ("not symbolized", Align::Right),
        ("file", Align::Flexible),
        ("build id", Align::Left),
        ("why", Align::Left),
    ]);
    for module in modules.iter().filter(|module| module.unnamed > 0) {
        table.row([
            units::count(module.unnamed).into(),
            module.path.display().to_string().into(),
            module.build_id.clone().into(),
            why(module).into(),
        ]);
    }
    for line in table.lines(output.width()) {
        output.line(&line)?;
    }
    Ok(())
}

fn why(module: &ModuleReport) -> String {
    match module.extent {
        Err(why) => why.to_string(),
        Ok(Extent::Exports) => "stripped: only exported functions have symbols".to_owned(),
        Ok(_) => "no function at these addresses".to_owned(),
    }
}

fn json_of(module: &ModuleReport) -> serde_json::Value {
    json!({
        "path": module.path.display().to_string(),
        "build_id": module.build_id,
        "frames_named": module.named,
        "frames_unnamed": module.unnamed,
        "why": (module.unnamed > 0).then(|| why(module)),
    })
}
