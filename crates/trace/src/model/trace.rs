//! A whole trace.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use rayon::prelude::*;
use tracesmith_format::tables::*;
use tracesmith_format::{
    Block, BlockKind, ClockId, Columns, Damage, Decoder, DeviceId, FileHeader, HostId, ImageId, Problem,
    ProcessId, Projection, Reader, StackId, StringId, Table, Timestamp, for_each_event_table,
};

use crate::analysis::KnownParts;
use crate::error::Error;
use crate::model::clocks::ClockMap;
use crate::model::event::{Event, EventName};
use crate::model::health::HealthReport;
use crate::model::native::{self, AnySource};
use crate::model::stacks::{FrameView, Pieces, StackNode, StackTables, StackView};
use crate::model::strings::Strings;
use crate::model::table::{TableView, TraceFile};
use crate::query::{Progress, ProgressFn};
use crate::tables::{Cancel, KnownViews, Texts};

macro_rules! trace {
    ($($field:ident: $row:ident,)*) => {
        /// An open trace: what it consists of is known, and rows are read when they are asked for.
        ///
        /// Opening reads the index, the strings and everything that events refer to; the event tables are
        /// [`TableView`]s that read blocks on demand.
        pub struct Trace {
            pub(crate) file: Arc<TraceFile>,
            /// All strings.
            pub strings: Strings,
            /// Facts about the recording.
            pub metadata: BTreeMap<String, String>,
            /// Machines.
            pub hosts: Vec<Host>,
            /// Processes.
            pub processes: Vec<Process>,
            /// Threads.
            pub threads: Vec<Thread>,
            /// GPUs.
            pub devices: Vec<Device>,
            /// Contexts.
            pub contexts: Vec<Context>,
            /// Streams.
            pub streams: Vec<Stream>,
            /// Clocks.
            pub clocks: Vec<Clock>,
            /// How the clocks hang together.
            pub clock_map: ClockMap,
            health: HealthReport,
            /// Mapped programs and libraries.
            pub images: TableView<Image>,
            /// Device code.
            pub modules: TableView<Module>,
            /// What nodes of graphs wait for.
            pub graph_edges: TableView<GraphEdge>,
            $(
                #[doc = concat!("Rows of [`", stringify!($row), "`].")]
                pub $field: TableView<$row>,
            )*
            stacks: OnceLock<StackTables>,
            pub(crate) parts: KnownParts,
            pub(crate) text_array: OnceLock<Option<Texts>>,
            pub(crate) views: KnownViews,
        }

        impl Trace {
            fn from_reader(reader: Reader<AnySource>) -> Self {
                let file = Arc::new(TraceFile::new(reader));
                let strings = Strings::from_pieces(pieces::<Text>(&file));
                let clocks = latest(&file, |clock: &Clock| clock.id);
                let clock_map = ClockMap::new(&clocks, &rows::<ClockPair>(&file));
                let mut trace = Trace {
                    metadata: BTreeMap::new(),
                    hosts: latest(&file, |host: &Host| host.id),
                    processes: latest(&file, |process: &Process| process.id),
                    threads: latest(&file, |thread: &Thread| (thread.process, thread.thread)),
                    devices: latest(&file, |device: &Device| device.id),
                    contexts: latest(&file, |context: &Context| (context.process, context.context)),
                    streams: latest(&file, |stream: &Stream| (stream.process, stream.context, stream.stream)),
                    clocks,
                    clock_map,
                    health: HealthReport { mended_strings: strings.mended(), ..HealthReport::default() },
                    images: TableView::new(&file),
                    modules: TableView::new(&file),
                    graph_edges: TableView::new(&file),
                    $($field: TableView::new(&file),)*
                    stacks: OnceLock::new(),
                    parts: KnownParts::default(),
                    text_array: OnceLock::new(),
                    views: KnownViews::default(),
                    strings,
                    file,
                };
                for fact in rows::<Metadata>(&trace.file) {
                    let (key, value) = (trace.string(fact.key).to_owned(), trace.string(fact.value).to_owned());
                    trace.metadata.insert(key, value);
                }
                for row in rows::<Health>(&trace.file) {
                    trace.health.add(&row, trace.strings.get(row.detail));
                }
                trace
            }

            /// Reads all event tables, on all cores.
            pub fn load(&self) {
                $(self.$field.load();)*
            }
        }
    };
}
for_each_event_table!(trace);

