//! An answer that is sent line by line.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::HeaderValue;
use axum::http::header;
use axum::response::Response;
use hyper::body::Frame;
use serde_json::Value;
use tokio::sync::mpsc;

/// Lines for a page that may be slow.
const WAITING: usize = 64;

/// The body of an answer: lines of JSON, as they come.
pub(crate) struct LineBody(mpsc::Receiver<Bytes>);

/// Writes lines. A page that went away gets none, and the work goes on.
#[derive(Clone, Debug)]
pub(crate) struct LineSender(mpsc::Sender<Bytes>);

impl LineBody {
    pub(crate) fn new() -> (LineSender, Self) {
        let (sender, receiver) = mpsc::channel(WAITING);
        (LineSender(sender), Self(receiver))
    }

    pub(crate) fn response(self) -> Response {
        let mut response = Response::new(Body::new(self));
        let lines = HeaderValue::from_static("application/x-ndjson");
        response.headers_mut().insert(header::CONTENT_TYPE, lines);
        response
    }
}

impl LineSender {
    /// Waits for a page that is slow.
    pub(crate) async fn send(&self, value: &Value) {
        // The page may be gone.
        let _ = self.0.send(line(value)).await;
    }

    /// Sends a line that may be left out: a page that does not read gets no more of them.
    pub(crate) fn offer(&self, value: &Value) {
        let _ = self.0.try_send(line(value));
    }
}

fn line(value: &Value) -> Bytes {
    let mut line = value.to_string();
    line.push('\n');
    line.into()
}

impl HttpBody for LineBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let line = self.0.poll_recv(context);
        line.map(|line| line.map(|line| Ok(Frame::data(line))))
    }
}
