//! What the host did: calls of the GPU's interface, and any other function or stretch of work.

use crate::ids::{CorrelationId, ImageId, StackId, StringId, Timestamp, codes};
use crate::table::{group, table};
use crate::tables::place::Caller;

table! {
    /// One call of a runtime or driver function.
    ApiCall, ApiCalls, API_CALLS, times(start, end);
    /// When it was entered.
    1 start: Timestamp, delta;
    /// When it came back.
    2 end: Timestamp, after(1 start);
    /// Joins the work that it asked for.
    3 correlation: CorrelationId, delta;
    /// The code that called.
    4 stack: StackId, plain;
    shared:
        /// Who called.
        32 caller: Caller;
        /// What was called, and what came back.
        64 shape: ApiShape;
}

group! {
    /// A function of a GPU interface and its result.
    ApiShape {
        /// The function's name.
        1 name: StringId,
        /// Which interface it belongs to.
        2 domain: ApiDomain,
        /// The interface's own number of the function.
        3 function: u32,
        /// What it gave back; 0 is success.
        4 result: i32,
    }
}

table! {
    /// One function call, sample or other stretch of work on the host.
    HostCall, HostCalls, HOST_CALLS, times(start, end);
    /// When it began.
    1 start: Timestamp, delta;
    /// When it ended; equal to the start for a sample or instant.
    2 end: Timestamp, after(1 start);
    /// Joins device work or calls, where the source has such a number.
    3 correlation: CorrelationId, delta;
    /// Pairs forward and backward work of a framework; 0 is none.
    4 sequence: i64, delta;
    /// Calls above this one on the same thread, where the source says so.
    5 depth: u32, plain;
    /// The processor that it ran on.
    6 cpu: u32, plain;
    /// An argument or a sample's weight.
    7 argument: u64, plain;
    /// The code it was called from.
    8 stack: StackId, plain;
    /// Anything else that the source knew, as text.
    9 detail: StringId, plain;
    shared:
        /// Who did it.
        32 caller: Caller;
        /// What was done.
        64 shape: HostShape;
}

group! {
    /// A piece of host work.
    HostShape {
        /// The function or operator.
        1 name: StringId,
        /// What kind of work it is.
        2 kind: HostCallKind,
        /// The source's own category.
        3 category: StringId,
        /// The program or library that the function is in.
        4 image: ImageId,
        /// How a function call was left.
        5 exit: CallExit,
    }
}

codes! {
    /// The interface that a call belongs to.
    ApiDomain {
        /// Not known.
        UNKNOWN = 0 "unknown",
        /// CUDA driver.
        CUDA_DRIVER = 1 "cuda driver",
        /// CUDA runtime.
        CUDA_RUNTIME = 2 "cuda runtime",
        /// HIP runtime.
        HIP = 3 "hip",
        /// HSA runtime.
        HSA = 4 "hsa",
        /// Metal.
        METAL = 5 "metal",
        /// MetaX runtime.
        MACA = 6 "maca",
        /// Operating system.
        OS = 7 "os",
    }

    /// A kind of host work.
    HostCallKind {
        /// A function.
        FUNCTION = 0 "function",
        /// A Python function.
        PYTHON = 1 "python",
        /// An operator of a framework.
        OPERATOR = 2 "operator",
        /// A call into the operating system's libraries.
        OS = 3 "os",
        /// The profiler's own work.
        OVERHEAD = 4 "overhead",
        /// A sampled stack.
        SAMPLE = 5 "sample",
        /// An event of the source's own kind.
        CUSTOM = 6 "custom",
        /// Compilation of device code.
        COMPILE = 7 "compile",
    }

    /// How a function call was left.
    CallExit {
        /// It returned.
        RETURN = 0 "return",
        /// By jumping into another function.
        TAIL = 1 "tail",
        /// Its end was not seen.
        OPEN = 2 "open",
    }
}
