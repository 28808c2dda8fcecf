//! Traces that commands write: beside the wanted file first, in its place when they are whole.

use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufWriter, IsTerminal, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use tracesmith_format::{Writer, WriterOptions};

use crate::args::OutArgs;

/// What the writer of a new trace is made with. Files that are rewritten have time for a slower level
/// of zstd than a capture has.
fn options() -> WriterOptions {
    // A new trace is told from all others by a random number; the hasher's seed is one.
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

/// How the trace begins.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Schema {
    /// With the schema of this version.
    Own,
    /// With blocks copied from another file.
    Copied,
}

/// Where a trace goes.
pub(crate) enum Sink {
    /// A file, whose header can be completed at the end.
    File(BufWriter<File>),
    /// A pipe or device, which only goes forward.
    Stream(Box<dyn Write>),
}

/// Writes a trace where the user wants it, by whatever `fill` puts into it. Gives back what `fill` did and the bytes.
pub(crate) fn write_trace<R>(
    args: &OutArgs,
    inputs: &[&Path],
    schema: Schema,
    fill: impl FnOnce(&mut Writer<Sink>) -> anyhow::Result<R>,
) -> anyhow::Result<(R, u64)> {
    if is_stdout(args) {
        if io::stdout().is_terminal() {
            bail!("a trace is not for a terminal; redirect standard output, or name a file with -o");
        }
        return write_to(Sink::Stream(Box::new(io::stdout())), schema, fill)
            .context("writing to standard output");
    }
    refuse_to_destroy(args, inputs)?;
    let what = || format!("writing {}", args.out.display());
    if fs::metadata(&args.out).is_ok_and(|metadata| !metadata.is_file()) {
        let device = File::options().write(true).open(&args.out).with_context(what)?;
        return write_to(Sink::Stream(Box::new(device)), schema, fill).with_context(what);
    }
    let unfinished = Unfinished::create(&args.out).with_context(what)?;
    let file = unfinished.file.try_clone().with_context(what)?;
    let result = write_to(Sink::File(BufWriter::new(file)), schema, fill).with_context(what)?;
    unfinished.put_in_place(&args.out).with_context(what)?;
    Ok(result)
}

/// A file beside its place. Where the file system can, it has no name until it is whole, so that nothing is left of it
/// whatever ends the program; elsewhere it is removed when it is given up.
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

    /// Gives the file its name. One that is there already is replaced in one step.
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
            // Whatever made us give up is the error to report; a leftover is harmless.
            let _ = fs::remove_file(name);
        }
    }
}

/// Whether the trace itself goes to standard output, so that nothing else may.
pub(crate) fn is_stdout(args: &OutArgs) -> bool {
    args.out == Path::new("-")
}

fn write_to<R>(
    sink: Sink,
    schema: Schema,
    fill: impl FnOnce(&mut Writer<Sink>) -> anyhow::Result<R>,
) -> anyhow::Result<(R, u64)> {
    let is_file = matches!(sink, Sink::File(_));
    let mut writer = match schema {
        Schema::Own => Writer::new(sink, options())?,
        Schema::Copied => Writer::without_schema(sink, options())?,
    };
    let filled = fill(&mut writer)?;
    let written = writer.bytes_written();
    let sink = if is_file { writer.seal()? } else { writer.finish()? };
    match sink {
        Sink::File(file) => {
            let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
            file.sync_all()?;
            Ok((filled, file.metadata()?.len()))
        }
        Sink::Stream(_) => Ok((filled, written)),
    }
}

fn refuse_to_destroy(args: &OutArgs, inputs: &[&Path]) -> anyhow::Result<()> {
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

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Sink::File(file) => file.write(bytes),
            Sink::Stream(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Sink::File(file) => file.flush(),
            Sink::Stream(stream) => stream.flush(),
        }
    }
}

impl Seek for Sink {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        match self {
            Sink::File(file) => file.seek(position),
            Sink::Stream(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}
