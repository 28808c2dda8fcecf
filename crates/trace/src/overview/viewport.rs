//! The part of a trace that a timeline shows, and how it moves.

use tracesmith_format::Timestamp;

use super::TimeSpan;

/// The visible window of a timeline. It never leaves the trace, and a cell is never shorter than a nanosecond.
///
/// A program that shows timelines keeps one of these and reads an [`Overview`](super::Overview) of [`window`](Self::window)
/// with [`cells`](Self::cells) cells after each change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Viewport {
    whole: TimeSpan,
    window: TimeSpan,
    cells: usize,
}

impl Viewport {
    /// Shows `window` of a trace that spans `whole`, in one cell.
    pub fn new(whole: TimeSpan, window: TimeSpan) -> Self {
        let mut viewport = Viewport {
            whole,
            window: whole,
            cells: 1,
        };
        viewport.show(window.from, window.nanos());
        viewport
    }

    /// The span of the trace.
    pub fn whole(&self) -> TimeSpan {
        self.whole
    }

    /// The visible window.
    pub fn window(&self) -> TimeSpan {
        self.window
    }

    /// The number of cells of a row.
    pub fn cells(&self) -> usize {
        self.cells
    }

    /// Sets the number of cells. The window grows if its cells would be shorter than a nanosecond.
    pub fn resize(&mut self, cells: usize) {
        self.cells = cells.max(1);
        self.show(self.window.from, self.window.nanos());
    }

    /// Whether a part of this time range is visible.
    pub fn overlaps(&self, start: Timestamp, end: Timestamp) -> bool {
        start <= self.window.to && end.max(start) >= self.window.from
    }

    /// Moves the window to earlier times.
    pub fn pan_back(&mut self, nanos: u64) {
        let from = self.window.from.0.saturating_sub(nanos);
        self.show(Timestamp(from), self.window.nanos());
    }

    /// Moves the window to later times.
    pub fn pan_forward(&mut self, nanos: u64) {
        let from = self.window.from.0.saturating_add(nanos);
        self.show(Timestamp(from), self.window.nanos());
    }

    /// Shows the start of the trace at the same scale.
    pub fn go_to_start(&mut self) {
        self.show(self.whole.from, self.window.nanos());
    }

    /// Shows the end of the trace at the same scale.
    pub fn go_to_end(&mut self) {
        let nanos = self.window.nanos();
        self.show(Timestamp(self.whole.to.0.saturating_sub(nanos)), nanos);
    }

    /// Shows the whole trace.
    pub fn show_whole(&mut self) {
        self.show(self.whole.from, self.whole.nanos());
    }

    /// Makes the window `nanos` long. `focus`, or the middle of the window, stays in its place.
    pub fn zoom(&mut self, nanos: u64, focus: Option<Timestamp>) {
        let nanos = self.possible(nanos);
        let (from, length) = (self.window.from.0, self.window.nanos());
        let focus = match focus {
            Some(focus) => focus.0.clamp(from, self.window.to.0),
            None => from + length / 2,
        };
        let before = u128::from(focus - from) * u128::from(nanos) / u128::from(length);
        self.show(Timestamp(focus.saturating_sub(before as u64)), nanos);
    }

    /// Zooms to an event: it takes the middle third of the window.
    pub fn fit(&mut self, start: Timestamp, end: Timestamp) {
        let length = end.0.saturating_sub(start.0).max(1);
        self.show(
            Timestamp(start.0.saturating_sub(length)),
            length.saturating_mul(3),
        );
    }

    /// Moves the window as far as needed to show an event at the same scale. An event that is longer than the window
    /// only has to overlap it.
    pub fn reveal(&mut self, start: Timestamp, end: Timestamp) {
        let end = end.max(start);
        let (window, nanos) = (self.window, self.window.nanos());
        if start >= window.from && end <= window.to {
            return;
        }
        if start < window.to && end > window.from && end.0 - start.0 >= nanos {
            return;
        }
        let middle = start.0 + (end.0 - start.0).min(nanos) / 2;
        self.show(Timestamp(middle.saturating_sub(nanos / 2)), nanos);
    }

