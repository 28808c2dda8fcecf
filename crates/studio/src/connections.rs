//! Connections: how many, and how long one may take to ask.

use std::net::TcpListener as StdListener;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use crate::headers::protection;

/// Connections at once.
pub(crate) const MOST: usize = 64;
/// How long the head of a request may take to come, also on a connection that had requests before.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// Bytes that are read before a request is understood. More than a head may have, so that its answer can say so.
const BUFFER_BYTES: usize = 16 << 10;
/// How long to wait when the process has no more file descriptors.
const PAUSE: Duration = Duration::from_millis(50);

/// Serves the connections of a listener, for good.
pub(crate) async fn serve(
    listener: StdListener,
    router: Router,
    places: Arc<Semaphore>,
) -> std::io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            refuse(&stream);
            continue;
        };
        let router = router.clone();
        tokio::spawn(async move {
            let _place = place;
            // Answers are small or come in large pieces: there is nothing to wait for.
            let _ = stream.set_nodelay(true);
            let service = TowerToHyperService::new(router);
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIME)
                .max_buf_size(BUFFER_BYTES)
                .serve_connection(TokioIo::new(stream), service);
            // Clients go away at any time, which is no error of anybody.
            let _ = connection.await;
        });
    }
}

/// Says that there are too many connections, if that can be written at once.
fn refuse(stream: &TcpStream) {
    let head = "HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 0\r\n";
    let _ = stream.try_write(format!("{head}{}\r\n", protection()).as_bytes());
}
