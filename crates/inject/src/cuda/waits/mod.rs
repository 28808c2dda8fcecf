//! Waits of the host and of streams, and event records, recorded by driver
//! callbacks.
//!
//! CUPTI has activity kinds for them. With either of the two, every kernel launch
//! takes half a microsecond longer, even in a program without events (H200, CUPTI
//! 13.0). Callbacks are switched on for single functions and cost nothing
//! elsewhere. They do not show when the device passed an event.
//!
//! An event is identified by its handle, which can be reused after the event is
//! destroyed. Each record of an event is identified by the call's correlation ID.
//! Calls that are captured into a graph happen when the graph runs, if at all, and
//! are not recorded here.

mod known;

use std::{
    cell::Cell,
    sync::{
        Mutex, OnceLock,
        atomic::{AtomicU8, AtomicU32, Ordering},
    },
};

use known::{Called, Known, StreamRef};
use tracesmith_cuda::{
    cupti::{
        ApiDomain, ContextHandle, Cupti, StreamHandle,
        abi::{ApiCallback, SITE_EXIT},
    },
    driver::TargetDriver,
};
use tracesmith_wire::record::{HOST_CLOCK, Synchronization};

use crate::cuda::{
    calls,
    kinds::{LAST_FUNCTION, plain_name},
    translate::{NONE, code},
};
use crate::{agent::Agent, clock, guard::lock};

/// `CU_STREAM_PER_THREAD`.
const PER_THREAD: usize = 2;

/// Invalid value, deinitialised, invalid context, invalid handle, context
/// destroyed.
const REFUSALS: [i32; 5] = [1, 4, 201, 400, 709];

/// What a function of the driver does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum SyncOperation {
    Record = 1,
    StreamWait,
    StreamSync,
    EventSync,
    ContextSync,
    /// The same of a context that is named.
    NamedContextSync,
    Destroy,
    CaptureBegin,
    CaptureEnd,
}

impl SyncOperation {
    const ALL: [Self; 9] = [
        Self::Record,
        Self::StreamWait,
        Self::StreamSync,
        Self::EventSync,
        Self::ContextSync,
        Self::NamedContextSync,
        Self::Destroy,
        Self::CaptureBegin,
        Self::CaptureEnd,
    ];

    fn of(name: &str) -> Option<Self> {
        Some(match plain_name(name) {
            "cuEventRecord" | "cuEventRecordWithFlags" => Self::Record,
            "cuStreamWaitEvent" => Self::StreamWait,
            "cuStreamSynchronize" => Self::StreamSync,
            "cuEventSynchronize" => Self::EventSync,
            "cuCtxSynchronize" if name.ends_with("_v2") => Self::NamedContextSync,
            "cuCtxSynchronize" => Self::ContextSync,
            "cuEventDestroy" => Self::Destroy,
            "cuStreamBeginCapture" | "cuStreamBeginCaptureToGraph" => Self::CaptureBegin,
            "cuStreamEndCapture" => Self::CaptureEnd,
            _ => return None,
        })
    }

    /// Where the stream and the event are among the parameters, which are all of
    /// one word.
    fn parameters(self) -> (Option<usize>, Option<usize>) {
        match self {
            Self::Record => (Some(1), Some(0)),
            Self::StreamWait => (Some(0), Some(1)),
            Self::StreamSync | Self::CaptureBegin | Self::CaptureEnd => (Some(0), None),
            Self::EventSync | Self::Destroy => (None, Some(0)),
            Self::ContextSync | Self::NamedContextSync => (None, None),
        }
    }

    fn kind(self) -> Option<u8> {
        match self {
            Self::EventSync => Some(code::EVENT_SYNC),
            Self::StreamWait => Some(code::STREAM_WAIT),
            Self::StreamSync => Some(code::STREAM_SYNC),
            Self::ContextSync | Self::NamedContextSync => Some(code::CONTEXT_SYNC),
            Self::Record => Some(code::EVENT_RECORD),
            Self::Destroy | Self::CaptureBegin | Self::CaptureEnd => None,
        }
    }
}

/// Set where the default stream of a function is that of its thread.
const OF_THREAD: u8 = 1 << 7;

/// Numbers windows. The end of a wait that spans the end of its window is not
/// followed, so its beginning stays, and is none of the next window.
static EPOCH: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// When the calling thread's wait began, and in which window.
    static BEGUN: Cell<(u32, u64)> = const { Cell::new((0, 0)) };
}

/// The calling thread begins to wait.
fn note_begin() {
    // A thread that is being torn down waits without a beginning.
    let _ = BEGUN.try_with(|begun| begun.set((EPOCH.load(Ordering::Relaxed), clock::now())));
}

/// When the calling thread began to wait, if that was in this window.
fn take_begin() -> Option<u64> {
    let (epoch, time) = BEGUN.try_with(Cell::take).unwrap_or_default();
    (time != 0 && epoch == EPOCH.load(Ordering::Relaxed)).then_some(time)
}

/// The waits of this process.
pub(in crate::cuda) struct Waits {
    /// What each function does, by its callback number; 0 is nothing.
    operations: [AtomicU8; LAST_FUNCTION as usize],
    known: Mutex<Known>,
    /// The driver, for streams of contexts that are not current.
    driver: OnceLock<Option<TargetDriver>>,
}

impl Default for Waits {
    fn default() -> Self {
        Self {
            operations: [const { AtomicU8::new(0) }; LAST_FUNCTION as usize],
            known: Mutex::default(),
            driver: OnceLock::new(),
        }
    }
}

