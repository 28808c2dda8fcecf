//! The numbers that an export uses for texts, processes, threads and devices.

use rustc_hash::{FxHashMap, FxHashSet};
use tracesmith_format::tables::{Caller, KernelShape, Place};
use tracesmith_format::{DeviceId, ProcessId, StackId, StringId, ThreadId};
use tracesmith_trace::Trace;

/// Pids and tids have 24 bits in a packed number.
const MAX_PID: u64 = 0xff_ffff;
/// What stands for no device, stream or event where null is not allowed.
pub(super) const NO_NUMBER: i64 = 0xffff_ffff;
/// Texts that the trace does not have get numbers from here on: those of the trace are smaller.
const FIRST_OWN_TEXT: i64 = 1 << 32;

/// Numbers given out so far.
pub(super) struct Names<'t> {
    trace: &'t Trace,
    used: FxHashSet<StringId>,
    own: FxHashMap<String, i64>,
    /// Own texts in the order of their numbers.
    pub(super) own_texts: Vec<String>,
    kernels: FxHashMap<(StringId, StringId), [i64; 3]>,
    processes: FxHashMap<ProcessId, i64>,
    threads: FxHashMap<(ProcessId, ThreadId), i64>,
    taken: FxHashSet<i64>,
    /// Threads whose own number does not fit, with what stands for it.
    pub(super) long_threads: Vec<(i64, u64)>,
    devices: FxHashMap<DeviceId, i64>,
}

impl<'t> Names<'t> {
    pub(super) fn new(trace: &'t Trace) -> Self {
        let mut names = Names {
            trace,
            used: FxHashSet::default(),
            own: FxHashMap::default(),
            own_texts: Vec::new(),
            kernels: FxHashMap::default(),
            processes: FxHashMap::default(),
            threads: FxHashMap::default(),
            taken: FxHashSet::default(),
            long_threads: Vec::new(),
            devices: FxHashMap::default(),
        };
        for process in &trace.processes {
            let machine = i64::from(process.host.0.max(1) & 0xffff) << 48;
            let packed = names.pack(machine, process.pid);
            names.processes.insert(process.id, packed);
        }
        for device in &trace.devices {
            names.devices.insert(device.id, i64::from(device.ordinal));
        }
        names
    }

    /// A process of a machine as a packed number: by its own pid, or by the highest free one when that is too long or
    /// taken, as after a merge of traces from one machine.
    fn pack(&mut self, machine: i64, pid: u32) -> i64 {
        let own = Some(u64::from(pid)).filter(|pid| *pid <= MAX_PID);
        let packed = own
            .into_iter()
            .chain((0..=MAX_PID).rev())
            .map(|pid| machine | (pid as i64) << 24)
            .find(|packed| !self.taken.contains(packed))
            .unwrap_or(machine);
        self.taken.insert(packed);
        packed
    }

    /// The number of a text.
    pub(super) fn text(&mut self, id: StringId) -> i64 {
        self.used.insert(id);
        i64::from(id.0)
    }

    /// The number of a text that the trace need not have.
    pub(super) fn own_text(&mut self, text: &str) -> i64 {
        if let Some(number) = self.own.get(text) {
            return *number;
        }
        let number = own_number(self.own_texts.len());
        self.own.insert(text.to_owned(), number);
        self.own_texts.push(text.to_owned());
        number
    }

    /// The texts of the trace that were used, in the order of their numbers.
    pub(super) fn used_texts(&self) -> Vec<StringId> {
        let mut used: Vec<StringId> = self.used.iter().copied().collect();
        used.sort_unstable();
        used
    }

    /// A kernel's demangled, short and mangled name.
    pub(super) fn kernel(&mut self, shape: &KernelShape) -> [i64; 3] {
        let key = (shape.name, shape.demangled);
        if let Some(numbers) = self.kernels.get(&key) {
            return *numbers;
        }
        let name = self.trace.string(shape.name);
        let demangled = match shape.demangled {
            StringId::NONE => shape.name,
            id => id,
        };
        let short = match name.starts_with("_Z") || name.is_empty() {
            true => short_name(self.trace.string(demangled)).to_owned(),
            false => name.to_owned(),
        };
        let short = match short == name {
            true => self.text(shape.name),
            false => self.own_text(&short),
        };
        let numbers = [self.text(demangled), short, self.text(shape.name)];
        self.kernels.insert(key, numbers);
        numbers
    }

