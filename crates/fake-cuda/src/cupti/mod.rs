//! CUPTI: activity records and callbacks about what the driver and runtime of this crate do.
//! <https://docs.nvidia.com/cupti/main/main.html>

pub(crate) mod activity;
pub(crate) mod announcements;
pub(crate) mod buffer;
pub(crate) mod call_names;
pub(crate) mod callbacks;
pub(crate) mod code;
pub(crate) mod correlation;
pub(crate) mod delivery;
pub(crate) mod device_work;
pub(crate) mod exports;
pub(crate) mod filters;
pub(crate) mod graph_callbacks;
pub(crate) mod memory_use;
pub(crate) mod names;
pub(crate) mod overhead;
pub(crate) mod record;
pub(crate) mod subscriber;
pub(crate) mod waits;
