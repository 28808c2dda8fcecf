//! Analyses and reports own what they need: they can be kept, shared between threads and sent elsewhere.

use std::sync::Arc;

use tracesmith_format::{DeviceId, Timestamp};
use tracesmith_trace::analysis::*;
use tracesmith_trace::overview::{Overview, RowKey, Surroundings};
use tracesmith_trace::reconstruct::*;
use tracesmith_trace::{EventKind, HealthReport, NamePattern, Query, RepairReport, RewriteReport, Trace};

use crate::made::Made;

/// The compiler checks this: a type that borrows, or that one thread alone may use, does not build.
const fn is_shared<T: Send + Sync + 'static>() {}

const _: () = {
    is_shared::<Trace>();
    is_shared::<Query>();
    is_shared::<NamePattern>();
    is_shared::<Analysis>();
    is_shared::<Activity>();
    is_shared::<Dependencies>();
    is_shared::<ExecutionGraph>();
    is_shared::<States>();
    is_shared::<StateLine>();
    is_shared::<Steps>();
    is_shared::<Timeline>();
    is_shared::<CopiesReport>();
    is_shared::<CriticalPathReport>();
    is_shared::<Segment>();
    is_shared::<DiffReport>();
    is_shared::<FindingsReport>();
    is_shared::<ForwardReport>();
    is_shared::<IdleReport>();
    is_shared::<KernelsReport>();
    is_shared::<LaunchesReport>();
    is_shared::<MemoryReport>();
    is_shared::<OpSlack>();
    is_shared::<SlackReport>();
    is_shared::<StepsReport>();
    is_shared::<SummaryReport>();
    is_shared::<Swept>();
    is_shared::<TotalsReport>();
    is_shared::<UtilizationReport>();
    is_shared::<WhatIf>();
    is_shared::<WhatIfReport>();
    is_shared::<Overview>();
    is_shared::<RowKey>();
    is_shared::<Surroundings>();
};

fn made() -> Arc<Trace> {
    let mut made = Made::new();
    made.launched("gemm", 1, (100, 110), (120, 220));
    made.launched("gemm", 2, (130, 140), (220, 420));
    made.finish()
}

#[test]
fn results_outlive_the_analysis_and_the_trace() {
    let trace = made();
    let analysis = Analysis::of(&trace, Window::default()).unwrap();
    let (plan, states, slack) = (analysis.execution_graph(), analysis.states(), analysis.slack());
    drop((trace, analysis));
    let on_another_thread = std::thread::spawn(move || {
        let names: Vec<String> = slack.iter().map(|op| op.name.to_string()).collect();
        (plan.len(), states.lines.len(), names)
    });
    assert_eq!(
        on_another_thread.join().unwrap(),
        (4, 4, vec!["gemm".to_owned(), "gemm".to_owned()])
    );
}

#[test]
fn analyses_of_the_same_time_range_share_what_was_computed() {
    let trace = made();
    let first = Analysis::of(&trace, Window::default()).unwrap();
    let (plan, kernels) = (first.execution_graph(), first.kernels(KernelKey::Name));
    drop(first);
    let second = Analysis::of(&trace, Window::default()).unwrap();
    assert!(Arc::ptr_eq(&plan, &second.execution_graph()));
    assert!(Arc::ptr_eq(&kernels, &second.kernels(KernelKey::Name)));
    assert!(Arc::ptr_eq(&second.activity, &trace.activity().unwrap()));
}

#[test]
fn a_trace_keeps_the_parts_of_a_few_time_ranges_only() {
    let trace = made();
    let of = |to| {
        let window = Window {
            from: None,
            to: Some(to),
        };
        Analysis::of(&trace, window).unwrap().activity
    };
    let first = Arc::downgrade(&of(200));
    for to in 201..210 {
        of(200);
        of(to);
    }
    assert!(first.upgrade().is_some(), "a range that is still in use is kept");
    for to in 210..220 {
        of(to);
    }
    assert!(first.upgrade().is_none(), "the others make room for new ones");
}

#[test]
fn a_query_and_what_to_change_can_be_written_down() {
    let query = Query {
        kinds: Some(vec![EventKind::Kernel, EventKind::ApiCall]),
        name: Some(NamePattern::new("flash*").unwrap()),
        devices: Some(vec![DeviceId(2)]),
        from: Some(Timestamp(5)),
        ..Query::default()
    };
    let text = serde_json::to_string(&query).unwrap();
    assert_eq!(
        text,
        r#"{"kinds":["kernel","api"],"name":"flash*","streams":null,"devices":[2],"processes":null,"from":5,"to":null}"#
    );
    assert_eq!(serde_json::from_str::<Query>(&text).unwrap(), query);
    assert_eq!(serde_json::from_str::<Query>("{}").unwrap(), Query::default());
    assert!(serde_json::from_str::<Query>(r#"{"name":"/(/"}"#).is_err());
    let what_if = WhatIf {
        scales: vec![Scale {
            name: NamePattern::exact("gemm"),
            factor: 0.5,
        }],
        streams: StreamCount::AtMost(2),
        host_waits: HostWaits::LeftIn(NamePattern::new("train.py").unwrap()),
    };
    let text = serde_json::to_string(&what_if).unwrap();
    assert_eq!(serde_json::from_str::<WhatIf>(&text).unwrap(), what_if);
}

#[test]
fn kinds_of_events_are_written_as_they_are_named() {
    for kind in EventKind::ALL {
        assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
    }
}

#[test]
fn reports_are_serializable() {
    fn is_serializable<T: serde::Serialize>() {}
    is_serializable::<CopiesReport>();
    is_serializable::<CriticalPathReport>();
    is_serializable::<DiffReport>();
    is_serializable::<FindingsReport>();
    is_serializable::<HealthReport>();
    is_serializable::<IdleReport>();
    is_serializable::<KernelsReport>();
    is_serializable::<LaunchesReport>();
    is_serializable::<MemoryReport>();
    is_serializable::<RepairReport>();
    is_serializable::<RewriteReport>();
    is_serializable::<SlackReport>();
    is_serializable::<StepsReport>();
    is_serializable::<SummaryReport>();
    is_serializable::<TotalsReport>();
    is_serializable::<UtilizationReport>();
    is_serializable::<WhatIfReport>();
}
