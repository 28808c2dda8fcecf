//! Whether kernels that repeat are the steps of a loop, or the layers of one pass through a model.
//!
//! Both repeat the same kernels. What comes once in each step and not in each layer decides: the host waits for the GPU or
//! reads a result back, or an optimizer updates the parameters. Without that, repetitions are layers if they all lie
//! within one range, or if the host waits between a few of them only, where a pass ends. Ranges that name a layer
//! (`blocks.3`, `layers.7`) decide before all of these.

use rustc_hash::FxHashMap;
use tracesmith_format::tables::CopyDirection;
use tracesmith_format::{ProcessId, StringId};

use super::Belongs;
use super::marked::Range;
use crate::model::copy::copy_name;
use crate::model::event::EventName;
use crate::model::trace::Trace;
use crate::reconstruct::activity::name_of;
use crate::reconstruct::ranges::without_sequence;
use crate::reconstruct::{Activity, CallClass, OpId, OpTable};

/// The share of repetitions from which on all are said to have something.
const MOST: f64 = 0.8;
/// How many more kernels than the others a repetition has in which a pass ends and the next one begins.
const MORE: f64 = 1.1;
/// The words that have the number of a layer after them.
const LAYERS: [&str; 5] = ["layer", "layers", "block", "blocks", "h"];
/// What is in the names of kernels that update parameters.
const OPTIMIZERS: [&str; 6] = [
    "adam",
    "sgd",
    "optimizer",
    "multi_tensor_apply",
    "adagrad",
    "rmsprop",
];

/// The repetitions of one process.
pub(super) struct Repetitions<'a> {
    pub(super) process: ProcessId,
    /// Kernels of a repetition.
    pub(super) period: usize,
    /// The ops of a stream, in order.
    pub(super) sequence: &'a [OpId],
    /// The places in it with which repetitions begin.
    pub(super) firsts: &'a [u32],
    /// When repetitions begin: when they are launched, or when they run.
    pub(super) starts: &'a [u64],
    pub(super) belongs: Belongs,
}

