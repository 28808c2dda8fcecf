//! CUPTI: what NVIDIA's driver tells about the work it does.
//!
//! One binary serves CUDA 12 and 13: [`Cupti::open`] takes the copy that the
//! process holds already, else the one that fits the driver, and records are
//! read by the prefix that all versions share plus what the version found adds.
//!
//! - [`Cupti`]: the library and its calls.
//! - [`activity`]: the records in a buffer.
//! - [`abi`]: kinds, callback numbers and the structs that callbacks are handed.
//! - [`function_set`]: a set of callback IDs.
//! - [`parameters`]: what driver calls were given.
//! - [`search`]: where a libcupti may be.
//! - [`callback_switches`]: callbacks of calls, switched off while no thread is in one.
//!
//! <https://docs.nvidia.com/cupti/>

pub mod abi;
pub mod activity;
pub mod callback_switches;
mod calls;
pub mod function_set;
mod layout;
pub mod parameters;
pub mod search;

pub use calls::{
    ApiDomain, BufferCompleted, BufferRequested, CallbackFunction, Code, ContextHandle, Cupti, Flush,
    NodeHandle, StreamHandle, Subscriber, Switch, TimestampFunction,
};
