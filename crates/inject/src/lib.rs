//! The library that is loaded into a profiled program.
//!
//! The CUDA driver loads it (`CUDA_INJECTION64_PATH`) and NVTX does
//! (`NVTX_INJECTION64_PATH`); preloading it as well lets it stand between the
//! program's own profiler and CUPTI. It copies what CUPTI and the program tell
//! it into rings in shared memory, and nothing else: the collector, another
//! process, does the rest.
//!
//! Three rules hold everywhere in here. No panic leaves (see `guard`). No
//! thread of the program waits for us, apart from the bounded handshake when
//! its process starts and a bounded hand-over when it ends. Whatever fails is said once, to the collector, and the
//! program runs on as if we were not there.
//!
//! - `agent`: the one state of the process.
//! - `backend`: what the agent needs from a GPU vendor.
//! - `control`: the thread that takes orders.
//! - `leaving`: handing over before the program ends at once.
//! - `sink`: the rings.
//! - `cuda`: CUPTI, and sharing it with the program.
//! - `stacks`: who made a call.
//! - `nvtx`: what the program marks.

#![allow(
    unsafe_code,
    reason = "this crate is called by C and calls it; see each block"
)]

mod agent;
mod backend;
mod clock;
mod control;
mod cuda;
mod entry;
mod facts;
mod guard;
mod leaving;
mod nvtx;
mod range;
mod replay_capture;
mod sink;
mod stacks;
mod threads;
