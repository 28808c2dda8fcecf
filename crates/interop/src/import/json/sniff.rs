//! Whether a file is trace-event JSON, by its beginning, and whose.

use crate::import::json::Flavour;
use crate::import::json::host_work::is_maca_call;
use crate::import::json::number::unquoted;
use crate::import::json::scan::{Stop, after_space, for_each_member, string_end, value_end};

/// Keys of a file's object that Kineto writes.
const KINETO_KEYS: [&[u8]; 5] = [
    b"schemaVersion",
    b"deviceProperties",
    b"distributedInfo",
    b"baseTimeNanoseconds",
    b"traceName",
];
/// Keys that any writer of the form may use.
const TRACE_KEYS: [&[u8]; 5] = [
    b"traceEvents",
    b"displayTimeUnit",
    b"systemTraceEvents",
    b"stackFrames",
    b"otherData",
];
/// Categories that only Kineto writes.
const KINETO_CATEGORIES: [&[u8]; 12] = [
    b"cpu_op",
    b"Operator",
    b"user_annotation",
    b"gpu_user_annotation",
    b"python_function",
    b"cpu_instant_event",
    b"cuda_runtime",
    b"cuda_driver",
    b"gpu_memcpy",
    b"gpu_memset",
    b"ac2g",
    b"Runtime",
];

/// The flavour of a file that begins so; `None` for what is no trace.
pub(super) fn flavour_of(head: &[u8]) -> Option<Flavour> {
    let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let mut seen = Seen::default();
    let start = after_space(head, 0).ok()?;
    match head[start] {
        b'[' => seen.events(head, start + 1),
        b'{' => seen.object(head, start),
        _ => return None,
    }
    seen.flavour()
}

/// What was seen in the beginning of a file.
#[derive(Debug, Default)]
struct Seen {
    kineto: bool,
    trace: bool,
    mctracer: bool,
    events: usize,
    foreign: bool,
}

impl Seen {
    fn flavour(&self) -> Option<Flavour> {
        if self.foreign || !(self.kineto || self.trace || self.events > 0) {
            return None;
        }
        Some(match () {
            () if self.mctracer => Flavour::Mctracer,
            () if self.kineto => Flavour::Kineto,
            () => Flavour::Chrome,
        })
    }

    /// The keys of the file's object, as far as they are in view.
    fn object(&mut self, head: &[u8], start: usize) {
        let mut at = start + 1;
        while let Some((key, value)) = key_at(head, at) {
            match key {
                b"rocprofiler-sdk-tool" | b"$schema" => self.foreign = true,
                b"traceEvents" if head.get(value) == Some(&b'[') => {
                    self.trace = true;
                    self.events(head, value + 1);
                }
                key => {
                    self.kineto |= KINETO_KEYS.contains(&key);
                    self.trace |= TRACE_KEYS.contains(&key);
                    self.mctracer |= key.eq_ignore_ascii_case(b"mctracer");
                }
            }
            match value_end(head, value) {
                Ok(end) => at = end,
                Err(_) => return,
            }
        }
    }

    /// Events, as far as they are in view. The first must look like one.
    fn events(&mut self, head: &[u8], start: usize) {
        let mut at = start;
        while let Ok(event) = after_space(head, at) {
            match head[event] {
                b',' => at = event + 1,
                b'{' => match self.event(head, event) {
                    Some(end) => at = end,
                    None => return,
                },
                _ => return,
            }
        }
    }

    fn event(&mut self, head: &[u8], start: usize) -> Option<usize> {
        let mut is_event = false;
        let end = for_each_member(head, start, |key, value| {
            let value = unquoted(value.of(head));
            match unquoted(key.of(head)) {
                b"ph" => is_event = true,
                b"cat" => {
                    self.kineto |= KINETO_CATEGORIES.contains(&value);
                    self.mctracer |= value.to_ascii_lowercase().starts_with(b"mctracer");
                }
                b"name" => self.mctracer |= is_maca_call(value),
                _ => {}
            }
        });
        self.events += usize::from(is_event);
        match end {
            Ok(end) if is_event => Some(end),
            // A head that ends within its first event still shows whose it is.
            Err(Stop::Short) | Ok(_) | Err(Stop::Broken) => None,
        }
    }
}

/// The next key of an object, and where its value begins.
fn key_at(head: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let mut at = after_space(head, at).ok()?;
    while head[at] == b',' {
        at = after_space(head, at + 1).ok()?;
    }
    if head[at] != b'"' {
        return None;
    }
    let end = string_end(head, at).ok()?;
    let colon = after_space(head, end).ok()?;
    if head[colon] != b':' {
        return None;
    }
    let value = after_space(head, colon + 1).ok()?;
    Some((unquoted(&head[at..end]), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_by_what_they_hold() {
        for (text, flavour) in [
            (
                r#"{"schemaVersion": 1, "deviceProperties": ["#,
                Some(Flavour::Kineto),
            ),
            (
                r#"{"traceEvents": [{"ph": "X", "cat": "cpu_op"}]}"#,
                Some(Flavour::Kineto),
            ),
            (r#"{"traceEvents": []}"#, Some(Flavour::Chrome)),
            (
                r#"{"displayTimeUnit":"us","traceEvents":[{"name":"k","cat":"kernel","ph":"X"}"#,
                Some(Flavour::Chrome),
            ),
            (
                "\u{feff} [\n{\"name\": \"a\", \"ph\": \"B\"",
                Some(Flavour::Chrome),
            ),
            (
                r#"[{"name": "mcLaunchKernel", "ph": "X"},"#,
                Some(Flavour::Mctracer),
            ),
            (r#"{"rocprofiler-sdk-tool": [{"metadata": {}}]}"#, None),
            (
                r#"{"$schema": "https://www.speedscope.app/file-format-schema.json"}"#,
                None,
            ),
            (r#"{"meta": {"version": 24}, "threads": []}"#, None),
            (r#"[{"name": "no event"}]"#, None),
            ("[]", None),
            ("[1, 2]", None),
            ("", None),
            ("main;work 3", None),
            (r#""traceEvents""#, None),
        ] {
            assert_eq!(flavour_of(text.as_bytes()), flavour, "{text}");
        }
    }
}
