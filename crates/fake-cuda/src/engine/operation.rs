//! A piece of work for a device: what a stream runs, and what a graph keeps to run it later.

use std::ffi::c_void;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::kernels::Arguments;
use super::memory::{self, MemoryKind};
use super::module::Function;
use crate::clock;
use crate::code::Code;
use crate::config::config;

#[derive(Clone)]
pub(crate) enum Operation {
    Kernel(Launch),
    Copy(Copy),
    Set(Set),
    Host(HostCall),
    /// Holds a place: an event that was recorded or waited for while a graph was captured.
    Empty,
}

/// A kernel with all that it runs with.
#[derive(Clone)]
pub(crate) struct Launch {
    pub(crate) function: Arc<Function>,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) shared_bytes: u32,
    /// The parameter block, copied when the launch was made.
    pub(crate) arguments: Vec<u8>,
}

#[derive(Clone, Copy)]
pub(crate) struct Copy {
    pub(crate) destination: u64,
    pub(crate) source: u64,
    pub(crate) size: u64,
    pub(crate) destination_kind: MemoryKind,
    pub(crate) source_kind: MemoryKind,
    pub(crate) is_async: bool,
    /// Contexts of source and destination when the copy goes between devices.
    pub(crate) peers: Option<(u32, u32)>,
    /// Rows and planes; none for bytes one after another.
    pub(crate) shape: Option<Shape>,
}

/// How the rows of a copy lie at its two ends, destination first.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) pitches: [u64; 2],
    /// Rows from plane to plane.
    pub(crate) heights: [u64; 2],
    pub(crate) width: u64,
    pub(crate) height: u64,
    pub(crate) depth: u64,
}

impl Copy {
    fn run(&self) {
        let Some(shape) = self.shape else {
            memory::copy(self.destination, self.source, self.size);
            return;
        };
        for plane in 0..shape.depth {
            for row in 0..shape.height {
                let at = |end: usize| (plane * shape.heights[end] + row) * shape.pitches[end];
                memory::copy(self.destination + at(0), self.source + at(1), shape.width);
            }
        }
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Set {
    pub(crate) destination: u64,
    pub(crate) value: u32,
    /// Bytes of one element: 1, 2 or 4.
    pub(crate) width: u8,
    /// Bytes of one row.
    pub(crate) size: u64,
    pub(crate) rows: u64,
    pub(crate) pitch: u64,
    pub(crate) kind: MemoryKind,
    pub(crate) is_async: bool,
}

#[derive(Clone, Copy)]
pub(crate) struct HostCall {
    pub(crate) function: extern "C" fn(*mut c_void),
    pub(crate) data: usize,
}

impl Operation {
    pub(crate) fn run(&self) -> Result<(), Code> {
        match self {
            Self::Kernel(launch) => launch.run(),
            Self::Copy(copy) => {
                copy.run();
                Ok(())
            }
            Self::Set(set) => {
                let pattern = &set.value.to_le_bytes()[..usize::from(set.width)];
                for row in 0..set.rows {
                    memory::set(set.destination + row * set.pitch, pattern, set.size);
                }
                Ok(())
            }
            Self::Host(call) => {
                (call.function)(call.data as *mut c_void);
                Ok(())
            }
            Self::Empty => Ok(()),
        }
    }
}

impl Launch {
    fn run(&self) -> Result<(), Code> {
        let start = Instant::now();
        let name = self.function.name.to_str().unwrap_or_default();
        if config().faulting_kernel == name {
            return Err(Code::ILLEGAL_ADDRESS);
        }
        while config().hanging_kernel == name {
            std::thread::park();
        }
        let threads = |sizes: [u32; 3]| sizes.iter().map(|&size| u64::from(size)).product::<u64>();
        let outcome = self.function.body.run(&Arguments {
            bytes: &self.arguments,
            parameters: &self.function.parameters,
            function: &self.function,
            threads: threads(self.grid) * threads(self.block),
        });
        let least = Duration::from_nanos(config().kernel_nanos);
        if let Some(rest) = least.checked_sub(start.elapsed()) {
            clock::pass(rest);
        }
        outcome
    }
}

impl Operation {
    /// `CUgraphNodeType`.
    pub(crate) fn node_type(&self) -> u32 {
        match self {
            Self::Kernel(_) => 0,
            Self::Copy(_) => 1,
            Self::Set(_) => 2,
            Self::Host(_) => 3,
            Self::Empty => 5,
        }
    }
}
