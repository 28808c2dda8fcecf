//! What programs and profilers mark: annotations, instants, memory, counters, arrows; and events that describe others.

use tracesmith_format::tables::{
    Allocation, AllocationShape, Caller, Counter, CounterKind, CounterTrack, Flow, FlowKind, FlowPhase,
    FlowShape, Marker, MarkerKind, MarkerShape, MemoryKind, MemoryOperation, Place,
};
use tracesmith_format::{Address, Bytes, CorrelationId, DeviceId, ProcessId, StringId};

use crate::error::Error;
use crate::import::json::Flavour;
use crate::import::json::event::{Event, number_or_none};
use crate::import::json::number::{real, signed, unquoted, unsigned};
use crate::import::json::reading::Reading;
use crate::import::json::text::text_of;
use crate::import::json::tracks::{Asking, Tracks};

impl Reading<'_, '_, '_> {
    /// A range that the program marked on the host.
    pub(super) fn annotation(&mut self, event: &Event<'_>) -> Result<(), Error> {
        let caller = self.caller(event, Asking::Framework)?;
        self.marked_range(event, MarkerKind::NESTED_RANGE, caller, StringId::NONE)
    }

    /// The same as seen from a device: from the first to the last work that the range launched there.
    pub(super) fn device_annotation(&mut self, event: &Event<'_>) -> Result<(), Error> {
        let device = unsigned(event.pid()).unwrap_or(0);
        let stream = signed(event.tid()).unwrap_or(0);
        self.tracks.device(self.builder, device);
        let domain = self
            .builder
            .string(&format!("device {device}, stream {stream}"))?;
        let mut caller = self.main_caller();
        if let Some(pid) = event.argument(b"process").and_then(signed) {
            caller.process = self.tracks.numbered(self.builder, pid);
        }
        self.marked_range(event, MarkerKind::FREE_RANGE, caller, domain)
    }

    /// The profiler's own spans, on pids that are no processes.
    pub(super) fn span_of_profiler(&mut self, event: &Event<'_>) -> Result<(), Error> {
        let domain = self.builder.string(&text_of(event.pid()))?;
        let caller = self.main_caller();
        self.marked_range(event, MarkerKind::FREE_RANGE, caller, domain)
    }

    /// Hardware counters over a range: as the range, and a sample of each at its end.
    pub(super) fn profiler_range(&mut self, event: &Event<'_>) -> Result<(), Error> {
        let number = unsigned(event.pid()).unwrap_or(0);
        let device = self.tracks.device(self.builder, number);
        let domain = self.builder.string(&format!("device {number}"))?;
        let caller = self.main_caller();
        self.marked_range(event, MarkerKind::FREE_RANGE, caller, domain)?;
        let (_, time) = self.span(event);
        for (key, value) in event.arguments() {
            let Some(value) = real(value) else { continue };
            let track = CounterTrack {
                name: self.builder.string(&text_of(key))?,
                device,
                kind: CounterKind::DELTA,
                ..CounterTrack::default()
            };
            self.push(&Counter { time, value, track })?;
        }
        Ok(())
    }

    fn main_caller(&mut self) -> Caller {
        Caller {
            process: self.tracks.main(self.builder),
            ..Caller::default()
        }
    }

    fn marked_range(
        &mut self,
        event: &Event<'_>,
        kind: MarkerKind,
        caller: Caller,
        domain: StringId,
    ) -> Result<(), Error> {
        let (start, end) = self.span(event);
        let mut range = 0;
        self.rest.clear();
        for (key, value) in event.arguments() {
            match key {
                b"External id" | b"external id" => range = number_or_none(value),
                _ => self.rest.add(key, value),
            }
        }
        let row = Marker {
            start,
            end,
            range,
            detail: self.rest.store(self.builder)?,
            caller,
            shape: MarkerShape {
                name: self.name(event)?,
                domain,
                category_name: self.category(event)?,
                kind,
                ..MarkerShape::default()
            },
            ..Marker::default()
        };
        self.push(&row)
    }

    pub(super) fn instant(&mut self, event: &Event<'_>) -> Result<(), Error> {
        if event.raw_name() == b"[memory]" {
            return self.memory(event);
        }
        let time = self.moment(event);
        let (caller, domain) = if Tracks::is_text(event.pid()) {
            (self.main_caller(), self.builder.string(&text_of(event.pid()))?)
        } else {
            (self.caller(event, Asking::Other)?, StringId::NONE)
        };
        let row = Marker {
            start: time,
            end: time,
            detail: self.all_arguments(event)?,
            stack: self.stack(event)?,
            caller,
            shape: MarkerShape {
                name: self.name(event)?,
                domain,
                category_name: self.category(event)?,
                kind: MarkerKind::INSTANT,
                ..MarkerShape::default()
            },
            ..Marker::default()
        };
        self.push(&row)
    }

    /// What PyTorch's allocators took and gave back.
    fn memory(&mut self, event: &Event<'_>) -> Result<(), Error> {
        let time = self.moment(event);
        let caller = self.caller(event, Asking::Framework)?;
        let mut row = Allocation {
            time,
            ..Allocation::default()
        };
        let (mut bytes, mut device, mut device_type) = (None, None, 0);
        for (key, value) in event.arguments() {
            match key {
                b"Bytes" => bytes = signed(value),
                b"Addr" => row.address = Address(unsigned(value).unwrap_or(0)),
                b"Device Id" => device = signed(value),
                b"Device Type" => device_type = number_or_none(value),
                b"Total Reserved" => row.pool_size = Bytes(unsigned(value).unwrap_or(0)),
                b"Total Allocated" => row.pool_used = Bytes(unsigned(value).unwrap_or(0)),
                _ => self
                    .counts
                    .skip(&format!("\"{}\" of [memory] events", text_of(key)), 1),
            }
        }
        let Some(bytes) = bytes else {
            self.counts.skip("[memory] events without bytes", 1);
            return Ok(());
        };
        row.bytes = Bytes(bytes.unsigned_abs());
        row.place.process = caller.process;
        let device = device.and_then(|device| u64::try_from(device).ok());
        if let Some(number) = device.filter(|_| device_type != 0) {
            row.place = Place {
                device: self.tracks.device(self.builder, number),
                ..row.place
            };
        }
        row.shape = AllocationShape {
            operation: if bytes < 0 {
                MemoryOperation::FREE
            } else {
                MemoryOperation::ALLOCATE
            },
            memory: if row.place.device == DeviceId::NONE {
                MemoryKind::PAGEABLE
            } else {
                MemoryKind::DEVICE
            },
            thread: caller.thread,
            pool_kind: u8::try_from(device_type).unwrap_or(u8::MAX),
            ..AllocationShape::default()
        };
        self.push(&row)
    }

    pub(super) fn counter(&mut self, event: &Event<'_>) -> Result<(), Error> {
        if self.is_derived_counter(event) {
            return Ok(());
        }
        let time = self.moment(event);
        let device = self.tracks.labeled_device(self.builder, event.pid());
        let process = match device {
            Some(_) => ProcessId::NONE,
            None => self.tracks.process(self.builder, event.pid(), Asking::Other)?,
        };
        let name = event.name();
        let instance = u32::try_from(unsigned(event.id()).unwrap_or(0)).unwrap_or(u32::MAX);
        for (key, value) in event.arguments() {
            let Some(value) = real(value) else {
                self.counts.skip("values of counters that are no numbers", 1);
                continue;
            };
            let (is_plain, mut unit) = (key == b"value" || key == event.raw_name(), StringId::NONE);
            if self.is_own && !is_plain {
                unit = self.builder.string(&text_of(key))?;
            }
            let track_name = if is_plain || self.is_own {
                self.builder.string(&name)?
            } else {
                self.builder.string(&format!("{name}: {}", text_of(key)))?
            };
            let track = CounterTrack {
                name: track_name,
                unit,
                process,
                device: device.unwrap_or(DeviceId::NONE),
                instance,
                ..CounterTrack::default()
            };
            self.push(&Counter { time, value, track })?;
        }
        Ok(())
    }

    /// One end of an arrow. Those from launches are said by the rows' correlations already.
    pub(super) fn arrow(&mut self, phase: u8, event: &Event<'_>) -> Result<(), Error> {
        // They follow from correlations and events.
        if self.is_own && matches!(event.category(), b"launch" | b"event") {
            return Ok(());
        }
        let flow = self.range_number(event)?;
        let kind = match event.category() {
            b"ac2g" | b"async_cpu_to_gpu" => FlowKind::LAUNCH,
            b"async" if event.raw_name() == b"launch" => FlowKind::LAUNCH,
            b"fwdbwd" | b"forward_backward" => FlowKind::FORWARD_BACKWARD,
            _ => FlowKind::CUSTOM,
        };
        if kind == FlowKind::LAUNCH {
            self.launch_arrows.insert(flow);
            return Ok(());
        }
        let time = self.moment(event);
        let caller = self.caller(event, Asking::Other)?;
        let row = Flow {
            time,
            flow,
            correlation: CorrelationId::NONE,
            shape: FlowShape {
                kind,
                phase: match phase {
                    b's' => FlowPhase::START,
                    b't' => FlowPhase::STEP,
                    _ => FlowPhase::END,
                },
                name: self.name(event)?,
                process: caller.process,
                thread: caller.thread,
                ..FlowShape::default()
            },
        };
        self.push(&row)
    }

    /// The number of a range or arrow. A text that is none gets one.
    pub(super) fn range_number(&mut self, event: &Event<'_>) -> Result<u64, Error> {
        match unsigned(event.id()) {
            Some(number) => Ok(number),
            None => {
                let text = self.builder.string(&text_of(event.id()))?;
                Ok(u64::from(text.0) | 1 << 63)
            }
        }
    }

    /// An event that says something of a process or thread.
    pub(super) fn description(&mut self, event: &Event<'_>) -> Result<(), Error> {
        let text = |key: &[u8]| text_of(event.argument(key).unwrap_or_default());
        match event.raw_name() {
            b"process_name" => {
                let name = self.builder.string(&text(b"name"))?;
                self.tracks.name_process(event.pid(), name);
            }
            b"thread_name" => {
                self.tracks
                    .name_thread(self.builder, event.pid(), event.tid(), &text(b"name"))?;
            }
            b"process_labels" => match &*text(b"labels") {
                "CPU" => {}
                label if label.starts_with("GPU") => {
                    let number = label.trim_start_matches("GPU").trim().parse();
                    let number = number.or_else(|_| unsigned(event.pid()).ok_or(()));
                    self.tracks.label_device(event.pid(), number.unwrap_or(0));
                }
                _ => self.counts.skip("labels of processes", 1),
            },
            // Kineto's follow from the kind and the number of what they sort.
            b"process_sort_index" | b"thread_sort_index" if self.flavour == Flavour::Kineto => {}
            name => self
                .counts
                .skip(&format!("descriptions called {}", text_of(unquoted(name))), 1),
        }
        Ok(())
    }
}
