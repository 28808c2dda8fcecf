//! Records of the time that profiling itself takes.

use super::activity;
use super::record::{Overhead, kind};
use crate::call;

/// `CUpti_ActivityOverheadKind`.
pub(crate) const BUFFER_FLUSH: u32 = 1 << 16;
pub(crate) const RESOURCE: u32 = 3 << 16;
pub(crate) const BUFFER_REQUEST: u32 = 7 << 16;

/// `CUPTI_ACTIVITY_OBJECT_THREAD`.
const THREAD: u32 = 2;

/// Overhead of this thread.
pub(crate) fn record(overhead: u32, start: u64, end: u64) {
    if !activity::is_enabled(kind::OVERHEAD) {
        return;
    }
    let record = Overhead {
        kind: kind::OVERHEAD,
        overhead,
        object_kind: THREAD,
        object: [std::process::id(), activity::thread_id(), 0],
        start,
        end: end.max(start + 1),
        correlation_id: call::correlation_id(),
        ..Overhead::default()
    };
    activity::emit(&record, kind::OVERHEAD);
}
