//! Rows of exported tables as rows of the model.
//!
//! Metal nests what it reports: a command buffer's interval holds those of its encoders. Summed up they would count the
//! GPU's time twice, so an interval becomes device work when it is the outermost of its channel, and what lies inside
//! of it becomes a range of the domain `metal gpu`.

use rustc_hash::FxHashMap;
use tracesmith_format::tables::*;
use tracesmith_format::{
    ClockId, ContextId, CorrelationId, DeviceId, HostId, ProcessId, StreamId, StringId, Timestamp,
};

use super::row::Row;
use super::tables::Target;
use crate::error::Error;
use crate::import::Builder;

/// Writes rows.
pub(super) struct Rows {
    pub(super) host: HostId,
    clock: ClockId,
    /// Devices by name, numbered as they turn up.
    devices: FxHashMap<String, DeviceId>,
    /// Streams by channel name, numbered as they turn up.
    channels: FxHashMap<(DeviceId, String), StreamId>,
    /// The last outermost interval of each channel of a process.
    outermost: FxHashMap<(ProcessId, DeviceId, StreamId), (Timestamp, Timestamp)>,
    counters: FxHashMap<u64, String>,
}

impl Rows {
    pub(super) fn new(builder: &mut Builder<'_, '_>) -> Result<Self, Error> {
        Ok(Rows {
            host: builder.host("")?,
            clock: builder.clock(ClockKind::RECORDING, "xctrace")?,
            devices: FxHashMap::default(),
            channels: FxHashMap::default(),
            outermost: FxHashMap::default(),
            counters: FxHashMap::default(),
        })
    }

    pub(super) fn write(
        &mut self,
        target: Target,
        row: &Row<'_>,
        builder: &mut Builder<'_, '_>,
    ) -> Result<(), Error> {
        match target {
            Target::GpuInterval => self.gpu_interval(row, builder),
            Target::Submission => self.submission(row, builder),
            Target::HostWork(category) => self.host_work(category, row, builder),
            Target::Range(domain) => {
                let (start, end) = row.interval(builder);
                let kind = match end {
                    Timestamp::NONE => MarkerKind::OPEN_FREE_RANGE,
                    _ => MarkerKind::FREE_RANGE,
                };
                self.marker(domain, kind, start, end, row, builder)
            }
            Target::Instant(domain) => {
                let time = row.time(builder);
                self.marker(domain, MarkerKind::INSTANT, time, time, row, builder)
            }
            Target::Sample => self.sample(row, builder),
            Target::CounterInfo => {
                if let Some(id) = row.number(&["counter-id", "id"], "") {
                    self.counters
                        .insert(id, row.text(&["name", "counter-name"], "").to_owned());
                }
                Ok(())
            }
            Target::CounterValue => self.counter(row, builder),
        }
    }

