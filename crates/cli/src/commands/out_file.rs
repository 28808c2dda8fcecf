//! Output files. They are written next to their final path, and renamed when they are complete.

use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufWriter, IsTerminal, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use tracesmith_format::{Writer, WriterOptions};
use tracesmith_interop::import::{ImportWriter, Sink};

use crate::args::OutArgs;
use crate::commands::leftovers;
use crate::output::StdoutError;

/// Options for the writer of a new trace. Rewriting has time for a higher zstd level than recording.
fn options() -> WriterOptions {
    // A new trace has a random ID. The hasher's seed is random.
    let random = || RandomState::new().hash_one(std::process::id());
    let mut id = [0; 16];
    id[..8].copy_from_slice(&random().to_le_bytes());
    id[8..].copy_from_slice(&random().to_le_bytes());
    WriterOptions {
        id,
        level: 3,
        ..WriterOptions::default()
    }
}

/// How a trace starts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Schema {
    /// With the schema of this version.
    Own,
    /// With blocks that were copied from another file.
    Copied,
}

/// A writer to any output.
pub(crate) type TraceWriter = ImportWriter<'static>;

/// Writes a trace with `fill`. Returns the result of `fill` and the size.
pub(crate) fn write_trace<R>(
    args: &OutArgs,
    inputs: &[&Path],
    schema: Schema,
    fill: impl FnOnce(&mut TraceWriter) -> anyhow::Result<R>,
) -> anyhow::Result<(R, u64)> {
    write_out(args, inputs, |target| match target {
        Target::File(file) => {
            let sink = Box::new(BufWriter::new(file.try_clone()?));
            let (filled, _) = write_to(sink, Completion::Sealed, schema, fill)?;
            Ok((filled, file.metadata()?.len()))
        }
        Target::Stream(stream) => write_to(Box::new(OneWay(stream)), Completion::Streamed, schema, fill),
    })
}

/// The output.
pub(crate) enum Target {
    /// A new file.
    File(File),
    /// A pipe or a device, which cannot seek.
    Stream(Box<dyn Write>),
}

/// Opens the output, runs `fill`, and renames a complete file into place.
pub(crate) fn write_out<R>(
    args: &OutArgs,
    inputs: &[&Path],
    fill: impl FnOnce(Target) -> anyhow::Result<R>,
) -> anyhow::Result<R> {
    if is_stdout(args) {
        if io::stdout().is_terminal() {
            bail!("the output is binary; redirect standard output, or name a file with -o");
        }
        let written = fill(Target::Stream(Box::new(io::stdout())));
        return written.map_err(|error| match is_broken_pipe(&error) {
            true => StdoutError(io::ErrorKind::BrokenPipe.into()).into(),
            false => error.context("writing to standard output"),
        });
    }
    refuse_to_destroy(args, inputs)?;
    let what = || format!("writing {}", args.out.display());
    if fs::metadata(&args.out).is_ok_and(|metadata| !metadata.is_file()) {
        let device = File::options().write(true).open(&args.out).with_context(what)?;
        return fill(Target::Stream(Box::new(device))).with_context(what);
    }
    let unfinished = Unfinished::create(&args.out).with_context(what)?;
    let file = unfinished.file.try_clone().with_context(what)?;
    let result = fill(Target::File(file)).with_context(what)?;
    unfinished.file.sync_all().with_context(what)?;
    unfinished.put_in_place(&args.out).with_context(what)?;
    Ok(result)
}

/// Whether the reader of a pipe has exited. This is not an error for standard output.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let error = cause.downcast_ref::<io::Error>();
        error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    })
}

/// Runs `fill` with a temporary path next to the output, and renames it when it is complete. For writers that open
/// files themselves.
pub(crate) fn write_path<R>(
    args: &OutArgs,
    inputs: &[&Path],
    fill: impl FnOnce(&Path) -> anyhow::Result<R>,
) -> anyhow::Result<R> {
    let what = || format!("writing {}", args.out.display());
    if fs::metadata(&args.out).is_ok_and(|metadata| metadata.is_dir()) {
        let is_empty = fs::read_dir(&args.out).with_context(what)?.next().is_none();
        if !is_empty {
            bail!(
                "{} is a folder that is not empty; name a new one",
                args.out.display()
            );
        }
    } else {
        refuse_to_destroy(args, inputs)?;
    }
    let place = |partial: &Path| fs::rename(partial, &args.out);
    leftovers::write(&partial_path(&args.out), fill, place).with_context(what)
}

