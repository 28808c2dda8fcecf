//! The library that is loaded into a profiled program.
//!
//! The CUDA driver loads it (`CUDA_INJECTION64_PATH`), and so does NVTX
//! (`NVTX_INJECTION64_PATH`). If it is preloaded as well, it interposes the
//! CUPTI functions that a profiler in the program calls. It copies the records
//! of CUPTI and of its own callbacks into rings in shared memory. The collector,
//! another process, does the rest.
//!
//! Three rules hold in all of this crate:
//!
//! - No panic reaches the program (see `guard`).
//! - No thread of the program waits for TraceSmith, except for the handshake when
//!   the process starts and the flush when it ends. Both have a time limit.
//! - A failure is reported once, to the collector. The program continues as if
//!   TraceSmith were not there.
//!
//! - `agent`: the one state of the process.
//! - `backend`: what the agent needs from a GPU vendor.
//! - `control`: the thread that handles the collector's requests.
//! - `leaving`: the flush before `_exit`, `abort` and `exec`.
//! - `sink`: the rings.
//! - `cuda`: CUPTI, shared with a profiler in the program.
//! - `replay_capture`: the data that a replay of a window needs.
//! - `stacks`: the stacks of callers.
//! - `nvtx`: the program's ranges and marks.
//! - `wait_limit`: waiting with a time limit.

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
mod wait_limit;
