//! Folded stacks, as flame graph tools write them: `main;work;leaf 42`, the outermost frame first, then a weight.
//!
//! Each line becomes one sample with its weight. Such files have no times, so neither have the samples.

use std::io::{BufRead, BufReader};

use tracesmith_format::tables::{ClockKind, Frame, HostCall, HostCallKind, HostShape};

use crate::error::Error;
use crate::import::{Builder, ImportOptions, Importer, Input};

pub(super) const IMPORTER: Importer = Importer {
    name: "folded",
    title: "folded stacks",
    sniff,
    read,
};

/// The longest line that is taken for a stack: 10,000 frames of a long name each.
const MAX_LINE: u64 = 16 << 20;

/// Every whole line at the beginning must be a stack: there is no other sign.
fn sniff(head: &[u8]) -> bool {
    let Some(end) = head.iter().rposition(|byte| *byte == b'\n') else {
        return std::str::from_utf8(head).is_ok_and(|line| stack_of(line).is_some());
    };
    let Ok(lines) = std::str::from_utf8(&head[..end]) else {
        return false;
    };
    let mut lines = lines.lines().filter(|line| !is_comment(line)).peekable();
    lines.peek().is_some() && lines.all(|line| stack_of(line).is_some())
}

fn is_comment(line: &str) -> bool {
    line.trim().is_empty() || line.starts_with('#')
}

/// The frames of a line, and its weight. A weight may have a fraction, which some writers use for milliseconds; a line
/// of a single frame must not look like prose.
fn stack_of(line: &str) -> Option<(&str, f64)> {
    let (frames, weight) = line.trim_end().rsplit_once(' ')?;
    let weight: f64 = weight.parse().ok()?;
    let plausible =
        !frames.is_empty() && !frames.contains(['\0', '{', '}']) && weight.is_finite() && weight >= 0.0;
    plausible.then_some((frames, weight))
}

fn read(input: &mut Input, _: &ImportOptions, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
    let clock = builder.clock(ClockKind::UNKNOWN, "none: folded stacks have no times")?;
    let mut reader = BufReader::with_capacity(256 << 10, input);
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut limited = std::io::Read::take(&mut reader, MAX_LINE);
        if limited
            .read_until(b'\n', &mut line)
            .map_err(|source| Error::Read { source })?
            == 0
        {
            return Ok(());
        }
        let line = String::from_utf8_lossy(&line);
        if is_comment(&line) {
            continue;
        }
        let Some((frames, weight)) = stack_of(&line) else {
            builder.skip("lines that are no stack", 1);
            continue;
        };
        let mut ids = Vec::new();
        for function in frames.split(';') {
            let function = builder.string(function)?;
            ids.push(builder.frame(Frame {
                function,
                ..Frame::default()
            })?);
        }
        let name = builder.string(frames.rsplit(';').next().unwrap_or(frames))?;
        let stack = builder.stack(ids)?;
        if weight.fract() != 0.0 {
            builder.doubt(
                tracesmith_format::tables::HealthCause::OTHER,
                "weights with a fraction, rounded",
                1,
            );
        }
        builder.push(
            clock,
            &HostCall {
                stack,
                argument: weight.round() as u64,
                shape: HostShape {
                    name,
                    kind: HostCallKind::SAMPLE,
                    ..HostShape::default()
                },
                ..HostCall::default()
            },
        )?;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may stop on any error")]
mod tests {
    use super::*;
    use crate::Trace;

    #[test]
    fn stacks_and_weights_are_kept() {
        let text = b"# made by hand\nmain;work;leaf 3\nmain 1\nmain;operator new(unsigned long) 2.6\n";
        assert!(sniff(text));
        let trace = Trace::from_bytes(text.to_vec()).unwrap();
        let (_, calls) = trace.host_calls.columns().next().unwrap();
        assert_eq!(calls.argument, [3, 1, 3]);
        let names = |row: usize| -> Vec<String> {
            let stack = trace.stack(calls.stack[row]);
            let name = |frame: &crate::FrameView| trace.string(frame.frame.function).to_owned();
            stack.frames.iter().map(name).collect()
        };
        assert_eq!(names(0), ["leaf", "work", "main"]);
        assert_eq!(names(2), ["operator new(unsigned long)", "main"]);
        assert!(!trace.health().is_good(), "the rounding is said");
    }

    #[test]
    fn other_texts_are_no_stacks() {
        for text in [
            "",
            "\n",
            "# only a comment\n",
            "hello\n",
            "{\"a\": 1}\n",
            "a;b 1\nprose here\n",
            "\0 1\n",
        ] {
            assert!(!sniff(text.as_bytes()), "{text:?}");
        }
    }
}
