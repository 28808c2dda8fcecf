//! What is known while a file is read, and which event goes where.

use tracesmith_format::tables::{
    Caller, Flow, FlowKind, FlowPhase, FlowShape, HealthCause, HostCall, HostCallKind, HostShape,
};
use tracesmith_format::{CorrelationId, StackId, StringId, Timestamp, Writable};

use crate::error::Error;
use crate::import::Builder;
use crate::import::json::Flavour;
use crate::import::json::collectives::Collectives;
use crate::import::json::copies::CopyNames;
use crate::import::json::correlations::NumberSet;
use crate::import::json::counts::Counts;
use crate::import::json::device_work::Launches;
use crate::import::json::event::Event;
use crate::import::json::ranges::OpenRanges;
use crate::import::json::rest::Rest;
use crate::import::json::stacks::Stacks;
use crate::import::json::text::text_of;
use crate::import::json::times::Times;
use crate::import::json::tracks::{Asking, Tracks};

/// The state of a file that is being read.
pub(super) struct Reading<'r, 'b, 'w> {
    pub(super) builder: &'r mut Builder<'b, 'w>,
    pub(super) flavour: Flavour,
    /// What the file is called, and what its metadata begins with.
    pub(super) file: String,
    pub(super) prefix: String,
    pub(super) times: Times,
    pub(super) tracks: Tracks,
    pub(super) counts: Counts,
    pub(super) rest: Rest,
    pub(super) stacks: Stacks,
    pub(super) launches: Launches,
    pub(super) collectives: Collectives,
    pub(super) copy_names: CopyNames,
    pub(super) ranges: OpenRanges,
    /// Correlations of rows, and those that arrows from launches speak of.
    pub(super) correlations: NumberSet,
    pub(super) launch_arrows: NumberSet,
    pub(super) rank: Option<(Option<u32>, u32)>,
    /// Whether we wrote the file, as Chrome's JSON.
    pub(super) is_own: bool,
    /// Kernels with figures that follow from the device, and whether the file describes its devices.
    pub(super) has_device_properties: bool,
    /// Whether kernels have their occupancy among the rest of their arguments.
    pub(super) keeps_occupancy: bool,
    pub(super) last_category: (Vec<u8>, StringId),
}

