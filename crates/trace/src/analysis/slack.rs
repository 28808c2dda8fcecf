//! How much later each piece of work could have ended without making the end any later.

use serde::{Serialize, Serializer};

use crate::model::trace::Trace;
use crate::reconstruct::{Activity, Dependencies, Moment, OpId, OpTable, Plan};

/// All work with its room to be later, the least first.
#[derive(Clone, Debug)]
pub struct SlackReport<'a> {
    trace: &'a Trace,
    activity: &'a Activity,
    ranked: Vec<(u64, OpId)>,
}

/// A piece of work and its room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct OpSlack<'n> {
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
    pub name: &'n str,
}

impl<'a> SlackReport<'a> {
    /// Works it out.
    pub fn of(trace: &'a Trace, activity: &'a Activity) -> Self {
        let dependencies = Dependencies::of(activity);
        let plan = Plan::of(activity, &dependencies);
        let slack = plan.slack();
        let mut ranked: Vec<(u64, OpId)> = plan
            .moments
            .iter()
            .zip(slack)
            .filter_map(|(moment, slack)| match moment {
                Moment::Work(op) => Some((slack, *op)),
                _ => None,
            })
            .collect();
        ranked.sort_unstable();
        SlackReport {
            trace,
            activity,
            ranked,
        }
    }

    /// All of them: by their room, then by their start.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = OpSlack<'a>> + '_ {
        let ops = &self.activity.ops;
        self.ranked.iter().map(move |(slack_ns, op)| OpSlack {
            slack_ns: *slack_ns,
            start_ns: ops.start[op.index()],
            end_ns: ops.end[op.index()],
            table: ops.kind(*op).table,
            row: ops.row[op.index()],
            name: self.activity.name(self.trace, *op),
        })
    }
}

impl Serialize for SlackReport<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}
