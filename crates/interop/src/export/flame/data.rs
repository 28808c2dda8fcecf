//! The tree of a flame graph as data, for those who draw it themselves.

use serde::Serialize;
use tracesmith_trace::Trace;

use super::tree::{Function, Node, Tree};
use crate::error::Error;
use crate::export::ExportOptions;
use crate::export::weights::{FrameOrigin, Weights};

/// Levels below this one are left out: nobody can tell them apart, and readers of deep JSON fail.
const MOST_LEVELS: usize = 400;

/// A function with what it called, the heaviest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FlameNode {
    /// The function, kernel or range.
    pub name: String,
    /// `native`, `python`, `jit` or `work`; `folded` for several small ones together.
    pub kind: &'static str,
    /// Its weight with all that it called.
    pub value: u64,
    /// The part of the weight that is its own.
    #[serde(rename = "self")]
    pub own: u64,
    /// What it called.
    pub children: Vec<FlameNode>,
}

/// The flame graph of a trace. Functions that weigh less than a share of the whole are put together, one for each caller.
/// A trace without such a weight has a graph of weight 0.
pub fn flame_graph(trace: &Trace, options: &ExportOptions, least_share: f64) -> Result<FlameNode, Error> {
    let tree = Tree::of(&Weights::of(trace, options)?);
    let least = (tree.total() as f64 * least_share).ceil() as u64;
    Ok(node_of("all".to_owned(), "work", &tree.root, least, MOST_LEVELS))
}

fn node_of(name: String, kind: &'static str, node: &Node, least: u64, levels: usize) -> FlameNode {
    let mut children = Vec::new();
    let (mut small, mut small_weight) = (0_usize, 0_u64);
    let mut called = 0_u64;
    for (Function { name, origin }, child) in &node.children {
        called = called.saturating_add(child.weight);
        if child.weight < least || levels == 0 {
            small += 1;
            small_weight = small_weight.saturating_add(child.weight);
            continue;
        }
        children.push(node_of(name.clone(), kind_of(*origin), child, least, levels - 1));
    }
    // Stable: equal ones stay in the order of their names.
    children.sort_by_key(|child| std::cmp::Reverse(child.value));
    if small > 0 {
        children.push(FlameNode {
            name: match small {
                1 => "1 small function".to_owned(),
                small => format!("{small} small functions"),
            },
            kind: "folded",
            value: small_weight,
            own: small_weight,
            children: Vec::new(),
        });
    }
    FlameNode {
        name,
        kind,
        value: node.weight,
        own: node.weight.saturating_sub(called),
        children,
    }
}

fn kind_of(origin: FrameOrigin) -> &'static str {
    match origin {
        FrameOrigin::Native => "native",
        FrameOrigin::Python => "python",
        FrameOrigin::Jit => "jit",
        FrameOrigin::Work => "work",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use tracesmith_format::StringId;

    use super::*;

    fn node(weight: u64, children: &[(&str, u64)]) -> Node {
        let child = |(name, weight): &(&str, u64)| {
            let function = Function {
                name: (*name).to_owned(),
                origin: FrameOrigin::Python,
            };
            (function, node(*weight, &[]))
        };
        let children: BTreeMap<Function, Node> = children.iter().map(child).collect();
        Node {
            weight,
            file: StringId::NONE,
            children,
        }
    }

    #[test]
    fn small_functions_are_put_together_and_weights_add_up() {
        let root = node(100, &[("a", 1), ("b", 30), ("c", 2), ("d", 60)]);
        let graph = node_of("all".to_owned(), "work", &root, 5, 9);
        let names: Vec<&str> = graph.children.iter().map(|child| child.name.as_str()).collect();
        assert_eq!(names, ["d", "b", "2 small functions"]);
        assert_eq!((graph.value, graph.own), (100, 7));
        assert_eq!((graph.children[2].value, graph.children[2].kind), (3, "folded"));
        assert_eq!(graph.children[0].kind, "python");
        let flat = node_of("all".to_owned(), "work", &root, 0, 0);
        assert_eq!((flat.children.len(), flat.children[0].value), (1, 93));
    }
}
