//! One figure of two traces, and whether its change is more than chance.

use serde::Serialize;

use crate::analysis::distribution::mean_and_deviation;
use crate::analysis::significance::{adjusted, are_separate, p_value};

/// Changes with a smaller probability count as certain.
pub(super) const CERTAIN: f64 = 0.01;

/// One time of both traces.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// Of the first, in nanoseconds.
    pub a_ns: f64,
    /// Of the second.
    pub b_ns: f64,
    /// The second minus the first.
    pub change_ns: f64,
    /// That as a share of the first; none when the first is nothing.
    pub change: Option<f64>,
    /// The probability that chance alone makes such a difference; none with fewer than two measurements of each.
    pub p: Option<f64>,
    /// The same, raised because many rows were compared; equal to `p` for a single row.
    pub p_adjusted: Option<f64>,
    /// Whether every step of one trace took longer than any step of the other.
    pub is_in_every_step: bool,
    /// Whether the change is certain: its raised probability is less than 0.01. A single measurement of each trace counts
    /// as certain, as there is nothing to compare it with.
    pub is_significant: bool,
}

impl Compared {
    pub(super) fn of(a: &[f64], b: &[f64]) -> Self {
        let ((a_ns, _), (b_ns, _)) = (mean_and_deviation(a), mean_and_deviation(b));
        let compared = Compared {
            a_ns,
            b_ns,
            change_ns: b_ns - a_ns,
            change: (a_ns > 0.0).then(|| (b_ns - a_ns) / a_ns),
            p: None,
            p_adjusted: None,
            is_in_every_step: are_separate(a, b),
            is_significant: false,
        };
        compared.with(p_value(a, b))
    }

    /// With a probability that comes from elsewhere.
    pub(super) fn with(self, p: Option<f64>) -> Self {
        Compared { p, ..self }.adjusted(p)
    }

    fn adjusted(self, p: Option<f64>) -> Self {
        Compared {
            p_adjusted: p,
            is_significant: self.change_ns != 0.0 && p.is_none_or(|p| p < CERTAIN),
            ..self
        }
    }
}

/// Raises the probabilities of rows that are compared together.
pub(super) fn adjust<T>(rows: &mut [T], time: impl Fn(&mut T) -> &mut Compared) {
    let tested: Vec<f64> = rows.iter_mut().filter_map(|row| time(row).p).collect();
    let mut raised = adjusted(&tested).into_iter();
    for row in rows {
        let compared = time(row);
        if compared.p.is_some() {
            *compared = compared.adjusted(raised.next());
        }
    }
}
