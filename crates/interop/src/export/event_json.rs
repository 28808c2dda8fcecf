//! Events as JSON objects: what `view --format json` shows and what JSON lines hold, from one place so that they
//! stay alike.

use tracesmith_format::schema;
use tracesmith_format::{BlockKind, Meaning, StringId, Value};
use tracesmith_trace::{Event, EventKind, Found, Trace};

use crate::export::json_text::{push_float, push_number, push_string};

/// Writes events of a trace as JSON objects.
pub struct EventJson<'t> {
    trace: &'t Trace,
    keys: Vec<Vec<Option<Key>>>,
}

/// A column's name, ready to be written, at the place of its number.
struct Key {
    text: Vec<u8>,
    meaning: Meaning,
}

impl<'t> EventJson<'t> {
    /// For events of this trace.
    pub fn new(trace: &'t Trace) -> Self {
        let mut tables = schema::tables();
        let mut keys = |kind: BlockKind| {
            let mut keys = Vec::new();
            let specs = tables.iter_mut().find(|(table, _)| *table == kind);
            for spec in specs.into_iter().flat_map(|(_, specs)| specs.drain(..)) {
                let mut text = Vec::new();
                push_string(&mut text, &spec.name);
                text.push(b':');
                let at = usize::from(spec.id);
                if keys.len() <= at {
                    keys.resize_with(at + 1, || None);
                }
                keys[at] = Some(Key {
                    text,
                    meaning: spec.meaning,
                });
            }
            keys
        };
        EventJson {
            trace,
            keys: EventKind::ALL.iter().map(|kind| keys(kind.table())).collect(),
        }
    }

    /// Adds an event: what all events have, then the columns of its own table as `fields`.
    pub fn push(&self, out: &mut Vec<u8>, found: &Found<'_>) {
        self.push_common(out, &found.event);
        out.extend_from_slice(b",\"fields\":{");
        let keys = &self.keys[found.event.kind as usize];
        let mut is_first = true;
        found.columns.visit_row(found.row, &mut |id, value| {
            let Some(Some(key)) = keys.get(usize::from(id)) else {
                return;
            };
            if !std::mem::take(&mut is_first) {
                out.push(b',');
            }
            out.extend_from_slice(&key.text);
            self.push_value(out, key.meaning, &value);
        });
        out.extend_from_slice(b"}}");
    }

    fn push_common(&self, out: &mut Vec<u8>, event: &Event) {
        let number = |out: &mut Vec<u8>, name: &str, number: Option<u64>| {
            out.extend_from_slice(b",\"");
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b"\":");
            match number {
                Some(number) => push_number(out, number),
                None => out.extend_from_slice(b"null"),
            }
        };
        let some = |id: u64| (id != 0).then_some(id);
        out.extend_from_slice(b"{\"kind\":");
        push_string(out, event.kind.name());
        number(out, "start_ns", some(event.start.0));
        number(out, "end_ns", some(event.end.0));
        number(out, "duration_ns", Some(event.duration()));
        out.extend_from_slice(b",\"name\":");
        push_string(out, self.trace.event_name(event));
        let pid = self.trace.process(event.process).map(|process| process.pid);
        let ordinal = self.trace.device(event.device).map(|device| device.ordinal);
        number(out, "process", some(u64::from(event.process.0)));
        number(out, "pid", pid.map(u64::from));
        number(out, "thread", some(event.thread.0));
        number(out, "device", ordinal.map(u64::from));
        number(out, "stream", event.stream.map(|stream| stream.0));
        number(out, "correlation", some(event.correlation.0));
        number(out, "bytes", some(event.bytes.0));
    }

    fn push_value(&self, out: &mut Vec<u8>, meaning: Meaning, value: &Value) {
        match value {
            Value::Number(id) if meaning == Meaning::String => {
                let id = u32::try_from(*id).unwrap_or(0);
                push_string(out, self.trace.string(StringId(id)));
            }
            Value::Number(number) | Value::Code(None, number) => push_number(out, *number),
            Value::Signed(number) => push_number(out, *number),
            // JSON has no word for these.
            Value::Float(number) if !number.is_finite() => push_string(out, &number.to_string()),
            Value::Float(number) => push_float(out, *number),
            Value::Flag(flag) => out.extend_from_slice(if *flag { b"true" } else { b"false" }),
            Value::Code(Some(name), _) => push_string(out, name),
            Value::Blob(length) => push_number(out, *length),
            _ => out.extend_from_slice(b"null"),
        }
    }
}

impl std::fmt::Debug for EventJson<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EventJson")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_numbered_as_they_are_listed() {
        for (at, kind) in EventKind::ALL.iter().enumerate() {
            assert_eq!(*kind as usize, at);
        }
    }
}
