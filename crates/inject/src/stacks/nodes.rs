//! The stacks of graph nodes.
//!
//! A node's kernels run as often as its graph is launched, and have the stack
//! that made the node. A node that was destroyed is remembered for a while: its
//! last records may not have been handed out yet. Nodes' numbers never come
//! again.

use std::{
    collections::{HashMap, VecDeque},
    sync::Mutex,
};

use crate::guard::lock;

/// Pulses for which a node outlives its graph: some seconds, in which CUPTI has
/// handed out all its records unless a kernel ran for longer.
const KEPT_PULSES: u64 = 100;

#[derive(Default)]
pub(super) struct Nodes(Mutex<State>);

#[derive(Default)]
struct State {
    stacks: HashMap<u64, u32>,
    /// Destroyed, with the pulse then.
    gone: VecDeque<(u64, u64)>,
    pulse: u64,
}

impl Nodes {
    /// Forgets all: their numbers mean nothing in another window.
    pub(super) fn clear(&self) {
        *lock(&self.0) = State::default();
    }

    pub(super) fn put(&self, node: u64, stack: u32) {
        lock(&self.0).stacks.insert(node, stack);
    }

    pub(super) fn get(&self, node: u64) -> Option<u32> {
        lock(&self.0).stacks.get(&node).copied()
    }

    /// A node is a copy of another, and has its stack.
    pub(super) fn copy(&self, original: u64, node: u64) {
        let mut state = lock(&self.0);
        match state.stacks.get(&original).copied() {
            Some(stack) => state.stacks.insert(node, stack),
            // It was made before the window: the stack of the copying says nothing.
            None => state.stacks.remove(&node),
        };
    }

    /// A node is being destroyed.
    pub(super) fn remove(&self, node: u64) {
        let mut state = lock(&self.0);
        let pulse = state.pulse;
        state.gone.push_back((pulse, node));
    }

    /// Time goes on.
    pub(super) fn pulse(&self) {
        let mut state = lock(&self.0);
        state.pulse += 1;
        while let Some((pulse, node)) = state.gone.front().copied()
            && pulse + KEPT_PULSES < state.pulse
        {
            state.gone.pop_front();
            state.stacks.remove(&node);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_the_stack_of_its_original() {
        let nodes = Nodes::default();
        nodes.put(1, 10);
        nodes.put(2, 99);
        nodes.copy(1, 2);
        assert_eq!(nodes.get(2), Some(10));
        nodes.copy(7, 2);
        assert_eq!(nodes.get(2), None, "nobody knows who made the original");
    }

    #[test]
    fn a_node_that_is_gone_is_remembered_for_a_while() {
        let nodes = Nodes::default();
        nodes.put(1, 10);
        nodes.remove(1);
        for _ in 0..KEPT_PULSES {
            nodes.pulse();
        }
        assert_eq!(nodes.get(1), Some(10));
        nodes.pulse();
        assert_eq!(nodes.get(1), None);
    }
}
