//! What one client of the [multiplexer](super::multiplexer) has enabled in CUPTI: activity kinds, and single functions.

use std::collections::HashSet;

use tracesmith_cuda::cupti::{ApiDomain, abi::kind};

use super::kinds::kind_of;

/// What a client has enabled.
pub(super) struct ClientSelection {
    /// Kinds of records, by their numbers.
    pub(super) kinds: [bool; kind::COUNT],
    /// Functions without records although their kind is enabled.
    pub(super) skipped: HashSet<(ApiDomain, u32)>,
    /// Functions with records although their kind is not enabled.
    pub(super) single: HashSet<(ApiDomain, u32)>,
}

impl Default for ClientSelection {
    fn default() -> Self {
        Self {
            kinds: [false; kind::COUNT],
            skipped: HashSet::new(),
            single: HashSet::new(),
        }
    }
}

impl ClientSelection {
    /// Whether it gets records of a function.
    pub(super) fn wants(&self, function: (ApiDomain, u32)) -> bool {
        let whole = self.kinds[kind_of(function.0) as usize] && !self.skipped.contains(&function);
        whole || self.single.contains(&function)
    }
}