impl Trace {
    /// Opens a native trace file.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Ok(Self::from_reader(native::open(path)?))
    }

    /// Opens a native trace file that has grown since it was opened before. Only what is new is searched for blocks;
    /// rows are read again.
    pub fn open_grown(path: &Path, earlier: &Trace) -> Result<Self, Error> {
        let blocks = earlier.file.reader.intact_blocks();
        Ok(Self::from_reader(native::open_after(path, blocks)?))
    }

    /// Opens a native trace that is in memory.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, Error> {
        Ok(Self::from_reader(native::open_bytes(bytes)?))
    }

    /// The file's header, unless it is damaged.
    pub fn header(&self) -> Option<&FileHeader> {
        self.file.reader.header()
    }

    /// Whether the writer has not finished the file: it is still writing, or was killed. A finished file that was cut
    /// is damaged instead.
    pub fn is_unfinished(&self) -> bool {
        let header = self.header();
        let has_no_end = |damage: &Damage| damage.problem == Problem::Unfinished;
        header.is_some_and(|header| header.file_length == 0)
            && self.file.reader.damage().iter().any(has_no_end)
    }

    /// All blocks of the file.
    pub fn blocks(&self) -> &[Block] {
        self.file.reader.blocks()
    }

    /// Length of the file.
    pub fn file_bytes(&self) -> u64 {
        use tracesmith_format::Source;
        self.file.reader.source().length()
    }

    /// What was lost, cut or doubtful, as far as known by now: damage in blocks that were not read yet is not.
    pub fn health(&self) -> HealthReport {
        let mut health = self.health.clone();
        health.damage = self.file.damage();
        let mut clocks: Vec<ClockId> = self
            .blocks()
            .iter()
            .filter(|block| block.header.kind.is_events())
            .map(|block| block.header.clock)
            .collect();
        clocks.sort_unstable();
        clocks.dedup();
        // With a single clock there is nothing to link.
        if clocks.len() > 1 {
            health.unlinked_clocks = clocks
                .into_iter()
                .filter(|clock| !self.clock_map.is_linked(*clock))
                .map(|clock| self.clock_name(clock))
                .collect();
        }
        health
    }

    /// Reads every block once and notes what is damaged. Calls `progress` with each block.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`], once `cancel` is set.
    pub fn verify(&self, progress: &ProgressFn, cancel: &Cancel) -> Result<(), Error> {
        self.blocks().par_iter().try_for_each_init(
            || self.file.reader.decoder(),
            |decoder, block| {
                if cancel.is_cancelled() {
                    return Err(Error::Cancelled);
                }
                progress(Progress::Read(block.header.total_length()));
                if let Err(error) = decoder.payload(block) {
                    self.file.note(block, error);
                }
                Ok(())
            },
        )
    }

    /// The bytes that each column of each table takes in the file. Blocks that cannot be read are in [`Trace::health`].
    pub fn column_bytes(&self) -> BTreeMap<(BlockKind, u16), u64> {
        let mut decoder = self.file.reader.decoder();
        let mut sums = BTreeMap::new();
        for block in self.blocks() {
            match decoder.column_bytes(block) {
                Ok(columns) => {
                    for (column, bytes) in columns {
                        *sums.entry((block.header.kind, column)).or_default() += bytes;
                    }
                }
                Err(error) => self.file.note(block, error),
            }
        }
        sums
    }

    /// A decoder of this trace's blocks, for one thread.
    pub fn decoder(&self) -> Decoder<'_, AnySource> {
        self.file.reader.decoder()
    }

    /// Reports a block that could not be read in the trace's health.
    pub fn note_damage(&self, block: &Block, error: tracesmith_format::Error) {
        self.file.note(block, error);
    }

    /// The blocks of a table.
    pub fn view<T: Table>(&self) -> TableView<T> {
        TableView::new(&self.file)
    }

    /// All readable rows of a small table.
    pub fn rows<T: Table>(&self) -> Vec<T> {
        rows(&self.file)
    }

    /// The readable rows of a small table, one for each key. A recorder that learns more about a thing writes its row
    /// again, and the last one counts.
    pub fn latest_rows<T: Table, K: Ord>(&self, key: impl Fn(&T) -> K) -> Vec<T> {
        latest(&self.file, key)
    }

    /// A string by its id.
    pub fn string(&self, id: StringId) -> &str {
        self.strings.get(id)
    }

    /// An event's name.
    pub fn event_name(&self, event: &Event) -> &str {
        match event.name {
            EventName::Id(id) => self.string(id),
            EventName::Word(word) => word,
        }
    }

    /// The program or library with this id.
    pub fn image(&self, id: ImageId) -> Option<&Image> {
        self.stack_tables().images.get(&id)
    }

    /// A frame's function, or what is known instead: its file and its address.
    pub fn frame_name(&self, frame: &FrameView) -> String {
        let function = match &frame.symbol {
            Some(symbol) => symbol.function,
            None => frame.frame.function,
        };
        let name = self.string(function);
        if !name.is_empty() {
            return name.to_owned();
        }
        let address = frame.frame.address.0;
        match self.image(frame.frame.image) {
            Some(image) => {
                let path = self.string(image.path);
                let file = path.rsplit('/').next().unwrap_or(path);
                format!("{file}+0x{address:x}")
            }
            None => format!("0x{address:x}"),
        }
    }

    /// All stacks as a tree, in the order of their ids.
    pub fn stack_nodes(&self) -> impl Iterator<Item = StackNode> {
        let tables = self.stack_tables();
        tables.stacks.0.iter().flat_map(move |(base, stacks)| {
            let ids = (0..stacks.len()).map_while(move |row| {
                // No event can refer to an id that does not fit.
                let id = u32::try_from(base + row as u64 + 1).ok().map(StackId)?;
                Some((row, id))
            });
            ids.map(move |(row, id)| {
                let parent = stacks.parent[row];
                StackNode {
                    id,
                    parent: (parent.is_some() && parent < id).then_some(parent),
                    functions: tables.frames_of(stacks.frame[row]),
                }
            })
        })
    }

    /// A stack's frames.
    pub fn stack(&self, stack: StackId) -> StackView {
        self.stack_tables().view(stack)
    }

    /// Earliest and latest time of all events on the trace's timeline; `None` without any.
    pub fn span(&self) -> Option<(Timestamp, Timestamp)> {
        self.blocks()
            .iter()
            .filter(|block| block.header.kind.is_events() && block.header.last_time != 0)
            .map(|block| self.block_span(block))
            .reduce(|(first, last), (start, end)| (first.min(start), last.max(end)))
    }

    /// A block's first and last time on the trace's timeline.
    pub fn block_span(&self, block: &Block) -> (Timestamp, Timestamp) {
        let convert = |time| self.clock_map.convert(block.header.clock, Timestamp(time)).time;
        (convert(block.header.first_time), convert(block.header.last_time))
    }

    /// The device with this id.
    pub fn device(&self, id: DeviceId) -> Option<&Device> {
        self.devices.iter().find(|device| device.id == id)
    }

    /// The process with this id.
    pub fn process(&self, id: ProcessId) -> Option<&Process> {
        self.processes.iter().find(|process| process.id == id)
    }

    /// The host with this id.
    pub fn host(&self, id: HostId) -> Option<&Host> {
        self.hosts.iter().find(|host| host.id == id)
    }

    fn clock_name(&self, id: ClockId) -> String {
        match self.clocks.iter().find(|clock| clock.id == id) {
            Some(clock) if clock.name.is_some() => self.string(clock.name).to_owned(),
            _ => format!("clock {}", id.0),
        }
    }

    pub(crate) fn stack_tables(&self) -> &StackTables {
        self.stacks.get_or_init(|| {
            let mut tables = StackTables {
                frames: Pieces(pieces::<Frame>(&self.file)),
                stacks: Pieces(pieces::<Stack>(&self.file)),
                ..StackTables::default()
            };
            for (_, symbols) in pieces::<Symbol>(&self.file) {
                tables.add_symbols(&symbols);
            }
            let images = rows::<Image>(&self.file);
            tables.images = images.into_iter().map(|image| (image.id, image)).collect();
            tables
        })
    }
}