impl Waits {
    /// They are wanted from now on: the functions to watch.
    pub(in crate::cuda) fn begin(&self, cupti: &Cupti) -> Vec<u32> {
        EPOCH.fetch_add(1, Ordering::Relaxed);
        // Handles of before may be others' by now.
        lock(&self.known).forget();
        let mut watched = Vec::new();
        for (id, place) in (0..).zip(&self.operations) {
            let name = cupti.function_name(ApiDomain::Driver, id).unwrap_or_default();
            if let Some(operation) = SyncOperation::of(name) {
                let of_thread = if name.contains("_ptsz") { OF_THREAD } else { 0 };
                place.store(operation as u8 | of_thread, Ordering::Relaxed);
                watched.push(id);
            }
        }
        watched
    }

    /// No more.
    pub(in crate::cuda) fn end(&self) {
        for operation in &self.operations {
            operation.store(0, Ordering::Relaxed);
        }
    }

    /// The calling thread begins or ends a call of the driver.
    #[inline]
    pub(in crate::cuda) fn call(&self, agent: &Agent, cupti: &Cupti, id: u32, call: &ApiCallback) {
        let operation = self
            .operations
            .get(id as usize)
            .map_or(0, |operation| operation.load(Ordering::Relaxed));
        if operation != 0 {
            self.watched(agent, cupti, operation, call);
        }
    }

    #[cold]
    fn watched(&self, agent: &Agent, cupti: &Cupti, operation: u8, call: &ApiCallback) {
        if call.site != SITE_EXIT {
            note_begin();
            return;
        }
        let (begun, end) = (take_begin(), clock::now());
        let is_of_thread = operation & OF_THREAD != 0;
        let Some(operation) = SyncOperation::ALL.get(usize::from(operation & !OF_THREAD).wrapping_sub(1))
        else {
            return;
        };
        let words = call.parameters.cast::<usize>();
        let parameter = |place: usize| {
            // SAFETY: CUPTI's copy of the call's parameters, and those that we look at are all of one word.
            (!call.parameters.is_null()).then(|| unsafe { words.wrapping_add(place).read() })
        };
        let (stream, event) = operation.parameters();
        let named = (*operation == SyncOperation::NamedContextSync)
            .then(|| parameter(0))
            .flatten();
        let context = named
            .filter(|context| *context != 0)
            .unwrap_or(call.context as usize);
        let result = calls::result_of(call);
        // What a call refuses may be no stream at all.
        let stream = stream.and_then(parameter).filter(|_| !REFUSALS.contains(&result));
        let at = match stream {
            Some(0) if is_of_thread => self.place(cupti, context, PER_THREAD),
            Some(stream) => self.place(cupti, context, stream),
            None => StreamRef {
                context: number_of(cupti, context),
                stream: NONE,
            },
        };
        let called = Called {
            at,
            event: event.and_then(parameter).unwrap_or(0),
            result,
            correlation: call.correlation,
        };
        let told = lock(&self.known).follow(*operation, &called);
        // One that began before the window is none of it.
        let (Some(kind), Some(told), Some(start)) = (operation.kind(), told, begun) else {
            return;
        };
        calls::push(
            agent,
            &Synchronization {
                start,
                end,
                event_record: u64::from(told.record),
                correlation: u64::from(call.correlation),
                event: told.event,
                device: NONE,
                context: told.context,
                stream: at.stream,
                result,
                stack: agent.stacks.of_call(call.correlation),
                kind,
                clock: HOST_CLOCK,
                ..Synchronization::default()
            },
        );
    }

    /// The numbers of a stream. Calls take streams of any context.
    fn place(&self, cupti: &Cupti, context: usize, stream: usize) -> StreamRef {
        let number = |context: usize| cupti.stream_id(ContextHandle(context), StreamHandle(stream));
        if let Some(stream) = number(context) {
            let context = number_of(cupti, context);
            return StreamRef { context, stream };
        }
        let driver = self.driver.get_or_init(|| TargetDriver::open().ok());
        let own = driver.as_ref().and_then(|driver| driver.context_of(stream));
        let context = own.unwrap_or(context);
        StreamRef {
            context: number_of(cupti, context),
            stream: number(context).unwrap_or(NONE),
        }
    }
}

fn number_of(cupti: &Cupti, context: usize) -> u32 {
    cupti.context_id(ContextHandle(context)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_a_wait_that_outlasts_its_window_is_forgotten_issue_26() {
        note_begin();
        assert!(take_begin().is_some());
        assert_eq!(take_begin(), None, "it is over");
        note_begin();
        // The window ends within the wait, and another one opens within the next wait.
        EPOCH.fetch_add(1, Ordering::Relaxed);
        assert_eq!(take_begin(), None);
    }

    #[test]
    fn functions_are_known_by_their_names() {
        for (name, operation) in [
            ("cuEventRecord_ptsz", Some(SyncOperation::Record)),
            ("cuEventRecordWithFlags", Some(SyncOperation::Record)),
            ("cuCtxSynchronize", Some(SyncOperation::ContextSync)),
            ("cuCtxSynchronize_v2", Some(SyncOperation::NamedContextSync)),
            ("cuEventDestroy_v2", Some(SyncOperation::Destroy)),
            ("cuStreamBeginCapture_v2_ptsz", Some(SyncOperation::CaptureBegin)),
            ("cuEventQuery", None),
            ("cuStreamWaitValue32_v2", None),
        ] {
            assert_eq!(SyncOperation::of(name), operation, "{name}");
        }
        for operation in SyncOperation::ALL {
            assert_eq!(SyncOperation::ALL[operation as usize - 1], operation);
        }
    }
}