impl Reading<'_, '_, '_> {
    /// Adds one event to the trace.
    #[inline]
    pub(super) fn event(&mut self, event: &Event<'_>) -> Result<(), Error> {
        let Some(phase) = event.phase() else {
            self.counts.skip("objects that are no events", 1);
            return Ok(());
        };
        // What describes others often has a time of 0, whatever the events count from.
        if phase != b'M' {
            self.times.see(self.builder, &self.file, event.time())?;
        }
        for key in event.other_keys() {
            self.counts.skip(&format!("\"{}\" of events", text_of(key)), 1);
        }
        if self.is_own && matches!(phase, b'X' | b'i') && self.own_event(event)? {
            return Ok(());
        }
        match phase {
            b'X' => self.complete(event),
            b'i' if self.is_own => self.sample(event),
            b'B' | b'E' => self.nested_range(phase, event),
            b'i' | b'I' | b'R' => self.instant(event),
            b's' | b't' | b'f' => self.arrow(phase, event),
            b'b' | b'e' | b'n' | b'S' | b'T' | b'p' | b'F' => self.free_range(phase, event),
            b'C' => self.counter(event),
            b'M' => self.description(event),
            b'P' => self.sample(event),
            _ => {
                self.counts.skip(kind_without_place(phase), 1);
                Ok(())
            }
        }
    }

    #[inline]
    fn complete(&mut self, event: &Event<'_>) -> Result<(), Error> {
        match event.category() {
            b"kernel" | b"Kernel" | b"concurrent_kernel" => self.kernel(event),
            b"gpu_memcpy" | b"Memcpy" => self.copy(event),
            b"gpu_memset" | b"Memset" => self.set(event),
            b"cuda_runtime" | b"cuda_driver" | b"hip_runtime" | b"hip_driver" | b"Runtime" | b"runtime"
            | b"driver" => self.api_call(event),
            b"cpu_op" | b"Operator" => self.operator(event),
            b"python_function" => self.python_function(event),
            b"user_annotation" => self.annotation(event),
            b"gpu_user_annotation" => self.device_annotation(event),
            b"cuda_sync" => self.sync(event),
            b"overhead" => self.overhead(event),
            b"cuda_profiler_range" => self.profiler_range(event),
            b"Trace" => self.span_of_profiler(event),
            category if category.starts_with(b"hsa") => self.api_call(event),
            category if is_other_accelerator(category) => {
                self.counts
                    .skip(&format!("events of category {}", text_of(category)), 1);
                Ok(())
            }
            category if self.flavour == Flavour::Mctracer => self.mctracer(category, event),
            _ => self.custom(event),
        }
    }

    /// When an event began and ended. What cannot be told is counted, and none.
    #[inline]
    pub(super) fn span(&mut self, event: &Event<'_>) -> (Timestamp, Timestamp) {
        let start = self.moment(event);
        if start == Timestamp::NONE {
            return (start, start);
        }
        match self.times.end(start, event.duration()) {
            Some(end) => (start, end),
            None => {
                let what = match event.duration() {
                    b"" => "events without a duration, kept without an end",
                    _ => "durations that are negative or no numbers, kept without an end",
                };
                self.counts.doubt(HealthCause::ZERO_TIME, what);
                (start, Timestamp::NONE)
            }
        }
    }

    /// When an event happened.
    #[inline]
    pub(super) fn moment(&mut self, event: &Event<'_>) -> Timestamp {
        match self.times.moment(event.time()) {
            Some(time) => time,
            None => {
                self.counts.doubt(
                    HealthCause::ZERO_TIME,
                    "events whose time is missing or cannot be told",
                );
                Timestamp::NONE
            }
        }
    }

    /// Who did something on the host.
    #[inline]
    pub(super) fn caller(&mut self, event: &Event<'_>, asking: Asking) -> Result<Caller, Error> {
        let process = self.tracks.process(self.builder, event.pid(), asking)?;
        let thread = self.tracks.thread(self.builder, process, event.tid())?;
        Ok(Caller { process, thread })
    }

    /// Adds a row.
    #[inline]
    pub(super) fn push<T: Writable>(&mut self, row: &T) -> Result<(), Error> {
        self.builder.push(self.times.clock(), row)
    }

    /// The event's name.
    #[inline]
    pub(super) fn name(&mut self, event: &Event<'_>) -> Result<StringId, Error> {
        self.builder.string(&event.name())
    }

    /// The event's category.
    #[inline]
    pub(super) fn category(&mut self, event: &Event<'_>) -> Result<StringId, Error> {
        let (known, id) = &mut self.last_category;
        if known[..] != *event.category() {
            *id = self.builder.string(&text_of(event.category()))?;
            known.clear();
            known.extend_from_slice(event.category());
        }
        Ok(*id)
    }

    /// All arguments as text.
    pub(super) fn all_arguments(&mut self, event: &Event<'_>) -> Result<StringId, Error> {
        self.rest.clear();
        for (key, value) in event.arguments() {
            self.rest.add(key, value);
        }
        self.rest.store(self.builder)
    }

    /// The stack that the event names, in either of Chrome's ways.
    pub(super) fn stack(&mut self, event: &Event<'_>) -> Result<StackId, Error> {
        if !event.frame().is_empty() {
            let file = self.builder.string(&self.file)?;
            return self.stacks.of_table(self.builder, file, event.frame());
        }
        match event.stack() {
            stack @ [b'[', ..] => self.stacks.of_list(self.builder, stack),
            _ => Ok(StackId::NONE),
        }
    }

    /// Keeps the framework's own number of a row, and those of its arguments that the row has no column for.
    #[inline]
    pub(super) fn external(
        &mut self,
        time: Timestamp,
        correlation: CorrelationId,
        external: Option<u64>,
        shape: FlowShape,
    ) -> Result<(), Error> {
        if correlation.is_some() {
            self.correlations.insert(correlation.0);
        }
        if external.is_none() && self.rest.is_empty() {
            return Ok(());
        }
        let name = self.rest.store(self.builder)?;
        self.push(&Flow {
            time,
            flow: external.unwrap_or(0),
            correlation,
            shape: FlowShape {
                kind: FlowKind::EXTERNAL,
                phase: FlowPhase::END,
                name,
                ..shape
            },
        })
    }

    /// Host work of a kind that only its writer knows.
    pub(super) fn custom(&mut self, event: &Event<'_>) -> Result<(), Error> {
        let (start, end) = self.span(event);
        let row = HostCall {
            start,
            end,
            stack: self.stack(event)?,
            detail: self.all_arguments(event)?,
            caller: self.caller(event, Asking::Other)?,
            shape: HostShape {
                name: self.name(event)?,
                kind: HostCallKind::CUSTOM,
                category: self.category(event)?,
                ..HostShape::default()
            },
            ..HostCall::default()
        };
        self.push(&row)
    }

    /// Says what is left to say at the end of a file.
    pub(super) fn finish(&mut self) -> Result<(), Error> {
        self.close_ranges()?;
        self.host_collectives()?;
        if let Some((rank, world_size)) = self.rank {
            self.tracks.set_rank(self.builder, rank, world_size);
        }
        self.tracks.finish(self.builder);
        self.times.finish(self.builder, &self.prefix)?;
        let unknown_frames = self.stacks.finish(self.builder)?;
        self.builder
            .skip("stack frames that no table has", unknown_frames);
        let unmatched = self.launch_arrows.missing_in(&self.correlations);
        self.builder
            .skip("arrows from launches whose number no row has", unmatched);
        if self.keeps_occupancy {
            self.builder
                .metadata(&format!("{}occupancy", self.prefix), "as written")?;
        }
        self.counts.finish(self.builder);
        Ok(())
    }
}

/// Categories of devices that are no GPUs, or that the model does not know.
fn is_other_accelerator(category: &[u8]) -> bool {
    [&b"mtia_"[..], b"xpu_", b"hpu_", b"glow_", b"privateuse1_"]
        .iter()
        .any(|prefix| category.starts_with(prefix))
}

fn kind_without_place(phase: u8) -> &'static str {
    match phase {
        b'N' | b'O' | b'D' => "object events",
        b'v' | b'V' => "memory dumps",
        b'c' => "clock synchronisations",
        b'(' | b')' => "context events",
        b'a' => "association events",
        _ => "events of an unknown kind",
    }
}