    /// Shows `nanos` nanoseconds from `from`, moved and shortened to lie within the trace.
    pub fn show(&mut self, from: Timestamp, nanos: u64) {
        let nanos = self.possible(nanos);
        let latest = self.whole.to.0.saturating_sub(nanos).max(self.whole.from.0);
        let from = from.0.clamp(self.whole.from.0, latest);
        self.window = TimeSpan::new(Timestamp(from), Timestamp(from.saturating_add(nanos)));
    }

    /// The nearest length that a window can have.
    fn possible(&self, nanos: u64) -> u64 {
        let shortest = self.cells as u64;
        nanos.clamp(shortest, self.whole.nanos().max(shortest))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn window(from: u64, to: u64) -> TimeSpan {
        TimeSpan::new(Timestamp(from), Timestamp(to))
    }

    fn viewport() -> Viewport {
        let mut viewport = Viewport::new(window(1_000, 2_000), window(1_400, 1_500));
        viewport.resize(10);
        viewport
    }

    #[test]
    fn panning_stops_at_both_ends() {
        let mut viewport = viewport();
        viewport.pan_back(50);
        assert_eq!(viewport.window(), window(1_350, 1_450));
        viewport.pan_back(u64::MAX);
        assert_eq!(viewport.window(), window(1_000, 1_100));
        viewport.pan_forward(u64::MAX);
        assert_eq!(viewport.window(), window(1_900, 2_000));
        viewport.go_to_start();
        assert_eq!(viewport.window(), window(1_000, 1_100));
        viewport.go_to_end();
        assert_eq!(viewport.window(), window(1_900, 2_000));
    }

    #[test]
    fn zooming_keeps_the_focus_in_its_place() {
        let mut viewport = viewport();
        viewport.zoom(50, None);
        assert_eq!(viewport.window(), window(1_425, 1_475));
        viewport.zoom(100, Some(Timestamp(1_425)));
        assert_eq!(viewport.window(), window(1_425, 1_525));
        viewport.zoom(0, Some(Timestamp(1_525)));
        assert_eq!(viewport.window(), window(1_515, 1_525), "a nanosecond a cell");
        viewport.zoom(u64::MAX, None);
        assert_eq!(viewport.window(), viewport.whole());
    }

    #[test]
    fn events_are_fitted_and_revealed() {
        let mut viewport = viewport();
        viewport.fit(Timestamp(1_700), Timestamp(1_720));
        assert_eq!(viewport.window(), window(1_680, 1_740));
        viewport.reveal(Timestamp(1_690), Timestamp(1_730));
        assert_eq!(viewport.window(), window(1_680, 1_740), "it is visible already");
        viewport.reveal(Timestamp(1_200), Timestamp(1_220));
        assert_eq!(viewport.window(), window(1_180, 1_240));
        viewport.reveal(Timestamp(1_000), Timestamp(1_900));
        assert_eq!(
            viewport.window(),
            window(1_180, 1_240),
            "a long event overlaps it"
        );
    }

    proptest! {
        #[test]
        fn the_window_never_leaves_the_trace(
            span in (any::<u64>(), any::<u64>()),
            cells in 0_usize..500,
            moves in proptest::collection::vec((0_u8..7, any::<u64>(), any::<u64>()), 0..20),
        ) {
            let whole = window(span.0.min(span.1), span.0.max(span.1));
            let mut viewport = Viewport::new(whole, whole);
            viewport.resize(cells);
            for (kind, a, b) in moves {
                match kind {
                    0 => viewport.pan_back(a),
                    1 => viewport.pan_forward(a),
                    2 => viewport.zoom(a, Some(Timestamp(b))),
                    3 => viewport.zoom(a, None),
                    4 => viewport.fit(Timestamp(a), Timestamp(b)),
                    5 => viewport.reveal(Timestamp(a), Timestamp(b)),
                    _ => viewport.show(Timestamp(a), b),
                }
                let shown = viewport.window();
                prop_assert!(shown.from >= whole.from);
                // A trace shorter than its cells is the only reason to show more than the trace.
                prop_assert!(shown.to <= whole.to || whole.nanos() < viewport.cells() as u64);
                prop_assert!(shown.nanos() >= (viewport.cells() as u64).min(u64::MAX - shown.from.0));
            }
        }
    }
}
