//! Packet sequences: what later packets of a writer refer to by number.

use std::rc::Rc;

use rustc_hash::FxHashMap;
use tracesmith_format::tables::Frame;
use tracesmith_format::{Address, FrameId, ProcessId, StackId, ThreadId};

use super::gpu::{ComputeKernel, Context, Specification};
use crate::error::Error;
use crate::import::Builder;
use crate::perfetto::schema::{defaults, frame, gpu, interned};
use crate::perfetto::wire::Fields;

/// A text that many events share.
pub(super) type Text = Rc<str>;

/// The state of one packet sequence.
#[derive(Default)]
pub(super) struct Sequence {
    pub(super) default_clock: Option<u64>,
    pub(super) default_track: Option<u64>,
    pub(super) extra_counters: Vec<u64>,
    /// The thread that events without a track are of.
    pub(super) thread: Option<(ProcessId, ThreadId)>,
    /// The time that deltas of old traces start from, in microseconds.
    pub(super) legacy_micros: u64,
    pub(super) event_names: FxHashMap<u64, Text>,
    pub(super) categories: FxHashMap<u64, Text>,
    pub(super) annotation_names: FxHashMap<u64, Text>,
    pub(super) annotation_strings: FxHashMap<u64, Text>,
    pub(super) stacks: FxHashMap<u64, StackId>,
    pub(super) specifications: FxHashMap<u64, Specification>,
    pub(super) contexts: FxHashMap<u64, Context>,
    pub(super) kernels: FxHashMap<u64, ComputeKernel>,
    pub(super) argument_names: FxHashMap<u64, Text>,
    /// For each list of GPU counters, their names by number.
    pub(super) gpu_counters: FxHashMap<u64, FxHashMap<u64, Text>>,
    functions: FxHashMap<u64, Text>,
    sources: FxHashMap<u64, Text>,
    frames: FxHashMap<u64, FrameId>,
}

impl Sequence {
    /// Forgets everything that packets referred to: the writer starts again.
    pub(super) fn clear(&mut self) {
        *self = Sequence {
            thread: self.thread,
            legacy_micros: self.legacy_micros,
            ..Sequence::default()
        };
    }