    fn gpu_interval(&mut self, row: &Row<'_>, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
        let (start, end) = row.interval(builder);
        let channel = row.text(&["channel-name"], "gpu-channel-name");
        let caller = row.caller(builder)?;
        let device = self.device(row, builder)?;
        let stream = self.channel(device, channel);
        let label = match row.text(&["event-label", "label"], "formatted-label") {
            "" => channel,
            label => label,
        };
        let name = builder.string(label)?;
        let level = row.number(&["event-depth", "depth", "nesting-level"], "metal-nesting-level");
        let key = (caller.process, device, stream);
        let outer = self.outermost.get(&key);
        let is_inside = outer.is_some_and(|outer| outer.0 <= start && end <= outer.1 && end.is_some());
        if level.unwrap_or(0) > 0 && is_inside {
            let (category_name, domain) = (builder.string(channel)?, builder.string("metal gpu")?);
            return builder.push(
                self.clock,
                &Marker {
                    start,
                    end,
                    range: row.number(&["encoder-id"], "").unwrap_or(0),
                    caller,
                    shape: MarkerShape {
                        name,
                        domain,
                        category_name,
                        kind: MarkerKind::FREE_RANGE,
                        ..MarkerShape::default()
                    },
                    ..Marker::default()
                },
            );
        }
        self.outermost.insert(key, (start, end));
        let place = Place {
            process: caller.process,
            device,
            context: ContextId(device.0),
            stream,
            channel: u32::try_from(stream.0).unwrap_or(0),
            channel_kind: match channel {
                "Compute" => ChannelKind::COMPUTE,
                "Blit" | "Copy" => ChannelKind::COPY,
                _ => ChannelKind::UNKNOWN,
            },
        };
        builder.seen_at(&place);
        builder.stream_mut(&place).name = builder.string(channel)?;
        let latency = row.number(&["start-latency"], "").filter(|latency| *latency > 0);
        let submitted = latency.and_then(|latency| start.0.checked_sub(latency));
        let kernel = Kernel {
            start,
            end,
            submitted: submitted.map_or(Timestamp::NONE, Timestamp),
            correlation: CorrelationId(command_buffer(row)),
            grid_id: row.number(&["encoder-id"], "").unwrap_or(0) as i64,
            place,
            shape: KernelShape {
                name,
                demangled: name,
                ..KernelShape::default()
            },
            ..Kernel::default()
        };
        builder.push(self.clock, &kernel)
    }

    fn submission(&mut self, row: &Row<'_>, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
        let (start, end) = row.interval(builder);
        let call = ApiCall {
            start,
            end,
            correlation: CorrelationId(command_buffer(row)),
            caller: row.caller(builder)?,
            shape: ApiShape {
                name: builder.string("commit command buffer")?,
                domain: ApiDomain::METAL,
                ..ApiShape::default()
            },
            ..ApiCall::default()
        };
        builder.push(self.clock, &call)
    }

    fn host_work(
        &mut self,
        category: &str,
        row: &Row<'_>,
        builder: &mut Builder<'_, '_>,
    ) -> Result<(), Error> {
        let (start, end) = row.interval(builder);
        let call = HostCall {
            start,
            end,
            correlation: CorrelationId(command_buffer(row)),
            depth: u32::try_from(row.number(&["nesting-level", "event-depth"], "").unwrap_or(0)).unwrap_or(0),
            detail: builder.string(detail(row))?,
            caller: row.caller(builder)?,
            shape: HostShape {
                name: name_of(row, category, builder)?,
                kind: HostCallKind::CUSTOM,
                category: builder.string(category)?,
                ..HostShape::default()
            },
            ..HostCall::default()
        };
        builder.push(self.clock, &call)
    }

    fn marker(
        &mut self,
        domain: &str,
        kind: MarkerKind,
        start: Timestamp,
        end: Timestamp,
        row: &Row<'_>,
        builder: &mut Builder<'_, '_>,
    ) -> Result<(), Error> {
        let caller = row.caller(builder)?;
        let (stack, _) = row.stack(caller.process, builder)?;
        let subsystem = match row.text(&["subsystem"], "subsystem") {
            "" => domain,
            subsystem => subsystem,
        };
        let payload = Some(command_buffer(row)).filter(|id| *id != 0);
        let marker = Marker {
            start,
            end,
            range: row.number(&["identifier", "swap-id"], "").unwrap_or(0),
            payload: payload.unwrap_or(0),
            detail: builder.string(detail(row))?,
            stack,
            caller,
            shape: MarkerShape {
                name: name_of(row, domain, builder)?,
                domain: builder.string(subsystem)?,
                category_name: builder
                    .string(row.text(&["category", "display-name", "display"], "category"))?,
                kind,
                payload_kind: match payload {
                    Some(_) => PayloadKind::U64,
                    None => PayloadKind::NONE,
                },
                ..MarkerShape::default()
            },
        };
        builder.push(self.clock, &marker)
    }