impl Repetitions<'_> {
    /// Whether they are layers of one pass or of a few.
    pub(super) fn are_layers(&self, trace: &Trace, activity: &Activity, ranges: &[Range]) -> bool {
        if self.name_layers(trace, ranges) {
            return true;
        }
        let with_wait = self.with_wait(activity);
        let waits = with_wait.iter().filter(|has_wait| **has_wait).count();
        let is_most = |count: usize| count as f64 >= MOST * with_wait.len() as f64;
        if is_most(waits) || is_most(self.updates(trace, activity)) {
            return false;
        }
        let ends_a_pass = |(pair, has_wait): (&[u32], &bool)| {
            *has_wait && f64::from(pair[1] - pair[0]) > MORE * self.period as f64
        };
        self.are_within_a_range(activity, ranges) || self.firsts.windows(2).zip(&with_wait).any(ends_a_pass)
    }

    /// Whether ranges name another layer in each repetition. A step has all layers, so each begins with the same one.
    fn name_layers(&self, trace: &Trace, ranges: &[Range]) -> bool {
        let mut known: FxHashMap<StringId, Option<(String, u64)>> = FxHashMap::default();
        // By the rest of the name: for each repetition the start and the number of its first range.
        let mut families: FxHashMap<String, Vec<Option<(u64, u64)>>> = FxHashMap::default();
        for range in ranges.iter().filter(|range| range.process == self.process) {
            let after = self.starts.partition_point(|start| *start <= range.start);
            let layer = known
                .entry(range.name)
                .or_insert_with(|| layer(trace.string(range.name)));
            let (Some((family, number)), Some(at)) = (layer, after.checked_sub(1)) else {
                continue;
            };
            let firsts = families
                .entry(family.clone())
                .or_insert_with(|| vec![None; self.starts.len()]);
            let first = firsts[at].get_or_insert((range.start, *number));
            *first = (range.start, *number).min(*first);
        }
        families.values().any(|firsts| {
            let changes = firsts.windows(2).filter(|pair| match (pair[0], pair[1]) {
                (Some((_, one)), Some((_, next))) => one != next,
                _ => false,
            });
            2 * changes.count() > firsts.len() - 1
        })
    }

    /// For each repetition but the last, whether the host waited for the GPU or read from it meanwhile.
    fn with_wait(&self, activity: &Activity) -> Vec<bool> {
        let mut with_wait = vec![false; self.firsts.len() - 1];
        let mut add = |time: u64| {
            let after = self.starts.partition_point(|start| *start <= time);
            if let Some(has_wait) = after.checked_sub(1).and_then(|at| with_wait.get_mut(at)) {
                *has_wait = true;
            }
        };
        let calls = &activity.calls;
        let threads = calls.threads.iter();
        for thread in threads.filter(|thread| thread.process == self.process) {
            let waits = thread.calls.clone();
            let waits = waits.filter(|at| calls.class(*at) == CallClass::Sync);
            // A wait ends with the work that it waits for.
            waits.for_each(|at| match self.belongs {
                Belongs::Asked => add(calls.start[at]),
                Belongs::Begun => add(calls.end[at]),
            });
        }
        let to_host = EventName::Word(copy_name(CopyDirection::DEVICE_TO_HOST));
        let ops = &activity.ops;
        let kinds = ops.kinds.iter();
        let is_read: Vec<bool> = kinds
            .map(|kind| kind.table == OpTable::Copies && kind.name == to_host)
            .collect();
        if is_read.contains(&true) {
            let reads = ops.ids().filter(|op| {
                is_read[ops.kind[op.index()] as usize]
                    && activity.lane(ops.lane[op.index()]).process == self.process
            });
            reads.for_each(|op| match self.belongs {
                Belongs::Asked => add(activity.asked(op)),
                Belongs::Begun => add(ops.start[op.index()]),
            });
        }
        with_wait
    }

    /// How many repetitions have a kernel of an optimizer.
    fn updates(&self, trace: &Trace, activity: &Activity) -> usize {
        let kinds = activity.ops.kinds.iter();
        let is_update: Vec<bool> = kinds
            .map(|kind| {
                let name = name_of(trace, kind.name).to_ascii_lowercase();
                OPTIMIZERS.iter().any(|word| name.contains(word))
            })
            .collect();
        let has_update = |pair: &&[u32]| {
            let mut ops = self.sequence[pair[0] as usize..pair[1] as usize].iter();
            ops.any(|op| is_update[activity.ops.kind[op.index()] as usize])
        };
        self.firsts.windows(2).filter(has_update).count()
    }

    /// Whether one range of the launching thread is around all launches.
    fn are_within_a_range(&self, activity: &Activity, ranges: &[Range]) -> bool {
        let call = |at: &u32| activity.ops.call[self.sequence[*at as usize].index()];
        let calls = self.firsts.first().map(call).zip(self.firsts.last().map(call));
        let Some((first, last)) = calls.filter(|(first, last)| first.is_some() && last.is_some()) else {
            return false;
        };
        let calls = &activity.calls;
        let thread = &calls.threads[calls.thread_of(first)];
        let (begin, end) = (calls.start[first.index()], calls.end[last.index()]);
        ranges.iter().any(|range| {
            (range.process, range.thread) == (thread.process, thread.thread)
                && range.start <= begin
                && range.end >= end
        })
    }
}

/// The number of the layer that a range names, and the name without it: `FSDP::pre_forward (blocks.3)` is of layer 3.
fn layer(name: &str) -> Option<(String, u64)> {
    let name = without_sequence(name);
    let is_digit = |letter: char| letter.is_ascii_digit();
    let mut from = 0;
    while let Some(start) = name[from..].find(is_digit).map(|at| from + at) {
        let length = name[start..].find(|letter| !is_digit(letter));
        let end = length.map_or(name.len(), |length| start + length);
        // `layers.7`, `layer 7`, `Layer_7`, `block7`
        let before = name[..start].trim_end_matches(['.', ' ', '_', '#', ':', '[', '-', '/']);
        let word = before.rsplit(|letter: char| !letter.is_alphabetic()).next()?;
        if LAYERS.contains(&word.to_ascii_lowercase().as_str())
            && let Ok(number) = name[start..end].parse()
        {
            return Some((format!("{}#{}", &name[..start], &name[end..]), number));
        }
        from = end;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::layer;

    #[test]
    fn names_of_layers_have_numbers() {
        for (name, family, number) in [
            (
                "FSDP::pre_forward (blocks.12._wrapped), op_id = 990878",
                "FSDP::pre_forward (blocks.#._wrapped)",
                12,
            ),
            ("model.layers.7.mlp", "model.layers.#.mlp", 7),
            ("Layer 3", "Layer #", 3),
            ("gpt2 transformer.h.0", "gpt2 transformer.h.#", 0),
        ] {
            assert_eq!(layer(name), Some((family.to_owned(), number)));
        }
        for name in [
            "step 3",
            "batch_7",
            "epoch 1",
            "layers",
            "aten::conv2d",
            "fetch 3",
        ] {
            assert_eq!(layer(name), None, "{name}");
        }
    }
}
