//! What has changed, as it changes: one stream of JSON lines for each page.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Bytes, HttpBody};
use hyper::body::Frame;
use serde::Serialize;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, mpsc};

use crate::recorder::Stage;
use crate::studio::Studio;
use crate::tabs::Tab;

/// Changes that a slow page may be late by. It gets the state of everything when it is later.
const MOST_LATE: usize = 256;
/// How often a stream shows that it is alive.
const PING: Duration = Duration::from_secs(5);

/// Tells all pages of changes.
#[derive(Clone, Debug)]
pub(crate) struct Hub(broadcast::Sender<Arc<News>>);

/// A message to the pages.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
enum News {
    Trace(Change),
    Recording(Recorded),
}

/// How a recording is now.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Recorded {
    /// Its number.
    pub(crate) recording: usize,
    pub(crate) state: Stage,
}

/// How a trace is now.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Change {
    /// Its number.
    pub(crate) trace: usize,
    /// Changes with its content.
    pub(crate) generation: String,
    /// `reading`, `ready` or `failed`.
    pub(crate) state: &'static str,
    /// From 0 to 1.
    pub(crate) progress: f64,
}

impl Hub {
    pub(crate) fn new() -> Self {
        Hub(broadcast::channel(MOST_LATE).0)
    }

    /// Tells all pages. There may be none.
    pub(crate) fn tell(&self, change: Change) {
        let _ = self.0.send(Arc::new(News::Trace(change)));
    }

    /// Tells all pages of a recording.
    pub(crate) fn tell_recording(&self, recorded: Recorded) {
        let _ = self.0.send(Arc::new(News::Recording(recorded)));
    }
}

/// A stream for one page. It ends with the page, or with the server.
pub(crate) struct Stream {
    lines: mpsc::Receiver<Bytes>,
    _tab: Tab,
}

impl Stream {
    /// Starts with the state of all traces.
    pub(crate) fn open(studio: &Arc<Studio>) -> Self {
        let (sender, lines) = mpsc::channel(16);
        let changes = studio.hub.0.subscribe();
        tokio::spawn(feed(Arc::clone(studio), changes, sender));
        Stream {
            lines,
            _tab: studio.tabs.open(),
        }
    }
}

impl HttpBody for Stream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let line = self.lines.poll_recv(context);
        line.map(|line| line.map(|line| Ok(Frame::data(line))))
    }
}

async fn feed(studio: Arc<Studio>, mut changes: broadcast::Receiver<Arc<News>>, lines: mpsc::Sender<Bytes>) {
    let mut pings = tokio::time::interval(PING);
    let mut number = 0_u64;
    let all = || -> Vec<Bytes> {
        let recordings = studio.recordings.all().into_iter().map(|status| Recorded {
            recording: status.id,
            state: status.state,
        });
        let traces = [studio.library.changes(), studio.predictions.changes()].concat();
        traces
            .iter()
            .map(line)
            .chain(recordings.map(|one| line(&one)))
            .collect()
    };
    let mut waiting = all();
    loop {
        for one in waiting.drain(..) {
            if lines.send(one).await.is_err() {
                return;
            }
        }
        tokio::select! {
            change = changes.recv() => match change {
                Ok(change) => waiting.push(line(&*change)),
                Err(RecvError::Lagged(_)) => waiting.extend(all()),
                Err(RecvError::Closed) => return,
            },
            _ = pings.tick() => {
                number += 1;
                waiting.push(line(&Ping { ping: number }));
            }
            () = lines.closed() => return,
        }
    }
}

#[derive(Serialize)]
struct Ping {
    ping: u64,
}

fn line(value: &impl Serialize) -> Bytes {
    let mut text = serde_json::to_vec(value).expect("these have texts as keys");
    text.push(b'\n');
    text.into()
}
