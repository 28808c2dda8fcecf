//! Takes over the terminal, and always restores it.
//!
//! Keys and signals come through one channel, from a thread each. Signals that end a process are blocked and waited for, so
//! that the terminal is in order again before they take effect.

use std::io::{self, Stdout, stdout};
use std::panic;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use anyhow::Context;
use nix::sys::signal::{SigSet, Signal, raise};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, Event};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};

/// What happens to the program from outside.
pub(super) enum Input {
    Event(Event),
    Signal(Signal),
    /// The terminal cannot be read any more.
    Gone(io::Error),
}

/// Signals that end, stop or wake a process whose terminal should be in order.
const CAUGHT: [Signal; 6] = [
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTSTP,
    Signal::SIGCONT,
];

/// Signals on their way. Made before there are other threads: they take over what is blocked.
pub(super) struct Signals {
    sender: Sender<Input>,
    receiver: Receiver<Input>,
    /// Whether the terminal is taken over; before that, signals do what they always do.
    taken: Arc<AtomicBool>,
}

impl Signals {
    pub(super) fn catch() -> anyhow::Result<Self> {
        let caught: SigSet = CAUGHT.into_iter().collect();
        caught.thread_block().context("blocking signals")?;
        let (sender, receiver) = channel();
        let taken = Arc::new(AtomicBool::new(false));
        let (to_loop, is_taken) = (sender.clone(), Arc::clone(&taken));
        thread::spawn(move || {
            while let Ok(signal) = caught.wait() {
                if !is_taken.load(Ordering::Acquire) || to_loop.send(Input::Signal(signal)).is_err() {
                    // Nobody listens: it ends or stops the process here, as it would have without us.
                    let _ = caught.thread_unblock();
                    let _ = raise(signal);
                    let _ = caught.thread_block();
                }
            }
        });
        Ok(Signals {
            sender,
            receiver,
            taken,
        })
    }

    /// Lets signals through again, so that one that was caught can end the process.
    pub(super) fn unblock() {
        let caught: SigSet = CAUGHT.into_iter().collect();
        // What cannot be unblocked stays caught, and the exit code tells of it.
        let _ = caught.thread_unblock();
    }
}

/// The terminal while it is ours. Given back when dropped, also by a panic.
pub(super) struct Screen {
    pub(super) terminal: Terminal<CrosstermBackend<Stdout>>,
    signals: Signals,
}

impl Screen {
    /// Takes the terminal over.
    pub(super) fn take(signals: Signals) -> anyhow::Result<Self> {
        enable_raw_mode().context("taking over the terminal")?;
        signals.taken.store(true, Ordering::Release);
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            // The message belongs on the screen that stays.
            restore();
            before(panic);
        }));
        let terminal = opened()?;
        let keys = signals.sender.clone();
        thread::spawn(move || {
            loop {
                let (input, goes_on) = match event::read() {
                    Ok(event) => (Input::Event(event), true),
                    Err(error) => (Input::Gone(error), false),
                };
                if keys.send(input).is_err() || !goes_on {
                    return;
                }
            }
        });
        Ok(Screen { terminal, signals })
    }

    /// Gives the terminal back and stops the process, as Ctrl-Z does to others; takes the terminal over again once the shell
    /// wakes it.
    pub(super) fn suspend(&mut self) -> anyhow::Result<()> {
        restore();
        let stop: SigSet = [Signal::SIGTSTP].into_iter().collect();
        // Sent to this thread, it stops the process before the call comes back. Where no shell could wake it, the system
        // lets it go on.
        stop.thread_unblock()
            .and_then(|()| raise(Signal::SIGTSTP))
            .and_then(|()| stop.thread_block())
            .context("stopping for the shell")?;
        self.retake()
    }

    /// Takes the terminal over again and draws all of it anew.
    pub(super) fn retake(&mut self) -> anyhow::Result<()> {
        // Raw mode that is thought to be on would not be switched on again.
        disable_raw_mode()
            .and_then(|()| enable_raw_mode())
            .context("taking over the terminal")?;
        self.terminal = opened()?;
        Ok(())
    }

    /// Waits for what happens next.
    pub(super) fn next(&self) -> anyhow::Result<Input> {
        self.signals.receiver.recv().context("waiting for keys")
    }

    /// What has happened already, if anything: several keys are worth one picture.
    pub(super) fn next_at_once(&self) -> Option<Input> {
        self.signals.receiver.try_recv().ok() // nothing there is no error
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
        self.signals.taken.store(false, Ordering::Release);
    }
}

/// An empty screen of our own.
fn opened() -> anyhow::Result<Terminal<CrosstermBackend<Stdout>>> {
    // ratatui's own clear asks the terminal where the cursor is, and some never answer.
    execute!(stdout(), EnterAlternateScreen, Clear(ClearType::All))
        .and_then(|()| Terminal::new(CrosstermBackend::new(stdout())))
        .inspect_err(|_| restore())
        .context("drawing on the terminal")
}

/// Leaves the terminal as it was. May be called twice.
fn restore() {
    // There is nobody left to tell when the terminal is gone.
    let _ = disable_raw_mode();
    let _ = execute!(stdout(), LeaveAlternateScreen, Show);
}
