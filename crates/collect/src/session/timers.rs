//! What a session does at certain times: the window, clocks, flushes, counter samples, and the length of pauses.

use std::time::{Duration, Instant};

use super::{BUSY_PAUSE, FLUSH_PERIOD, IDLE_PAUSE, LONG_PAUSE, OPENING_LIMIT, Session, Store, WindowState};
use crate::{
    clocks::Need,
    ring::Progress,
    target::{Order, Target},
};

impl Session {
    /// Opens and closes the window, and flushes the trace, when it is time.
    pub(super) fn keep_time(&mut self, now: Instant) {
        match self.window {
            WindowState::Ahead { opens, duration } if now >= opens => {
                self.window = WindowState::Opening {
                    limit: now + OPENING_LIMIT,
                    duration,
                };
                self.read_clocks(Need::WindowEdge);
                let open = self.open_message();
                for target in &mut self.targets {
                    target.order(Order::Open, &open);
                }
            }
            WindowState::Opening { limit, duration } if now >= limit || !self.is_busy() => {
                self.window = WindowState::Open {
                    closes: duration.map(|duration| now + duration),
                };
            }
            WindowState::Open { closes: Some(closes) } if now >= closes => self.close_window(),
            _ => {}
        }
        self.read_clocks(Need::Regular);
        if now >= self.next_flush {
            self.next_flush = now + FLUSH_PERIOD;
            if let Store::Stream(trace) = &mut self.store {
                for target in &mut self.targets {
                    target.report_losses(trace);
                }
                trace.file.flush();
            }
        }
    }

    /// Reads the host's clocks if `need` requires it, or if a target's window opened or closed.
    pub(super) fn read_clocks(&mut self, need: Need) {
        let saw_window = match &mut self.store {
            Store::Stream(trace) => std::mem::take(&mut trace.saw_window),
            Store::Flight(_) => false,
        };
        let need = if saw_window && need == Need::Regular {
            Need::WindowEdge
        } else {
            need
        };
        if let (Some(reading), Store::Stream(trace)) = (self.clocks.read(need), &mut self.store) {
            reading.write(&mut trace.file);
        }
    }

    pub(super) fn take_samples(&mut self) {
        let Some(sampler) = &self.sampler else { return };
        for sample in sampler.take() {
            match &mut self.store {
                Store::Stream(trace) => trace.sample(&sample),
                Store::Flight(flight) => flight.keep(sample),
            }
        }
    }

    pub(super) fn set_pause(&mut self, progress: Progress) {
        let has_rings = self.targets.iter().any(Target::has_rings);
        self.pause = if progress.more {
            Duration::ZERO
        } else if !has_rings {
            LONG_PAUSE
        } else if progress.records > 0 {
            BUSY_PAUSE
        } else {
            (self.pause + BUSY_PAUSE).min(IDLE_PAUSE)
        };
    }

    /// The pause, shortened to the next timer.
    pub(super) fn pause_until_next(&self) -> Duration {
        let due = match self.window {
            WindowState::Ahead { opens, .. } => Some(opens),
            WindowState::Opening { limit, .. } => Some(limit),
            WindowState::Open { closes } => closes,
            WindowState::Over => None,
        };
        let now = Instant::now();
        let until = |moment: Instant| moment.saturating_duration_since(now);
        due.map_or(self.pause, |due| self.pause.min(until(due)))
            .min(until(self.next_flush))
    }
}