/// All readable blocks of a table with their bases, in the order of their ids. What would take more memory than the
/// file's size allows is left out, as damage.
fn pieces<T: Table>(file: &TraceFile) -> Vec<(u64, T::Columns)> {
    let blocks: Vec<&Block> = file
        .reader
        .blocks()
        .iter()
        .filter(|block| block.header.kind == T::KIND && file.admit(block, size_of::<T>()))
        .collect();
    let mut pieces: Vec<_> = blocks
        .par_iter()
        .map_init(
            || file.reader.decoder(),
            |decoder, block| match decoder.read::<T>(block, &Projection::all()) {
                Ok(columns) => Some((block.header.base, columns)),
                Err(error) => {
                    file.note(block, error);
                    None
                }
            },
        )
        .flatten()
        .collect();
    pieces.sort_by_key(|(base, _)| *base);
    pieces
}

/// All readable rows of a small table.
pub(crate) fn rows<T: Table>(file: &TraceFile) -> Vec<T> {
    pieces::<T>(file)
        .iter()
        .flat_map(|(_, columns)| (0..columns.len()).map(|row| columns.row(row)))
        .collect()
}

/// The same with one row for each key: a recorder that learns more of a thing writes it again, and the last row counts.
pub(crate) fn latest<T: Table, K: Ord>(file: &TraceFile, key: impl Fn(&T) -> K) -> Vec<T> {
    rows::<T>(file)
        .into_iter()
        .map(|row| (key(&row), row))
        .collect::<BTreeMap<_, _>>()
        .into_values()
        .collect()
}

impl std::fmt::Debug for Trace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trace")
            .field("blocks", &self.blocks().len())
            .field("kernels", &self.kernels)
            .finish()
    }
}
