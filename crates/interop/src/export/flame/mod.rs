//! A flame graph: a picture of stacks, in which each function is as wide as what was done below it.
//!
//! The file is an SVG that any browser shows, without anything from elsewhere. It is drawn as it is written; a small script
//! within adds what a picture cannot do: a click makes a function as wide as the picture, a search marks functions and says
//! how much they take together. The program's first function is at the top.

mod data;
mod svg;
mod tree;

use crate::error::Error;
use crate::export::weights::Weights;
use crate::export::{ExportOptions, ExportReport, Exporter, Out, Way};
pub use data::{FlameNode, flame_graph};
use tracesmith_trace::Trace;
use tree::Tree;

pub(super) const EXPORTER: Exporter = Exporter {
    name: "flame",
    aliases: &["svg", "flamegraph"],
    title: "a flame graph, for browsers",
    extension: "svg",
    way: Way::Stream(write),
};

fn write(trace: &Trace, options: &ExportOptions, out: &mut Out<'_>) -> Result<ExportReport, Error> {
    let weights = Weights::of(trace, options)?;
    let tree = Tree::of(&weights);
    if tree.total() == 0 {
        return Err(Error::Export {
            format: "flame",
            problem: "no event has such a weight".to_owned(),
        });
    }
    svg::write(&tree, options.weight, out)?;
    Ok(weights.report)
}