    pub(super) fn set_defaults(&mut self, bytes: &[u8]) {
        for (field, value) in Fields::new(bytes).flatten() {
            match field {
                defaults::TIMESTAMP_CLOCK_ID => self.default_clock = Some(value.number()),
                defaults::TRACK_EVENT => {
                    self.extra_counters.clear();
                    for (field, value) in Fields::new(value.bytes()).flatten() {
                        match field {
                            defaults::TRACK_UUID => self.default_track = Some(value.number()),
                            defaults::EXTRA_COUNTERS => self.extra_counters.extend(value.numbers()),
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// The thread of a sequence, in traces that describe it apart from tracks.
    pub(super) fn describe_thread(&mut self, thread: (ProcessId, ThreadId), content: &[u8]) {
        const REFERENCE_MICROS: u32 = 6;
        self.thread = Some(thread);
        for (field, value) in Fields::new(content).flatten() {
            if field == REFERENCE_MICROS {
                self.legacy_micros = value.number();
            }
        }
    }

    /// Takes in what later packets refer to.
    pub(super) fn intern(&mut self, bytes: &[u8], builder: &mut Builder<'_, '_>) -> Result<(), Error> {
        let mut late = Vec::new();
        for (field, value) in Fields::new(bytes).flatten() {
            let texts = match field {
                interned::EVENT_NAMES => &mut self.event_names,
                interned::CATEGORIES => &mut self.categories,
                interned::ANNOTATION_NAMES => &mut self.annotation_names,
                interned::ANNOTATION_STRINGS => &mut self.annotation_strings,
                interned::FUNCTION_NAMES => &mut self.functions,
                interned::SOURCE_PATHS => &mut self.sources,
                interned::COMPUTE_ARGUMENT_NAMES => &mut self.argument_names,
                _ => {
                    late.push((field, value.bytes()));
                    continue;
                }
            };
            let (iid, text) = interned_text(value.bytes());
            texts.insert(iid, text);
        }
        // Frames refer to names, and stacks to frames, that may stand behind them.
        for wanted in [interned::FRAMES, interned::CALLSTACKS] {
            for (_, bytes) in late.iter().filter(|(field, _)| *field == wanted) {
                match wanted {
                    interned::FRAMES => self.intern_frame(bytes, builder)?,
                    _ => self.intern_stack(bytes, builder)?,
                }
            }
        }
        for (field, bytes) in late {
            match field {
                interned::GPU_SPECIFICATIONS => {
                    let (iid, specification) = Specification::new(bytes);
                    self.specifications.insert(iid, specification);
                }
                interned::GRAPHICS_CONTEXTS => {
                    let (iid, context) = Context::new(bytes);
                    self.contexts.insert(iid, context);
                }
                interned::COMPUTE_KERNELS => {
                    let (iid, kernel) = ComputeKernel::new(bytes);
                    self.kernels.insert(iid, kernel);
                }
                interned::GPU_COUNTER_DESCRIPTORS => self.intern_counters(bytes),
                _ => {}
            }
        }
        Ok(())
    }

    fn intern_frame(&mut self, bytes: &[u8], builder: &mut Builder<'_, '_>) -> Result<(), Error> {
        let mut iid = 0;
        let mut found = Frame::default();
        for (field, value) in Fields::new(bytes).flatten() {
            let number = value.number();
            match field {
                interned::IID => iid = number,
                frame::FUNCTION => {
                    found.function = builder.string(self.functions.get(&number).map_or("", |text| text))?;
                }
                frame::SOURCE_PATH => {
                    found.file = builder.string(self.sources.get(&number).map_or("", |text| text))?;
                }
                frame::RELATIVE_ADDRESS => found.address = Address(number),
                frame::LINE => found.line = number as u32,
                _ => {}
            }
        }
        let id = builder.frame(found)?;
        self.frames.insert(iid, id);
        Ok(())
    }

    fn intern_stack(&mut self, bytes: &[u8], builder: &mut Builder<'_, '_>) -> Result<(), Error> {
        let mut iid = 0;
        let mut frames = Vec::new();
        for (field, value) in Fields::new(bytes).flatten() {
            match field {
                interned::IID => iid = value.number(),
                frame::CALLSTACK_FRAMES => {
                    frames.extend(
                        value
                            .numbers()
                            .iter()
                            .filter_map(|id| self.frames.get(id).copied()),
                    );
                }
                _ => {}
            }
        }
        let stack = builder.stack(frames)?;
        self.stacks.insert(iid, stack);
        Ok(())
    }

    fn intern_counters(&mut self, bytes: &[u8]) {
        let mut iid = 0;
        let mut names = FxHashMap::default();
        for (field, value) in Fields::new(bytes).flatten() {
            match field {
                interned::IID => iid = value.number(),
                gpu::COUNTER_DESCRIPTOR_IN_INTERNED => names = counter_names(value.bytes()),
                _ => {}
            }
        }
        self.gpu_counters.insert(iid, names);
    }
}

/// The names of GPU counters in their descriptor.
pub(super) fn counter_names(bytes: &[u8]) -> FxHashMap<u64, Text> {
    let mut names = FxHashMap::default();
    for (field, value) in Fields::new(bytes).flatten() {
        if field == gpu::COUNTER_SPECS {
            let (id, name) = interned_text(value.bytes());
            names.insert(id, name);
        }
    }
    names
}

/// A message whose field 1 is a number and whose field 2 is a text: most interned ones.
pub(super) fn interned_text(bytes: &[u8]) -> (u64, Text) {
    let (mut iid, mut text) = (0, Text::from(""));
    for (field, value) in Fields::new(bytes).flatten() {
        match field {
            interned::IID => iid = value.number(),
            interned::TEXT => text = String::from_utf8_lossy(value.bytes()).into(),
            _ => {}
        }
    }
    (iid, text)
}
