//! Runs a recording step by step.
//!
//! Commands are lines on standard input, so programs can use it, too. The prompt is shown only in a terminal.

use std::io::{BufRead, IsTerminal};
use std::path::Path;

use anyhow::{Context, bail};
use clap::ValueEnum;
use tracesmith_replay::{Command, Replay};
use tracesmith_trace::units;

use super::plan::what;
use super::{SHOWN, write_array};
use crate::args::ElementArg;
use crate::exit::Exit;
use crate::output::Output;

const HELP: &str = "\
next [N]                  run the next call, or the next N calls
back [N]                  go back one call, or N calls
goto NUMBER               go to just before call NUMBER
list [N]                  show the next calls
buffers                   show the buffers of the next call
show ADDRESS [TYPE]       show the first elements of a buffer
dump ADDRESS FILE [TYPE]  write a buffer as a NumPy array
quit                      leave";

/// Number of elements to show.
const ELEMENTS: usize = 8;

pub(super) fn run(replay: &mut Replay<'_>, output: &mut Output) -> anyhow::Result<Exit> {
    replay.go_to(0)?;
    let mut steps = Steps { replay, place: 0 };
    steps.show_position(output)?;
    loop {
        if std::io::stdin().is_terminal() {
            output.prompt("> ")?;
        }
        let mut line = String::new();
        if std::io::stdin()
            .lock()
            .read_line(&mut line)
            .context("reading a command")?
            == 0
        {
            return Ok(Exit::Done);
        }
        match steps.run_command(&line, output) {
            Ok(After::GoOn) => {}
            Ok(After::Leave) => return Ok(Exit::Done),
            Err(error) if error.is::<tracesmith_replay::Error>() => return Err(error),
            Err(error) => output.line(&format!("{error:#}"))?,
        }
    }
}

enum After {
    GoOn,
    Leave,
}

struct Steps<'s, 'r> {
    replay: &'s mut Replay<'r>,
    /// The position of the next call.
    place: usize,
}

impl Steps<'_, '_> {
    fn run_command(&mut self, line: &str, output: &mut Output) -> anyhow::Result<After> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let count = |at: usize| -> anyhow::Result<usize> {
            match words.get(at) {
                None => Ok(1),
                Some(word) => word.parse().with_context(|| format!("{word:?} is not a number")),
            }
        };
        match words.first().copied().unwrap_or("next") {
            "next" | "n" => self.go(self.place.saturating_add(count(1)?), output)?,
            "back" | "b" => self.go(self.place.saturating_sub(count(1)?), output)?,
            "goto" | "g" => {
                let number = words.get(1).context("goto needs a call number")?;
                let number: u64 = number
                    .parse()
                    .with_context(|| format!("{number:?} is not a number"))?;
                let place = self.replay.recording().places(0..number).end;
                self.go(place, output)?;
            }
            "list" | "l" => {
                let count = if words.len() > 1 { count(1)? } else { SHOWN };
                let commands = &self.replay.recording().commands;
                for command in commands.iter().skip(self.place).take(count) {
                    output.line(&call_text(command))?;
                }
            }
            "buffers" => self.show_buffers(output)?,
            "show" | "s" => {
                let address = address(words.get(1).copied())?;
                self.show(address, element(words.get(2).copied())?, output)?;
            }
            "dump" | "d" => {
                let address = address(words.get(1).copied())?;
                let file = words.get(2).context("dump needs a file")?;
                let (address, bytes) = super::extent(self.replay.recording(), address)?;
                let content = self.replay.read(address, bytes)?;
                write_array(Path::new(file), &content, element(words.get(3).copied())?)?;
                output.line(&format!("wrote {file} ({})", units::bytes(bytes)))?;
            }
            "quit" | "q" => return Ok(After::Leave),
            "help" | "h" | "?" => output.line(HELP)?,
            other => bail!("unknown command {other:?}; help lists the commands"),
        }
        output.finish()?;
        Ok(After::GoOn)
    }

    fn go(&mut self, place: usize, output: &mut Output) -> anyhow::Result<()> {
        let place = place.min(self.replay.recording().commands.len());
        if place >= self.place {
            self.replay.go_on(self.place..place)?;
        } else {
            self.replay.go_to(place)?;
        }
        self.place = place;
        self.show_position(output)
    }

    fn show_position(&self, output: &mut Output) -> anyhow::Result<()> {
        let next = self.replay.recording().commands.get(self.place);
        output.line(&next.map_or_else(
            || "at the end".to_owned(),
            |next| format!("next: {}", call_text(next)),
        ))?;
        Ok(output.finish()?)
    }

    fn show_buffers(&mut self, output: &mut Output) -> anyhow::Result<()> {
        let Some(command) = self.replay.recording().commands.get(self.place).cloned() else {
            return Ok(());
        };
        for (address, _) in self.replay.recording().argument_buffers(&command) {
            self.show(address, Some(ElementArg::U8), output)?;
        }
        Ok(())
    }

    fn show(&mut self, address: u64, element: Option<ElementArg>, output: &mut Output) -> anyhow::Result<()> {
        let (base, bytes) = super::extent(self.replay.recording(), address)?;
        let width = match element {
            None | Some(ElementArg::U8) => 1,
            Some(ElementArg::F16) => 2,
            Some(ElementArg::I32 | ElementArg::F32) => 4,
            Some(ElementArg::I64 | ElementArg::F64) => 8,
        };
        let shown = (base + bytes - address).min((ELEMENTS * width) as u64);
        let content = self.replay.read(address, shown)?;
        let texts: Vec<String> = content
            .chunks_exact(width)
            .map(|bytes| element_text(bytes, element))
            .collect();
        let whole = units::bytes(bytes);
        output.line(&format!(
            "{address:#x} (of {whole} at {base:#x}): {}",
            texts.join(" ")
        ))?;
        Ok(())
    }
}

fn call_text(command: &Command) -> String {
    let kind = command.kind.name().unwrap_or("unknown");
    format!("#{} {kind} {}", command.number, what(command))
        .trim_end()
        .to_owned()
}

fn element_text(bytes: &[u8], element: Option<ElementArg>) -> String {
    let mut whole = [0; 8];
    whole[..bytes.len()].copy_from_slice(bytes);
    let number = u64::from_le_bytes(whole);
    match element {
        Some(ElementArg::I32) => (number as u32 as i32).to_string(),
        Some(ElementArg::I64) => (number as i64).to_string(),
        Some(ElementArg::F16) => tracesmith_replay::Float::F16.number(bytes).to_string(),
        Some(ElementArg::F32) => f32::from_bits(number as u32).to_string(),
        Some(ElementArg::F64) => f64::from_bits(number).to_string(),
        None | Some(ElementArg::U8) => format!("{number:02x}"),
    }
}

fn address(word: Option<&str>) -> anyhow::Result<u64> {
    let word = word.context("this command needs an address")?;
    let parsed = match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => word.parse(),
    };
    parsed.with_context(|| format!("{word:?} is not an address"))
}

fn element(word: Option<&str>) -> anyhow::Result<Option<ElementArg>> {
    let Some(word) = word else { return Ok(None) };
    match ElementArg::from_str(word, true) {
        Ok(element) => Ok(Some(element)),
        Err(_) => bail!("{word:?} is not one of u8, i32, i64, f16, f32, f64"),
    }
}
