//! A test double of NVIDIA's libraries: one shared object with the C functions of libcuda, libcupti and libnvidia-ml
//! that allocates, copies and runs a handful of known kernels on the CPU, and hands out activity records and callbacks
//! as the real ones do. It is never shipped.
//!
//! ```no_run
//! use tracesmith_fake_cuda::{Options, install};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = std::env::temp_dir().join("fake");
//! install(&folder)?;
//! std::process::Command::new("./program")
//!     .env("LD_LIBRARY_PATH", &folder)
//!     .envs(Options::default().variables())
//!     .status()?;
//! # Ok(())
//! # }
//! ```
//!
//! # How it is put together
//!
//! `engine` is the machine: memory in an address range of its own, streams with a thread each, modules, kernels. `driver`,
//! `runtime`, `cupti`, `nvml` and `nvtx` are the C functions. `call` is what happens around each call of driver and
//! runtime: its number, callbacks and record. `targets/` has programs that run the same against this and a real driver:
//! `launcher.c`, `linked_client.c`, `guest.c`, which goes through a plan with a profiler of its own, and `spy.c`, a profiler
//! that writes down all it is told. `slow_pages.c` makes graphs ready while memory is slow to come, `named_threads.c` marks
//! every thread that is made in it, `sudden_ends.c` ends at bad moments. `cupti_file.c` makes a libcupti in a file of its
//! own out of the fake.
//!
//! Whether the fake is right was decided by running the spy on an H200 (driver 580, CUPTI 13.0): `tests/real/` keeps what
//! it was told there, and the tests hold the fake against it.
//!
//! # Kernels
//!
//! `noop()`, `fill(ptr, u32 value, u32 n)`, `saxpy(ptr y, ptr x, f32 a, u32 n)`, `saxpy_near` of the same
//! (three units in the last place off), `vector_add(ptr c, ptr a, ptr b, u32 n)`,
//! `matmul(ptr c, ptr a, ptr b, u32 n)` with n by n floats, `accumulate(ptr sum, ptr x, u32 n)`. A module is PTX text that
//! declares them, or the cubin that was made of such text. Any other kernel is `CUDA_ERROR_NOT_FOUND`.
//!
//! # Environment
//!
//! | variable | default | what it does |
//! |---|---|---|
//! | `FAKE_CUDA_DEVICES` | 1 | how many devices there are; with 0 `cuInit` fails with `CUDA_ERROR_NO_DEVICE` |
//! | `FAKE_CUDA_DRIVER_VERSION` | fits CUPTI | what `cuDriverGetVersion` answers |
//! | `FAKE_CUDA_INIT_ERROR` | 0 | the `CUresult` that `cuInit` fails with |
//! | `FAKE_CUDA_LAUNCH_FAILURE_EVERY` | 0 | every n-th launch fails with `CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES` |
//! | `FAKE_CUDA_KERNEL_NANOS` | 0 | a kernel takes at least this long |
//! | `FAKE_CUDA_RACY` | 0 | with n one of n launches of `accumulate`, by chance, adds in another order, so that its last bits differ |
//! | `FAKE_CUDA_FAULTING_KERNEL` | none | a launch of the kernel with this name ends with `CUDA_ERROR_ILLEGAL_ADDRESS` |
//! | `FAKE_CUDA_HANGING_KERNEL` | none | a launch of the kernel with this name does not end |
//! | `FAKE_CUDA_SLOW_LAUNCH_MILLIS` | 0 | a launch takes that long to begin its kernel |
//! | `FAKE_CUDA_CAPABILITY` | 90 | the compute capability without its point: 80 is 8.0 |
//! | `FAKE_CUDA_ELSEWHERE` | 0 | with 1 `cuMemAddressReserve` never gives the address that is asked for |
//! | `FAKE_CUPTI_VERSION` | 130001 | the version: 22 (12.4), 28 (12.9), 130001 (13.0), 130401 (13.4), or any between |
//! | `FAKE_CUPTI_DROP_EVERY` | 0 | every n-th record is dropped, and counted by `cuptiActivityGetNumDroppedRecords` |
//! | `FAKE_CUPTI_ZERO_EVERY` | 0 | every n-th record of device work keeps zero times |
//! | `FAKE_CUPTI_SHUFFLE` | 0 | with 1 records leave a buffer in another order, five at a time back to front |
//! | `FAKE_CUPTI_OTHER_SUBSCRIBER` | 0 | with 1 `cuptiSubscribe` fails with 39: another client was first |
//! | `FAKE_CUPTI_REGISTER_ERROR` | 0 | `cuptiActivityRegisterCallbacks` fails with this code |
//! | `FAKE_CUPTI_SLOW_FLUSH_MILLIS` | 0 | each buffer is held up that long before it is delivered |
//!
//! As the real libraries do, it loads what `CUDA_INJECTION64_PATH` names in `cuInit`, and what `NVTX_INJECTION64_PATH`
//! names at the first NVTX call.
//!
//! # What differs from the real libraries
//!
//! - All names are one library: asking whether libcupti is loaded (`RTLD_NOLOAD`) finds it as soon as libcuda is.
//! - An older `FAKE_CUPTI_VERSION` has all symbols; calls that it should not have answer `CUPTI_ERROR_NOT_SUPPORTED`.
//! - Device memory can be read by the host. Kernels run one thread after the other, streams beside each other.
//! - Graph nodes run in the order they were added; events and waits that are captured become empty nodes.
//! - The real runtime library (libcudart) does not run on it: that needs `cuGetExportTable`. Not there either: textures,
//!   arrays, 2D copies, module globals, memory pools of the program's own, IPC, the multi-subscriber interface of CUPTI.
//! - Registers, channels and overheads are plausible, not computed. Copies between devices are not limited by links.
//! - A stream may be synchronised after all file descriptors were closed; a real driver fails then.

mod call;
mod clock;
mod code;
mod config;
mod cupti;
mod driver;
mod engine;
mod install;
mod kept;
mod nvml;
mod nvtx;
mod options;
mod pointer;
mod process;
mod runtime;

pub use install::{Error, LIBRARY_NAMES, install, library};
pub use options::{CuptiVersion, Options, variable};
