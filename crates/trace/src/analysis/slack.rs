//! How much later each piece of work could have ended without making the end any later.

use std::sync::Arc;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use super::registry::{Analyzer, Answer, Need, row};
use crate::model::trace::Trace;
use crate::reconstruct::{Activity, ExecutionGraph, Node, OpId, OpTable, Window, name_of};

pub(super) const ANALYZER: Analyzer = Analyzer {
    name: "slack",
    aliases: &[],
    description: "How much later each GPU operation could have ended",
    needs: Need::OpsOrCalls,
    run: |analysis, _| {
        Ok(Answer::whole(analysis.slack(), |report| {
            Box::new(report.iter().map(row))
        }))
    },
};

/// Every op with its slack, the least first.
#[derive(Clone, Debug)]
pub struct SlackReport {
    activity: Arc<Activity>,
    /// The name of each kind of op.
    names: Vec<Arc<str>>,
    ranked: Vec<(u64, OpId)>,
}

/// An op and its slack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OpSlack {
    /// How much later it could have ended; 0 on the critical path.
    pub slack_ns: u64,
    /// When it started.
    pub start_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// Its table.
    pub table: OpTable,
    /// Its row there.
    pub row: u32,
    /// Its name.
    pub name: Arc<str>,
}

impl SlackReport {
    /// Computes the slack of every op in a graph, and lists those that a time range has.
    pub fn of(trace: &Trace, activity: &Arc<Activity>, graph: &ExecutionGraph, window: Window) -> Self {
        let mut ranked: Vec<(u64, OpId)> = graph
            .nodes
            .iter()
            .zip(graph.slack())
            .filter_map(|(node, slack)| match node {
                Node::Op(op) if activity.touches(*op, &window) => Some((slack, *op)),
                _ => None,
            })
            .collect();
        ranked.sort_unstable();
        let kinds = activity.ops.kinds.iter();
        SlackReport {
            activity: Arc::clone(activity),
            names: kinds.map(|kind| name_of(trace, kind.name).into()).collect(),
            ranked,
        }
    }

    /// All ops: by slack, then by start.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = OpSlack> + '_ {
        let ops = &self.activity.ops;
        self.ranked.iter().map(move |(slack_ns, op)| OpSlack {
            slack_ns: *slack_ns,
            start_ns: ops.start[op.index()],
            end_ns: ops.end[op.index()],
            table: ops.kind(*op).table,
            row: ops.row[op.index()],
            name: Arc::clone(&self.names[ops.kind[op.index()] as usize]),
        })
    }
}

impl Serialize for SlackReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Rows<'a>(&'a SlackReport);
        impl Serialize for Rows<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_seq(self.0.iter())
            }
        }
        let mut fields = serializer.serialize_struct("SlackReport", 1)?;
        fields.serialize_field("slack", &Rows(self))?;
        fields.end()
    }
}
