//! Folded stacks, as flame graph tools write them: `main;work;leaf 42`, the outermost frame first, then a weight.
//!
//! Each line becomes one sample with its weight. Such files have no times, so neither have the samples.

use tracesmith_format::tables::{ClockKind, Frame, HealthCause, HostCall, HostCallKind, HostShape};

use crate::error::Error;
use crate::import::lines::Lines;
use crate::import::{Builder, ImportOptions, Importer, Input};

pub(super) const IMPORTER: Importer = Importer {
    name: "folded",
    title: "folded stacks",
    sniff,
    read,
};

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

/// The frames of a line, and its weight; a line of a single frame must not look like prose.
fn stack_of(line: &str) -> Option<(&str, Weight)> {
    let (frames, weight) = line.trim_end().rsplit_once(' ')?;
    let plausible = !frames.is_empty() && !frames.contains(['\0', '{', '}']);
    if !plausible {
        return None;
    }
    // Whole numbers go no detour through floating point, which is exact up to 2^53 only.
    if let Ok(weight) = weight.parse() {
        return Some((frames, Weight::Whole(weight)));
    }
    let weight: f64 = weight.parse().ok()?; // no weight, no stack
    (weight.is_finite() && weight >= 0.0).then_some((frames, Weight::Fraction(weight)))
}

/// How much a stack counts. Some writers use fractions for milliseconds.
enum Weight {
    Whole(u64),
    Fraction(f64),
}

fn read(input: &mut Input, _: &ImportOptions, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
    let clock = builder.clock(ClockKind::UNKNOWN, "none: folded stacks have no times")?;
    let mut lines = Lines::new(input);
    while let Some(line) = lines.next()? {
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
        let argument = match weight {
            Weight::Whole(weight) => weight,
            Weight::Fraction(weight) => {
                builder.doubt(HealthCause::OTHER, "weights with a fraction, rounded", 1);
                weight.round() as u64
            }
        };
        builder.push(
            clock,
            &HostCall {
                stack,
                argument,
                shape: HostShape {
                    name,
                    kind: HostCallKind::SAMPLE,
                    ..HostShape::default()
                },
                ..HostCall::default()
            },
        )?;
    }
    lines.note(builder);
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may stop on any error")]
mod tests {
    use super::*;

    #[test]
    fn stacks_and_weights_are_kept() {
        let text = b"# made by hand\nmain;work;leaf 3\nmain 1\nmain;operator new(unsigned long) 2.6\n";
        assert!(sniff(text));
        let trace = crate::open_bytes(text.to_vec()).unwrap();
        let (_, calls) = trace.host_calls.columns().next().unwrap();
        assert_eq!(calls.argument, [3, 1, 3]);
        let names = |row: usize| -> Vec<String> {
            let stack = trace.stack(calls.stack[row]);
            let name = |frame: &tracesmith_trace::FrameView| trace.string(frame.frame.function).to_owned();
            stack.frames.iter().map(name).collect()
        };
        assert_eq!(names(0), ["leaf", "work", "main"]);
        assert_eq!(names(2), ["operator new(unsigned long)", "main"]);
        assert!(!trace.health().is_good(), "the rounding is said");
    }

    #[test]
    fn large_weights_are_exact() {
        let trace =
            crate::open_bytes(b"main 9007199254740993\nmain 18446744073709551615\n".to_vec()).unwrap();
        let (_, calls) = trace.host_calls.columns().next().unwrap();
        assert_eq!(calls.argument, [9_007_199_254_740_993, u64::MAX]);
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
