//! What users name, found in a trace: processes by PID or rank, GPUs by number, streams.

use std::collections::BTreeSet;
use std::fmt::Display;

use tracesmith_format::{DeviceId, ProcessId, StreamId};

use crate::error::Error;
use crate::model::trace::Trace;
use crate::selection::Selection;

/// Processes, GPUs and streams as a user names them. An empty list does not limit anything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Processes: a PID, or `#` and the ID of the process in the trace.
    pub processes: Vec<String>,
    /// Ranks of distributed jobs.
    pub ranks: Vec<u32>,
    /// GPUs: the driver's number, `HOST:NUMBER`, or `#` and the ID of the device in the trace.
    pub devices: Vec<String>,
    /// Streams.
    pub streams: Vec<u64>,
}

impl Wanted {
    /// The selection in a trace. What the trace does not have is an error that lists what it has.
    pub fn in_trace(&self, trace: &Trace) -> Result<Selection, Error> {
        Ok(Selection {
            processes: processes(&self.processes, &self.ranks, trace)?,
            devices: devices(&self.devices, trace)?,
            streams: streams(&self.streams, trace)?,
        })
    }
}

/// The streams that a user names. `None` if none is named.
fn streams(wanted: &[u64], trace: &Trace) -> Result<Option<Vec<StreamId>>, Error> {
    if wanted.is_empty() {
        return Ok(None);
    }
    let mut known: BTreeSet<u64> = trace.streams.iter().map(|stream| stream.stream.0).collect();
    if !wanted.iter().all(|stream| known.contains(stream)) {
        // Not every trace describes its streams.
        known.extend(trace.work_places()?.iter().map(|place| place.stream.0));
    }
    if let Some(missing) = wanted.iter().find(|stream| !known.contains(stream)) {
        let known = known.iter().map(ToString::to_string);
        return Err(absent("stream", missing, known));
    }
    Ok(Some(wanted.iter().copied().map(StreamId).collect()))
}

/// The GPUs that a user names: the driver's index, `HOST:INDEX` or `#ID`. `None` if none is named.
fn devices(wanted: &[String], trace: &Trace) -> Result<Option<Vec<DeviceId>>, Error> {
    if wanted.is_empty() {
        return Ok(None);
    }
    let mut ids = Vec::new();
    for text in wanted {
        let before = ids.len();
        if let Some(id) = text.strip_prefix('#') {
            let id = DeviceId(id.parse().map_err(|_| unreadable("device ID", text))?);
            if trace.device(id).is_none() {
                let known = trace.devices.iter().map(|device| format!("#{}", device.id.0));
                return Err(absent("GPU", text, known));
            }
            ids.push(id);
            continue;
        }
        let (host, ordinal) = match text.rsplit_once(':') {
            Some((host, ordinal)) => (Some(host), ordinal),
            None => (None, text.as_str()),
        };
        let ordinal: u32 = ordinal.parse().map_err(|_| unreadable("GPU", text))?;
        let is_on_host = |device: &&tracesmith_format::tables::Device| {
            host.is_none_or(|name| {
                let host = trace.host(device.host);
                host.is_some_and(|host| trace.string(host.name) == name)
            })
        };
        let devices = trace.devices.iter().filter(|device| device.ordinal == ordinal);
        ids.extend(devices.filter(is_on_host).map(|device| device.id));
        if ids.len() == before {
            let known = trace.devices.iter().map(|device| device.ordinal.to_string());
            return Err(absent("GPU", text, known));
        }
    }
    ids.sort_unstable();
    ids.dedup();
    Ok(Some(ids))
}

/// The processes that a user names, by PID, `#ID` or rank. `None` if none is named: all are selected.
fn processes(wanted: &[String], ranks: &[u32], trace: &Trace) -> Result<Option<Vec<ProcessId>>, Error> {
    if wanted.is_empty() && ranks.is_empty() {
        return Ok(None);
    }
    let mut ids = Vec::new();
    for text in wanted {
        if let Some(id) = text.strip_prefix('#') {
            let id = ProcessId(id.parse().map_err(|_| unreadable("process ID", text))?);
            if trace.process(id).is_none() {
                let known = trace.processes.iter().map(|process| format!("#{}", process.id.0));
                return Err(absent("process", text, known));
            }
            ids.push(id);
            continue;
        }
        let pid: u32 = text.parse().map_err(|_| unreadable("PID", text))?;
        let processes = trace.processes.iter().filter(|process| process.pid == pid);
        let before = ids.len();
        ids.extend(processes.map(|process| process.id));
        if ids.len() == before {
            let known = trace.processes.iter().map(|process| process.pid.to_string());
            return Err(absent("process", text, known));
        }
    }
    for rank in ranks {
        let processes = trace.processes.iter();
        let before = ids.len();
        ids.extend(
            processes
                .filter(|process| process.rank.get() == Some(*rank))
                .map(|process| process.id),
        );
        if ids.len() == before {
            let known = trace.processes.iter().filter_map(|process| process.rank.get());
            let known = known.map(|rank| rank.to_string());
            return Err(absent("rank", rank, known));
        }
    }
    ids.sort_unstable();
    ids.dedup();
    Ok(Some(ids))
}

fn absent(what: &str, wanted: impl Display, known: impl Iterator<Item = String>) -> Error {
    Error::NotInTrace {
        problem: format!("the trace has no {what} {wanted}; {}", there_are(what, known)),
    }
}

fn unreadable(what: &str, text: &str) -> Error {
    Error::NotInTrace {
        problem: format!("'{text}' is not a {what}"),
    }
}

/// Lists what can be selected instead.
fn there_are(what: &str, known: impl Iterator<Item = String>) -> String {
    const SHOWN: usize = 10;
    let mut known: Vec<String> = known.collect();
    known.sort_by_key(|text| (text.len(), text.clone()));
    known.dedup();
    match known.len() {
        0 => format!("it has no {what} with a number"),
        1..=SHOWN => format!("it has {what} {}", known.join(", ")),
        count => format!("it has {count}, from {what} {} to {}", known[0], known[count - 1]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_selected_is_listed() {
        let list = |numbers: &[u32]| there_are("rank", numbers.iter().map(ToString::to_string));
        assert_eq!(list(&[]), "it has no rank with a number");
        assert_eq!(list(&[3, 0, 3]), "it has rank 0, 3");
        let many: Vec<u32> = (0..64).collect();
        assert_eq!(list(&many), "it has 64, from rank 0 to 63");
    }
}