    /// A process as a packed number.
    pub(super) fn process(&self, process: ProcessId) -> i64 {
        self.processes.get(&process).copied().unwrap_or(0)
    }

    /// A thread as a packed number.
    pub(super) fn thread(&mut self, caller: &Caller) -> i64 {
        let key = (caller.process, caller.thread);
        if let Some(packed) = self.threads.get(&key) {
            return *packed;
        }
        let base = self.process(caller.process);
        let number = caller.thread.0;
        let packed = match number <= MAX_PID {
            true => base | number as i64,
            false => {
                let stand_in = base | (MAX_PID as i64 - self.long_threads.len() as i64).max(0);
                self.long_threads.push((stand_in, number));
                stand_in
            }
        };
        self.threads.insert(key, packed);
        packed
    }

    /// A device as nsys counts it.
    pub(super) fn device(&self, device: DeviceId) -> i64 {
        self.devices.get(&device).copied().unwrap_or(NO_NUMBER)
    }

    /// A device, unless there is none.
    pub(super) fn other_device(&self, device: DeviceId) -> Option<i64> {
        self.devices.get(&device).copied()
    }

    /// Device, context, stream and process of a place, in the order in which tables have them.
    pub(super) fn place(&self, place: &Place) -> (i64, u32, u64, i64) {
        (
            self.device(place.device),
            place.context.0,
            place.stream.0,
            self.process(place.process),
        )
    }
}

/// The number of the own text at a place.
pub(super) fn own_number(place: usize) -> i64 {
    FIRST_OWN_TEXT + place as i64
}

/// Stacks that rows refer to, in the order of their numbers.
#[derive(Default)]
pub(super) struct UsedStacks(FxHashSet<StackId>);

impl UsedStacks {
    /// The number of a stack; `None` for none.
    pub(super) fn number(&mut self, stack: StackId) -> Option<u32> {
        stack.is_some().then(|| {
            self.0.insert(stack);
            stack.0
        })
    }

    pub(super) fn sorted(&self) -> Vec<StackId> {
        let mut stacks: Vec<StackId> = self.0.iter().copied().collect();
        stacks.sort_unstable();
        stacks
    }
}

/// A function's own name: without what it returns, its scopes, template arguments and parameters.
pub(super) fn short_name(demangled: &str) -> &str {
    let bytes = demangled.as_bytes();
    let mut start = 0;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            // A scope without a name stands in brackets itself.
            b'<' | b'(' if at == start => match closing(bytes, at) {
                Some(end) => at = end,
                None => break,
            },
            b'<' | b'(' => {
                // A template argument list in the middle of a scope ends with `::`.
                match closing(bytes, at) {
                    Some(end) if demangled[end + 1..].starts_with("::") => at = end,
                    _ => return &demangled[start..at],
                }
            }
            b':' if bytes.get(at + 1) == Some(&b':') => {
                at += 1;
                start = at + 1;
            }
            b' ' if !demangled[start..at].ends_with("operator") => start = at + 1,
            _ => {}
        }
        at += 1;
    }
    &demangled[start..]
}

/// Where the bracket at `open` closes.
fn closing(bytes: &[u8], open: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (at, byte) in bytes.iter().enumerate().skip(open) {
        match byte {
            b'<' | b'(' => depth += 1,
            // An arrow closes nothing.
            b'>' if at > 0 && bytes[at - 1] == b'-' => {}
            b'>' | b')' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_name_has_no_scopes_and_no_arguments() {
        for (demangled, short) in [
            ("saxpy(double *, int)", "saxpy"),
            (
                "void at::native::reduce_kernel<(int)512, at::Op<float>>(T3)",
                "reduce_kernel",
            ),
            ("void at::native::<unnamed>::norm<float, (bool)0>(int)", "norm"),
            ("void <unnamed>::softmax<float>(T2 *)", "softmax"),
            ("void (anonymous namespace)::softmax<float>(T2 *)", "softmax"),
            (
                "nvjet_tst_96x64_64x10_1x2_h_bz_bias_TNN",
                "nvjet_tst_96x64_64x10_1x2_h_bz_bias_TNN",
            ),
            ("a<b>::run<c>(int)", "run"),
            ("", ""),
            ("<", "<"),
            ("void f<", "f"),
            (") > ::", ""),
        ] {
            assert_eq!(short_name(demangled), short, "{demangled}");
        }
    }
}
