//! Host activity: API calls, other function calls and samples.

use crate::ids::{CorrelationId, ImageId, StackId, StringId, Timestamp, codes};
use crate::table::{group, table};
use crate::tables::place::Caller;

table! {
    /// One runtime or driver API call.
    ApiCall, ApiCalls, API_CALLS, times(start, end);
    /// The time when the function was entered.
    1 start: Timestamp, delta;
    /// The time when the function returned.
    2 end: Timestamp, after(1 start);
    /// Links the call to the operations it launched.
    3 correlation: CorrelationId, delta;
    /// The code that made the call.
    4 stack: StackId, plain;
    shared:
        /// The calling process and thread.
        32 caller: Caller;
        /// The function and its result.
        64 shape: ApiShape;
}

group! {
    /// An API function and its result.
    ApiShape {
        /// The function's name.
        1 name: StringId,
        /// The API.
        2 domain: ApiDomain,
        /// The API's number of the function.
        3 function: u32,
        /// The result code; 0 is success.
        4 result: i32,
    }
}

table! {
    /// One function call, sample or other interval on the host.
    HostCall, HostCalls, HOST_CALLS, times(start, end);
    /// The start time.
    1 start: Timestamp, delta;
    /// The end time; equal to the start for a sample or instant.
    2 end: Timestamp, after(1 start);
    /// Links to GPU operations or calls, if the source has such an ID.
    3 correlation: CorrelationId, delta;
    /// Links forward and backward operators of a framework; 0 is none.
    4 sequence: i64, delta;
    /// The number of callers on the same thread, if the source has it.
    5 depth: u32, plain;
    /// The processor.
    6 cpu: u32, plain;
    /// An argument, or the weight of a sample.
    7 argument: u64, plain;
    /// The calling code.
    8 stack: StackId, plain;
    /// Other data of the source, as text.
    9 detail: StringId, plain;
    shared:
        /// The process and thread.
        32 caller: Caller;
        /// The kind of event.
        64 shape: HostShape;
}

group! {
    /// A kind of host event.
    HostShape {
        /// The function or operator.
        1 name: StringId,
        /// The kind of event.
        2 kind: HostCallKind,
        /// The category in the source.
        3 category: StringId,
        /// The program or library that contains the function.
        4 image: ImageId,
        /// How a function call ended.
        5 exit: CallExit,
    }
}

codes! {
    /// The API of a call.
    ApiDomain {
        /// Unknown.
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

    /// A kind of host event.
    HostCallKind {
        /// A function.
        FUNCTION = 0 "function",
        /// A Python function.
        PYTHON = 1 "python",
        /// An operator of a framework.
        OPERATOR = 2 "operator",
        /// A call into the operating system's libraries.
        OS = 3 "os",
        /// Overhead of the profiler.
        OVERHEAD = 4 "overhead",
        /// A sampled stack.
        SAMPLE = 5 "sample",
        /// An event of another kind.
        CUSTOM = 6 "custom",
        /// Compilation of a module.
        COMPILE = 7 "compile",
    }

    /// How a function call ended.
    CallExit {
        /// The function returned.
        RETURN = 0 "return",
        /// The function jumped to another function.
        TAIL = 1 "tail",
        /// The end was not seen.
        OPEN = 2 "open",
    }
}
