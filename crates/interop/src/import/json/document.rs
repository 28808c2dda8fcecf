//! The walk through a file: its objects and lists, event by event, whatever is broken or missing on the way.

use crate::error::Error;
use crate::import::json::Flavour;
use crate::import::json::event::EventParts;
use crate::import::json::number::unquoted;
use crate::import::json::reading::Reading;
use crate::import::json::scan::{Stop, after_space, string_end, value_end};
use crate::import::json::text::text_of;
use crate::import::json::window::{More, Unfinished, Window};

/// An event larger than this is counted, not read.
const MAX_EVENT: usize = 64 << 20;
/// A fact about the file larger than this is counted, not kept.
const MAX_FACT: usize = 1 << 20;

/// How a part of a file ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// With its bracket.
    Closed,
    /// With the file, between two events.
    BetweenEvents,
    /// With the file, somewhere else.
    Cut,
}

/// Reads the file's value, or its values: Proton writes one object a line.
pub(super) fn documents(window: &mut Window<'_>, reading: &mut Reading<'_, '_, '_>) -> Result<(), Error> {
    if window.next()? == Some(0xef) {
        window.pass(3);
    }
    let (mut has_events, mut is_first) = (false, true);
    loop {
        let end = match window.next()? {
            Some(b'{') => object(window, reading, &mut has_events)?,
            Some(b'[') => {
                has_events = true;
                window.pass(1);
                match events(window, reading)? {
                    // The form allows to leave out its end.
                    End::BetweenEvents => End::Closed,
                    end => end,
                }
            }
            Some(_) if is_first => {
                return Err(no_trace(reading.flavour, window, "neither an object nor a list"));
            }
            Some(_) => {
                reading.counts.skip("text behind the end of the trace", 1);
                break;
            }
            None => break,
        };
        is_first = false;
        if end != End::Closed {
            reading.builder.cut("the file ends in its middle");
            break;
        }
    }
    if is_first || !has_events {
        return Err(no_trace(reading.flavour, window, "no list of events in it"));
    }
    Ok(())
}

fn no_trace(flavour: Flavour, window: &Window<'_>, problem: &str) -> Error {
    Error::Foreign {
        format: match flavour {
            Flavour::Kineto => "kineto",
            Flavour::Chrome => "chrome",
            Flavour::Mctracer => "mctracer",
        },
        problem: problem.to_owned(),
        position: format!("byte {}", window.position()),
    }
}

/// Reads an object with the events under one of its keys.
fn object(
    window: &mut Window<'_>,
    reading: &mut Reading<'_, '_, '_>,
    has_events: &mut bool,
) -> Result<End, Error> {
    window.pass(1);
    loop {
        match window.next()? {
            Some(b'}') => {
                window.pass(1);
                return Ok(End::Closed);
            }
            Some(b',') => window.pass(1),
            Some(b'"') => {
                let Some(key) = key(window)? else {
                    return Ok(End::Cut);
                };
                let end = match (&*key, window.next()?) {
                    ("traceEvents", Some(b'[')) => {
                        *has_events = true;
                        window.pass(1);
                        events(window, reading)?
                    }
                    ("samples", Some(b'[')) => {
                        window.pass(1);
                        samples(window, reading)?
                    }
                    ("stackFrames", Some(b'{')) => stack_frames(window, reading)?,
                    _ => fact(window, reading, &key)?,
                };
                if end != End::Closed {
                    return Ok(End::Cut);
                }
            }
            Some(_) => return Err(no_trace(reading.flavour, window, "an object without keys")),
            None => return Ok(End::Cut),
        }
    }
}

/// The key that begins here, and passes it and its colon. `None` when the file ends first.
fn key(window: &mut Window<'_>) -> Result<Option<String>, Error> {
    let found = window.scan(MAX_FACT, |text| {
        let end = string_end(text, 0)?;
        let colon = after_space(text, end)?;
        Ok((end, colon))
    })?;
    let Ok((end, colon)) = found else { return Ok(None) };
    let key = text_of(&window.text()[..end]).into_owned();
    // What stands for a colon is passed, too: the value behind it tells whether it can be read.
    window.pass(colon + 1);
    Ok(Some(key))
}

/// Takes over a key that is not about events.
fn fact(window: &mut Window<'_>, reading: &mut Reading<'_, '_, '_>, key: &str) -> Result<End, Error> {
    match window.scan(MAX_FACT, |text| value_end(text, 0))? {
        Ok(end) => {
            reading.fact(key, &window.text()[..end])?;
            window.pass(end);
            Ok(End::Closed)
        }
        Err(Unfinished::Ended) => Ok(End::Cut),
        Err(Unfinished::TooLarge) => {
            reading.large_fact(key);
            Ok(if window.pass_value()? {
                End::Closed
            } else {
                End::Cut
            })
        }
        Err(Unfinished::Broken) => Err(no_trace(reading.flavour, window, "a key without a value")),
    }
}

