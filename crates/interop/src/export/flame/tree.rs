//! Functions below their callers, each with the weight of all that they led to.

use std::collections::BTreeMap;

use tracesmith_format::StringId;

use crate::export::weights::{FrameOrigin, FrameText, Weights};

/// A function called from a certain place.
#[derive(Debug, Default)]
pub(super) struct Node {
    pub(super) weight: u64,
    /// Where it is written, as it was first met; lines differ within a function.
    pub(super) file: StringId,
    pub(super) children: BTreeMap<Function, Node>,
}

/// What functions are told apart by: one that is at several lines is one.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) origin: FrameOrigin,
}

/// All functions of a trace, by caller.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) root: Node,
    /// Texts of files.
    files: BTreeMap<StringId, String>,
}

impl Tree {
    pub(super) fn of(weights: &Weights<'_>) -> Self {
        let mut tree = Tree::default();
        for (weighed, weight) in &weights.sums {
            let frames = weights.frames(weighed);
            for frame in &frames {
                let text = || weights.string(frame.file).to_owned();
                tree.files.entry(frame.file).or_insert_with(text);
            }
            tree.root.add(&frames, *weight);
        }
        tree
    }

    pub(super) fn total(&self) -> u64 {
        self.root.weight
    }

    pub(super) fn file(&self, id: StringId) -> &str {
        self.files.get(&id).map_or("", String::as_str)
    }
}

impl Node {
    /// Not by recursion: stacks of a hundred thousand frames are allowed.
    fn add(&mut self, frames: &[FrameText], weight: u64) {
        let mut node = self;
        node.weight = node.weight.saturating_add(weight);
        for frame in frames {
            let function = Function {
                name: frame.name.clone(),
                origin: frame.origin,
            };
            node = node.children.entry(function).or_insert_with(|| Node {
                weight: 0,
                file: frame.file,
                children: BTreeMap::new(),
            });
            node.weight = node.weight.saturating_add(weight);
        }
    }
}

impl Drop for Node {
    /// Not by recursion either.
    fn drop(&mut self) {
        let mut rest: Vec<Node> = std::mem::take(&mut self.children).into_values().collect();
        while let Some(mut node) = rest.pop() {
            rest.extend(std::mem::take(&mut node.children).into_values());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(names: &[&str]) -> Vec<FrameText> {
        let frame = |name: &&str| FrameText {
            name: (*name).to_owned(),
            file: StringId::NONE,
            line: 0,
            origin: FrameOrigin::Native,
        };
        names.iter().map(frame).collect()
    }

    #[test]
    fn weights_add_up_towards_the_root() {
        let mut root = Node::default();
        root.add(&frames(&["main", "train", "gemm"]), 5);
        root.add(&frames(&["main", "train", "copy"]), 2);
        root.add(&frames(&["main", "train"]), 1);
        let main = root.children.values().next().unwrap();
        let train = main.children.values().next().unwrap();
        assert_eq!((root.weight, main.weight, train.weight), (8, 8, 8));
        let weights: Vec<u64> = train.children.values().map(|node| node.weight).collect();
        assert_eq!(weights, [2, 5], "by name");
    }

    #[test]
    fn deep_stacks_come_and_go_without_recursion() {
        let mut root = Node::default();
        root.add(&frames(&vec!["again"; 200_000]), 1);
        drop(root);
    }
}
