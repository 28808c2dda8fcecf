//! Which tables are read, and what their rows become.

/// What the rows of a table become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// Work of the GPU, in channels.
    GpuInterval,
    /// A call that hands work to the GPU.
    Submission,
    /// Work of the host, of this category.
    HostWork(&'static str),
    /// A range, of this domain.
    Range(&'static str),
    /// A moment, of this domain.
    Instant(&'static str),
    /// A sampled stack.
    Sample,
    /// What a counter is called.
    CounterInfo,
    /// What a counter showed.
    CounterValue,
}

/// The tables that are read; rows of others are counted.
const TABLES: [(&str, Target); 22] = [
    ("metal-gpu-intervals", Target::GpuInterval),
    ("metal-application-command-buffer-submissions", Target::Submission),
    (
        "metal-application-encoders-list",
        Target::HostWork("metal encoder"),
    ),
    ("metal-driver-intervals", Target::HostWork("metal driver")),
    ("metal-driver-event-intervals", Target::HostWork("metal driver")),
    (
        "metal-driver-event-per-thread-intervals",
        Target::HostWork("metal driver"),
    ),
    ("metal-command-buffer-completed", Target::Instant("metal")),
    ("metal-gpu-execution-points", Target::Instant("metal")),
    ("metal-gpu-state-intervals", Target::Range("metal gpu state")),
    ("gpu-counter-info", Target::CounterInfo),
    ("gpu-counter-value", Target::CounterValue),
    ("time-sample", Target::Sample),
    ("time-profile", Target::Sample),
    ("runloop-intervals", Target::HostWork("run loop")),
    ("os-signpost-interval", Target::Range("")),
    ("OSSignpostIntervals", Target::Range("")),
    ("PointsOfInterestIntervals", Target::Range("")),
    ("PointsOfInterestEvents", Target::Instant("")),
    ("hitches", Target::Range("hitch")),
    ("display-vsyncs-interval", Target::Range("display")),
    ("displayed-surfaces-interval", Target::Range("display")),
    ("display-surface-swap", Target::Instant("display")),
];

/// The names of the tables of Instruments that are read.
pub fn xctrace_tables() -> impl Iterator<Item = &'static str> {
    TABLES.iter().map(|(name, _)| *name)
}

/// What a table's rows become, if it is read.
pub(super) fn target_of(schema: &str) -> Option<Target> {
    TABLES
        .iter()
        .find(|(name, _)| *name == schema)
        .map(|(_, target)| *target)
}
