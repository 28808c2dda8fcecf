//! CUPTI, NVIDIA's tracing library.
//!
//! One binary serves CUDA 12 and 13. [`Cupti::open`] uses the copy that the process
//! has loaded already, otherwise the newest that fits the driver. Records are read
//! by the prefix that all versions share, plus the fields that the version adds.
//!
//! - [`Cupti`]: the library and its calls.
//! - [`activity`]: the records in a buffer.
//! - [`abi`]: kinds, callback numbers and the structs that callbacks are handed.
//! - [`function_set`]: a set of callback IDs.
//! - [`parameters`]: what driver calls were given.
//! - [`search`]: where a libcupti may be.
//! - [`callback_switches`]: switches callbacks of calls off while no thread is in one.
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