/// Like [`write_path`], for a folder that may exist if `args` allow it. New files replace files with the same name,
/// after all were written.
pub(crate) fn write_folder<R>(
    args: &OutArgs,
    fill: impl FnOnce(&Path) -> anyhow::Result<R>,
) -> anyhow::Result<R> {
    let folder = args.out.display();
    let what = || format!("writing {folder}");
    if args.out.exists() {
        let is_empty = fs::read_dir(&args.out).with_context(what)?.next().is_none();
        anyhow::ensure!(
            args.force || is_empty,
            "{folder} is not empty; write into it with --force"
        );
    }
    if let Some(parent) = args.out.parent() {
        fs::create_dir_all(parent).with_context(what)?;
    }
    let place = |partial: &Path| {
        // This also replaces an empty folder.
        if fs::rename(partial, &args.out).is_ok() {
            return Ok(());
        }
        for entry in fs::read_dir(partial)? {
            let entry = entry?;
            let target = args.out.join(entry.file_name());
            if target.is_dir() {
                fs::remove_dir_all(&target)?;
            }
            fs::rename(entry.path(), target)?;
        }
        fs::remove_dir(partial)
    };
    leftovers::write(&partial_path(&args.out), fill, place).with_context(what)
}

/// A file next to its final path. If the file system supports it, it has no name until it is complete, so that
/// nothing remains if the program is killed. Otherwise it is removed on failure.
struct Unfinished {
    file: File,
    name: Option<PathBuf>,
}

impl Unfinished {
    fn create(out: &Path) -> io::Result<Self> {
        let directory = out
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        let nameless = rustix::fs::open(
            directory,
            OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC,
            Mode::from_raw_mode(0o666),
        );
        if let Ok(descriptor) = nameless {
            return Ok(Unfinished {
                file: descriptor.into(),
                name: None,
            });
        }
        let name = partial_path(out);
        Ok(Unfinished {
            file: File::create(&name)?,
            name: Some(name),
        })
    }

    /// Gives the file its name. An existing file is replaced atomically.
    fn put_in_place(mut self, out: &Path) -> io::Result<()> {
        let name = match self.name.take() {
            Some(name) => name,
            None => {
                let name = partial_path(out);
                let descriptor = format!("/proc/self/fd/{}", self.file.as_raw_fd());
                rustix::fs::linkat(CWD, &descriptor, CWD, &name, AtFlags::SYMLINK_FOLLOW)?;
                name
            }
        };
        fs::rename(&name, out).inspect_err(|_| drop(fs::remove_file(&name)))
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            // The original error matters more. A remaining file is harmless.
            let _ = fs::remove_file(name);
        }
    }
}

/// Whether the trace goes to standard output, so that nothing else may.
pub(crate) fn is_stdout(args: &OutArgs) -> bool {
    args.out == Path::new("-")
}

/// How a trace is completed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Completion {
    /// The header is rewritten.
    Sealed,
    /// A footer is enough.
    Streamed,
}

fn write_to<R>(
    sink: Box<dyn Sink>,
    completion: Completion,
    schema: Schema,
    fill: impl FnOnce(&mut TraceWriter) -> anyhow::Result<R>,
) -> anyhow::Result<(R, u64)> {
    let mut writer = match schema {
        Schema::Own => Writer::new(sink, options())?,
        Schema::Copied => Writer::without_schema(sink, options())?,
    };
    let filled = fill(&mut writer)?;
    let written = writer.bytes_written();
    match completion {
        Completion::Sealed => writer.seal()?,
        Completion::Streamed => writer.finish()?,
    };
    Ok((filled, written))
}

/// Fails if the output exists without `--force`, or if it is an input.
pub(crate) fn refuse_to_destroy(args: &OutArgs, inputs: &[&Path]) -> anyhow::Result<()> {
    let Ok(existing) = fs::canonicalize(&args.out) else {
        return Ok(());
    };
    if inputs
        .iter()
        .any(|input| fs::canonicalize(input).is_ok_and(|input| input == existing))
    {
        bail!("{} is also the input; write to another file", args.out.display());
    }
    if existing.is_dir() {
        bail!("{} is a directory; name a file in it", args.out.display());
    }
    let is_plain_file = fs::metadata(&existing).is_ok_and(|metadata| metadata.is_file());
    if !args.force && is_plain_file {
        bail!("{} exists; replace it with --force", args.out.display());
    }
    Ok(())
}

fn partial_path(out: &Path) -> PathBuf {
    let mut name = out.file_name().unwrap_or_default().to_owned();
    name.push(format!(".partial-{}", std::process::id()));
    out.with_file_name(name)
}

/// A stream that cannot seek.
struct OneWay(Box<dyn Write>);

impl Write for OneWay {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Seek for OneWay {
    fn seek(&mut self, _: SeekFrom) -> io::Result<u64> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