    fn sample(&mut self, row: &Row<'_>, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
        let time = match row.number(&["time", "sample-time"], "sample-time") {
            Some(time) if time > 0 => Timestamp(time),
            _ => row.time(builder),
        };
        let caller = row.caller(builder)?;
        let (stack, function) = row.stack(caller.process, builder)?;
        let state = row.text(&["thread-state"], "thread-state");
        let name = function.unwrap_or_else(|| "sample".to_owned());
        let call = HostCall {
            start: time,
            end: time,
            cpu: u32::try_from(row.number(&["core-index", "core"], "core").unwrap_or(0)).unwrap_or(0),
            argument: row.number(&["weight"], "weight").unwrap_or(0),
            stack,
            caller,
            shape: HostShape {
                name: builder.string(&name)?,
                kind: HostCallKind::SAMPLE,
                category: builder.string(state)?,
                ..HostShape::default()
            },
            ..HostCall::default()
        };
        builder.push(self.clock, &call)
    }

    fn counter(&mut self, row: &Row<'_>, builder: &mut Builder<'_, '_>) -> Result<(), Error> {
        let value = row.value(&["value"], "");
        let value = value.and_then(|value| row.document.text_of(value).parse::<f64>().ok());
        let Some(value) = value.filter(|value| value.is_finite()) else {
            builder.skip("counter values that are no numbers", 1);
            return Ok(());
        };
        let id = row.number(&["counter-id", "id"], "").unwrap_or(0);
        let numbered = format!("counter {id}");
        let name = self.counters.get(&id).unwrap_or(&numbered);
        let name = builder.string(name)?;
        let device = self.device(row, builder)?;
        let counter = Counter {
            time: row.time(builder),
            value,
            track: CounterTrack {
                name,
                device,
                ..CounterTrack::default()
            },
        };
        builder.push(self.clock, &counter)
    }

    /// The device that a row names; the one of a file that names none.
    fn device(&mut self, row: &Row<'_>, builder: &mut Builder<'_, '_>) -> Result<DeviceId, Error> {
        let name = row.text(&["gpu", "gpu-name", "device", "device-name"], "metal-device-name");
        if let Some(device) = self.devices.get(name) {
            return Ok(*device);
        }
        let device = builder.device(self.host, self.devices.len() as u64);
        let (name_id, apple) = (builder.string(name)?, builder.string("Apple")?);
        builder.device_mut(device).name = name_id;
        if name.starts_with("Apple") {
            builder.device_mut(device).vendor = apple;
        }
        self.devices.insert(name.to_owned(), device);
        Ok(device)
    }

    fn channel(&mut self, device: DeviceId, name: &str) -> StreamId {
        let next = StreamId(self.channels.len() as u64 + 1);
        *self.channels.entry((device, name.to_owned())).or_insert(next)
    }
}

/// What ties submissions to the work of the GPU.
fn command_buffer(row: &Row<'_>) -> u64 {
    row.number(&["cmdbuffer-id", "command-buffer-id"], "metal-command-buffer-id")
        .unwrap_or(0)
}

/// A row's name: its own where it has one.
fn name_of(row: &Row<'_>, fallback: &str, builder: &mut Builder<'_, '_>) -> Result<StringId, Error> {
    let names = [
        "name",
        "event-label",
        "label",
        "interval-type",
        "event-name",
        "event-type",
        "state",
    ];
    let mut texts = names.iter().map(|name| row.text(&[name], ""));
    builder.string(texts.find(|text| !text.is_empty()).unwrap_or(fallback))
}

/// What else a row says in words.
fn detail<'r>(row: &'r Row<'_>) -> &'r str {
    let names = [
        "narrative-description",
        "start-message",
        "message",
        "narrative",
        "mode",
    ];
    let mut texts = names.iter().map(|name| row.text(&[name], ""));
    texts.find(|text| !text.is_empty()).unwrap_or("")
}
