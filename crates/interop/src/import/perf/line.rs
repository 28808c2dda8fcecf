//! The lines of `perf script`: a sample's first line, and the frames below it.
//!
//! Which columns there are depends on how `perf script` was called, and no line says so. What is certain is the time: a
//! decimal with 6 or 9 places and a colon. Threads' names may hold anything, so lines are read outwards from there.

use tracesmith_format::Timestamp;

/// A sample's first line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SampleLine<'l> {
    /// The thread's name.
    pub(super) name: &'l str,
    /// The process, where the line names it beside the thread.
    pub(super) process: Option<u32>,
    pub(super) thread: u32,
    pub(super) cpu: Option<u32>,
    pub(super) time: Timestamp,
    pub(super) period: Option<u64>,
    pub(super) event: &'l str,
    /// What stands behind the event: a frame, or a tracepoint's fields.
    pub(super) rest: &'l str,
}

/// One frame of a sample.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FrameLine<'l> {
    pub(super) address: u64,
    /// Without its offset; empty when not known.
    pub(super) function: &'l str,
    /// The program, library or kernel; empty when not known.
    pub(super) image: &'l str,
}

/// What a line that begins a record is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FirstLine<'l> {
    Sample(SampleLine<'l>),
    /// Anything else that perf recorded, by its name: a mapping, a lost sample, a new thread.
    Other(&'l str),
}

/// The record that a line begins, if it begins one.
pub(super) fn first_line(line: &str) -> Option<FirstLine<'_>> {
    let (time_start, time) = words(line).find_map(|(start, word)| Some((start, time_of(word)?)))?;
    let (name, process, thread, cpu) = subject(&line[..time_start])?;
    let behind = line[time_start..].split_once(':')?.1.trim_start();
    let (first, behind_first) = split_word(behind);
    if first.starts_with("PERF_RECORD_") {
        return Some(FirstLine::Other(first.trim_end_matches(':')));
    }
    let (period, event, rest) = match first.parse::<u64>() {
        Ok(period) => {
            let (event, rest) = split_word(behind_first);
            (Some(period), event, rest)
        }
        Err(_) => (None, first, behind_first),
    };
    let event = event.strip_suffix(':')?;
    Some(FirstLine::Sample(SampleLine {
        name,
        process,
        thread,
        cpu,
        time,
        period,
        event,
        rest: rest.trim(),
    }))
}

/// A frame: an address, mostly a function with an offset, and mostly an image in parentheses.
pub(super) fn frame_line(line: &str) -> Option<FrameLine<'_>> {
    let (address, rest) = split_word(line.trim());
    let address = u64::from_str_radix(address, 16).ok()?; // no address, no frame
    let rest = rest.trim();
    let (function, image) = match rest.strip_suffix(')') {
        Some(open) => {
            let start = match open.strip_suffix("(deleted)") {
                Some(deleted) => deleted.rfind('('),
                None => open.rfind('('),
            };
            let start = start.filter(|start| rest[..*start].is_empty() || rest[..*start].ends_with(' '));
            start.map_or((rest, ""), |start| (&rest[..start], &open[start + 1..]))
        }
        None => (rest, ""),
    };
    Some(FrameLine {
        address,
        function: known(without_offset(function.trim())),
        image: known(image),
    })
}

/// A source line below a frame: file and line.
pub(super) fn source_line(line: &str) -> Option<(&str, u32)> {
    let (file, number) = line.trim().rsplit_once(':')?;
    let number = number.parse().ok()?; // not a line of a file
    (!file.is_empty()).then_some((file, number))
}

/// Name, process, thread and processor, from what stands before the time.
fn subject(text: &str) -> Option<(&str, Option<u32>, u32, Option<u32>)> {
    let words: Vec<(usize, &str)> = words(text).collect();
    let mut cpu = None;
    for (start, word) in words.into_iter().rev() {
        if let Some(number) = word.strip_prefix('[').and_then(|word| word.strip_suffix(']')) {
            cpu = cpu.or(number.parse().ok()); // other things in brackets are no processors
            continue;
        }
        let (process, thread) = match word.split_once('/') {
            Some((process, thread)) => (Some(process), thread),
            None => (None, word),
        };
        let Ok(thread) = thread.parse::<u32>() else {
            continue;
        };
        let process = match process.map(str::parse::<u32>) {
            Some(Ok(process)) => Some(process),
            Some(Err(_)) => continue,
            None => None,
        };
        return Some((text[..start].trim(), process, thread, cpu));
    }
    None
}