/// Reads events up to the end of their list.
fn events(window: &mut Window<'_>, reading: &mut Reading<'_, '_, '_>) -> Result<End, Error> {
    let mut parts = EventParts::default();
    loop {
        match window.next()? {
            Some(b'{') => match window.scan(MAX_EVENT, |text| parts.scan(text))? {
                Ok(end) => {
                    reading.event(&parts.of(&window.text()[..end]))?;
                    window.pass(end);
                }
                Err(Unfinished::Ended) => return Ok(End::Cut),
                Err(Unfinished::Broken) => {
                    reading.counts.skip("events that are no JSON", 1);
                    if !pass_to_next_event(window)? {
                        return Ok(End::Cut);
                    }
                }
                Err(Unfinished::TooLarge) => {
                    reading.counts.skip("events of more than 64 MiB", 1);
                    if !window.pass_value()? {
                        return Ok(End::Cut);
                    }
                }
            },
            Some(b',') => window.pass(1),
            Some(b']') => {
                window.pass(1);
                return Ok(End::Closed);
            }
            Some(byte) => {
                reading.counts.skip("entries that are no events", 1);
                // A bracket that closes something else would be met again and again.
                if matches!(byte, b'}' | b':') {
                    window.pass(1);
                } else if !window.pass_value()? {
                    return Ok(End::Cut);
                }
            }
            None => return Ok(End::BetweenEvents),
        }
    }
}

/// Leaves a broken event behind: the next one begins with a brace and a key that events have. `false` at the file's end.
fn pass_to_next_event(window: &mut Window<'_>) -> Result<bool, Error> {
    /// Space and a key of an event are no longer than this.
    const LOOK_AHEAD: usize = 256;
    window.pass(1);
    loop {
        let text = window.text();
        let found = memchr::memchr(b'{', text);
        match found {
            Some(at) if text.len() - at >= LOOK_AHEAD => {
                let begins = begins_event(&text[at..]);
                window.pass(at + usize::from(!begins));
                if begins {
                    return Ok(true);
                }
            }
            _ => {
                let at = found.unwrap_or(text.len());
                window.pass(at);
                if window.more(0)? != More::Read {
                    let begins = begins_event(window.text());
                    if begins || window.text().is_empty() {
                        return Ok(begins);
                    }
                    window.pass(1);
                }
            }
        }
    }
}

fn begins_event(text: &[u8]) -> bool {
    let key = after_space(text, 1).and_then(|at| match text[at] {
        b'"' => Ok(unquoted(&text[at..string_end(text, at)?])),
        _ => Err(Stop::Broken),
    });
    key.is_ok_and(|key| {
        matches!(
            key,
            b"ph" | b"cat" | b"name" | b"pid" | b"tid" | b"ts" | b"dur" | b"id"
        )
    })
}

/// Reads Chrome's list of samples, which are events without a phase.
fn samples(window: &mut Window<'_>, reading: &mut Reading<'_, '_, '_>) -> Result<End, Error> {
    let mut parts = EventParts::default();
    loop {
        match window.next()? {
            Some(b'{') => match window.scan(MAX_EVENT, |text| parts.scan(text))? {
                Ok(end) => {
                    reading.listed_sample(&parts.of(&window.text()[..end]))?;
                    window.pass(end);
                }
                Err(Unfinished::Ended) => return Ok(End::Cut),
                Err(_) => {
                    reading.counts.skip("samples that are no JSON", 1);
                    if !window.pass_value()? {
                        return Ok(End::Cut);
                    }
                }
            },
            Some(b',') => window.pass(1),
            Some(b']') => {
                window.pass(1);
                return Ok(End::Closed);
            }
            Some(_) => {
                reading.counts.skip("samples that are no objects", 1);
                window.pass(1);
            }
            None => return Ok(End::Cut),
        }
    }
}

/// Reads Chrome's table of stack frames, entry by entry.
fn stack_frames(window: &mut Window<'_>, reading: &mut Reading<'_, '_, '_>) -> Result<End, Error> {
    window.pass(1);
    loop {
        match window.next()? {
            Some(b'"') => {
                let Some(id) = key(window)? else {
                    return Ok(End::Cut);
                };
                window.next()?;
                match window.scan(MAX_FACT, |text| value_end(text, 0))? {
                    Ok(end) => {
                        let entry = &window.text()[..end];
                        reading.stacks.define(reading.builder, id.as_bytes(), entry)?;
                        window.pass(end);
                    }
                    Err(Unfinished::Ended) => return Ok(End::Cut),
                    Err(_) => {
                        reading.counts.skip("stack frames that are no JSON", 1);
                        if !window.pass_value()? {
                            return Ok(End::Cut);
                        }
                    }
                }
            }
            Some(b'}') => {
                window.pass(1);
                return Ok(End::Closed);
            }
            Some(_) => window.pass(1),
            None => return Ok(End::Cut),
        }
    }
}
