//! Finds launches without a kernel.
//!
//! An API call is written as soon as its thread has left it. Its kernel arrives later, when CUPTI delivers it, or
//! never if the program is killed. This module pairs launches and kernels in any order. The launches that remain when
//! a process dies are missing in the trace.

use rustc_hash::{FxHashMap, FxHashSet};

/// Limit for kernels without a call. If API calls are not recorded, no call arrives.
const MOST_EARLY: usize = 1 << 20;

/// The effect of a call on kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Launch,
    BeginCapture,
    EndCapture,
}

impl Act {
    /// Classifies a driver function by its name without version.
    fn of(name: &str) -> Option<Self> {
        Some(match name {
            "cuLaunchKernel" | "cuLaunchKernelEx" | "cuLaunchCooperativeKernel" => Self::Launch,
            "cuStreamBeginCapture" | "cuStreamBeginCaptureToGraph" => Self::BeginCapture,
            "cuStreamEndCapture" => Self::EndCapture,
            _ => return None,
        })
    }
}

/// A completed API call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    /// The ID of the function's name.
    pub(super) name: u32,
    pub(super) thread: u32,
    pub(super) correlation: u64,
    pub(super) result: i32,
}

/// The launches of a process, and their kernels.
#[derive(Debug, Default)]
pub(super) struct Launches {
    /// Classification by the IDs of function names.
    acts: FxHashMap<u32, Act>,
    /// Threads that capture a graph. Their launches run later, with the graph.
    capturing: FxHashSet<u32>,
    /// Calls without a kernel yet.
    awaiting: FxHashSet<u64>,
    /// Kernels without a call yet.
    early: FxHashSet<u64>,
}

impl Launches {
    /// Adds a string that can be the name of a function.
    pub(super) fn name(&mut self, number: u32, text: &str) {
        match Act::of(text) {
            Some(act) => self.acts.insert(number, act),
            None => self.acts.remove(&number),
        };
    }

    /// Adds a driver call.
    #[inline]
    pub(super) fn call(&mut self, call: Call) {
        match self.acts.get(&call.name) {
            Some(act) if call.result == 0 => self.act(*act, call),
            _ => {}
        }
    }

    fn act(&mut self, act: Act, call: Call) {
        match act {
            Act::BeginCapture => {
                self.capturing.insert(call.thread);
            }
            Act::EndCapture => {
                self.capturing.remove(&call.thread);
            }
            Act::Launch if self.capturing.contains(&call.thread) => {}
            Act::Launch => {
                if !self.early.remove(&call.correlation) {
                    self.awaiting.insert(call.correlation);
                }
            }
        }
    }

    /// Adds a kernel that was not launched by a graph.
    #[inline]
    pub(super) fn kernel(&mut self, correlation: u64) {
        if !self.awaiting.remove(&correlation) && self.early.len() < MOST_EARLY {
            self.early.insert(correlation);
        }
    }

    /// Number of launches without a kernel.
    pub(super) fn without_kernel(&self) -> u64 {
        self.awaiting.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(launches: &mut Launches, name: &str, correlation: u64, result: i32) {
        let number = name.len() as u32;
        launches.name(number, name);
        launches.call(Call {
            name: number,
            thread: 1,
            correlation,
            result,
        });
    }

    #[test]
    fn launches_and_kernels_find_each_other_in_any_order() {
        let mut launches = Launches::default();
        call(&mut launches, "cuLaunchKernel", 1, 0);
        call(&mut launches, "cuLaunchKernelEx", 2, 0);
        launches.kernel(3);
        call(&mut launches, "cuLaunchKernel", 3, 0);
        assert_eq!(launches.without_kernel(), 2);
        launches.kernel(1);
        assert_eq!(launches.without_kernel(), 1);
        assert!(launches.early.is_empty());
    }

    #[test]
    fn what_fails_or_is_captured_has_no_kernel_to_wait_for() {
        let mut launches = Launches::default();
        call(&mut launches, "cuLaunchKernel", 1, 1);
        call(&mut launches, "cuStreamBeginCapture", 2, 0);
        call(&mut launches, "cuLaunchKernel", 3, 0);
        call(&mut launches, "cuStreamEndCapture", 4, 0);
        call(&mut launches, "cuMemAlloc", 5, 0);
        assert_eq!(launches.without_kernel(), 0);
        call(&mut launches, "cuLaunchKernel", 6, 0);
        assert_eq!(launches.without_kernel(), 1);
    }
}