/// A time in seconds with 6 or 9 places and a colon, exactly.
fn time_of(word: &str) -> Option<Timestamp> {
    let (seconds, places) = word.strip_suffix(':')?.split_once('.')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(seconds) || !digits(places) {
        return None;
    }
    let scale = match places.len() {
        6 => 1000,
        9 => 1,
        _ => return None,
    };
    let seconds: u64 = seconds.parse().ok()?; // more than nanoseconds can count is no time
    let places: u64 = places.parse().ok()?; // nine digits always fit
    let nanoseconds = seconds.checked_mul(1_000_000_000)?.checked_add(places * scale)?;
    Some(Timestamp(nanoseconds))
}

/// A function's name without the `+0x1f` behind it.
fn without_offset(function: &str) -> &str {
    match function.rsplit_once("+0x") {
        Some((name, offset)) if u64::from_str_radix(offset, 16).is_ok() => name,
        _ => function,
    }
}

/// What perf says when it does not know something.
fn known(text: &str) -> &str {
    match text {
        "[unknown]" | "inlined" => "",
        text => text,
    }
}

fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split_ascii_whitespace()
        .map(move |word| (word.as_ptr().addr() - text.as_ptr().addr(), word))
}

fn split_word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    text.split_once(char::is_whitespace).unwrap_or((text, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(line: &str) -> SampleLine<'_> {
        match first_line(line) {
            Some(FirstLine::Sample(sample)) => sample,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn every_form_of_first_line_is_read() {
        let plain = sample("burn 12102 24116.593747:     250000 cpu-clock: ");
        assert_eq!((plain.name, plain.process, plain.thread), ("burn", None, 12102));
        assert_eq!(
            (plain.time, plain.period),
            (Timestamp(24_116_593_747_000), Some(250_000))
        );
        assert_eq!((plain.event, plain.rest), ("cpu-clock", ""));
        let full = sample("  my worker 1  77/78 [003] 1.000000001: 1 cycles:u:  7f0a f(int) (/lib/a b.so)");
        assert_eq!(
            (full.name, full.process, full.thread, full.cpu),
            ("my worker 1", Some(77), 78, Some(3))
        );
        assert_eq!((full.time, full.event), (Timestamp(1_000_000_001), "cycles:u"));
        assert_eq!(full.rest, "7f0a f(int) (/lib/a b.so)");
        let tracepoint = sample("sh 5 [000] 9.000001: sched:sched_switch: prev_comm=sh prev_pid=5");
        assert_eq!(
            (tracepoint.period, tracepoint.event),
            (None, "sched:sched_switch")
        );
        assert_eq!(tracepoint.rest, "prev_comm=sh prev_pid=5");
        let other = first_line("burn 1 [000] 2.000001: PERF_RECORD_LOST lost 12");
        assert_eq!(other, Some(FirstLine::Other("PERF_RECORD_LOST")));
    }

    #[test]
    fn other_texts_begin_nothing() {
        for line in [
            "",
            "burn",
            "burn 1 2.5: 1 cycles:",
            "burn x 2.000001: 1 cycles:",
            "  <idle>-0     [001] d..2  123.456789: sched_switch: prev_comm=x",
            "burn 1 99999999999999999999.000001: 1 cycles:",
            "burn 1 18446744073.999999: 1 cycles:",
            "burn 1 2.000001: 1 cycles",
        ] {
            assert_eq!(first_line(line), None, "{line}");
        }
    }

    #[test]
    fn every_form_of_frame_is_read() {
        let frame = |line| frame_line(line).map(|frame| (frame.address, frame.function, frame.image));
        assert_eq!(
            frame("\t   118b leaf+0x22 (/tmp/a)"),
            Some((0x118b, "leaf", "/tmp/a"))
        );
        assert_eq!(
            frame("\tff f(int, char*) const+0x1 (/x/y (deleted))"),
            Some((0xff, "f(int, char*) const", "/x/y (deleted)"))
        );
        assert_eq!(frame("\t0 [unknown] ([unknown])"), Some((0, "", "")));
        assert_eq!(frame("\t12 g(int) (inlined)"), Some((0x12, "g(int)", "")));
        assert_eq!(frame("\t12 g(int)"), Some((0x12, "g(int)", "")));
        assert_eq!(frame("\t12"), Some((0x12, "", "")));
        assert_eq!(frame("  dl-cacheinfo.h:158"), None);
        assert_eq!(source_line("  dl-cacheinfo.h:158"), Some(("dl-cacheinfo.h", 158)));
        assert_eq!(source_line("  [kernel.kallsyms][ffffffff815d2a68]"), None);
    }
}
