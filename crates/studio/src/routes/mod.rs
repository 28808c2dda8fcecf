//! What can be asked: one subject a file. docs/internals/studio.md lists all answers.

mod analysis;
mod area;
mod cut;
mod diff;
mod event;
mod flame;
mod layout;
mod notes;
mod predicted;
mod record;
mod replay;
mod search;
mod session;
mod slices;
mod source;
#[cfg(feature = "sqlite")]
mod sql;
mod states;
mod table;
mod tiles;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use axum::http::header::{self, HeaderValue};
use axum::middleware::from_fn_with_state;
use axum::response::Response;
use axum::routing::{get, post};
use tracesmith_trace::grid::Grid;

use crate::access::{guard, with_key};
use crate::assets::asset;
use crate::events::Stream;
use crate::opened::Opened;
use crate::payload::Keep;
use crate::predictions;
use crate::ready::Ready;
use crate::reply::{Failure, MOST_BODY_BYTES};
use crate::studio::Studio;
use crate::work::Length;

/// Answers everything.
pub(crate) fn router(studio: &Arc<Studio>) -> Router {
    let api = Router::new()
        .route("/session", get(session::session))
        .route("/files", get(session::files))
        .route("/open", post(session::open))
        .route("/events", get(events))
        .route("/diff", get(diff::diff))
        .route("/processes", get(record::processes))
        .route("/recordings", get(record::recordings).post(record::start))
        .route("/recordings/{id}/stop", post(record::stop))
        .route("/t/{id}/layout", get(layout::layout))
        .route("/t/{id}/shapes", get(layout::shapes))
        .route("/t/{id}/{generation}/tiles", get(tiles::tiles))
        .route("/t/{id}/{generation}/slices", get(slices::slices))
        .route("/t/{id}/event", get(event::event))
        .route("/t/{id}/source", get(source::source))
        .route("/t/{id}/search", get(search::search))
        .route("/t/{id}/neighbor", get(slices::neighbor))
        .route("/t/{id}/area", get(area::area))
        .route("/t/{id}/predict", post(predicted::predict))
        .route("/t/{id}/moved", get(predicted::moved))
        .route("/t/{id}/analysis/{name}", get(analysis::analysis))
        .route("/t/{id}/table/{name}", get(table::table))
        .route("/t/{id}/flame", get(flame::flame))
        .route("/t/{id}/notes", get(notes::notes).post(notes::save))
        .route("/t/{id}/cut", post(cut::cut))
        .route("/t/{id}/replay", get(replay::replay))
        .route("/t/{id}/replay/start", post(replay::start))
        .route("/t/{id}/replay/ask", post(replay::ask))
        .route("/t/{id}/replay/stop", post(replay::stop))
        .route("/t/{id}/replay/places", get(replay::places));
    #[cfg(feature = "sqlite")]
    let api = api.route("/t/{id}/sql", post(sql::sql));
    let api = api
        .fallback(|| async { Failure::missing("there is no such answer") })
        .method_not_allowed_fallback(|| async {
            Failure::new(StatusCode::METHOD_NOT_ALLOWED, "this cannot be asked in that way")
        })
        .layer(DefaultBodyLimit::max(MOST_BODY_BYTES))
        .layer(from_fn_with_state(Arc::clone(studio), with_key));
    Router::new()
        .nest("/api/v1", api)
        .fallback(asset)
        .layer(from_fn_with_state(Arc::clone(studio), guard))
        .with_state(Arc::clone(studio))
}

/// A stream of changes.
async fn events(State(studio): State<Arc<Studio>>) -> Response {
    let mut response = Response::new(Body::new(Stream::open(&studio)));
    let lines = HeaderValue::from_static("application/x-ndjson");
    response.headers_mut().insert(header::CONTENT_TYPE, lines);
    response
}

/// The trace of a request, ready to be queried.
struct Subject {
    opened: Arc<Opened>,
    ready: Ready,
}

impl Subject {
    /// Fails if it is not read yet, or has changed. A predicted timeline has rows and nothing else.
    async fn of(studio: &Studio, id: usize) -> Result<Self, Failure> {
        if id >= predictions::FIRST {
            let failure = Failure::bad("a predicted timeline has rows and nothing else to ask for");
            return Err(failure.with_hint("ask the trace that it is a prediction of"));
        }
        let opened = studio.library.get(id)?;
        // Asks the file system, which may be far away.
        let checked = studio.work.run(Length::Quick, move |_| {
            let ready = opened.ready()?;
            Ok(Subject { opened, ready })
        });
        checked.await
    }

    /// Something with rows: a trace, or a predicted timeline.
    async fn with_rows(studio: &Studio, id: usize) -> Result<Self, Failure> {
        if id < predictions::FIRST {
            return Self::of(studio, id).await;
        }
        let prediction = studio.predictions.get(id)?;
        let checked = studio.work.run(Length::Quick, move |_| {
            prediction.base.unchanged()?;
            let ready = prediction.ready()?.ready;
            let opened = Arc::clone(&prediction.base);
            Ok(Subject { opened, ready })
        });
        checked.await
    }

    /// A question to this trace, as a key of kept answers.
    fn question(&self, words: &str) -> String {
        format!("{} {words}", self.stamp())
    }

    /// Differs between two contents of the file.
    fn stamp(&self) -> String {
        self.opened.text_of(self.ready.content())
    }

    /// The grid of a generation, and whether it stays what it is. The file may have been opened again since.
    fn grid_of(&self, generation: &str) -> Result<(&Arc<Grid>, Keep), Failure> {
        let generation = self.opened.generation_of(generation);
        let grid = generation.and_then(|generation| self.ready.grid_of(generation));
        grid.ok_or_else(|| self.opened.changed())
    }

    /// The first moment, on the trace's timeline.
    fn origin(&self) -> u64 {
        self.ready.grid().origin()
    }
}
