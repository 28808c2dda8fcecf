//! Errors as answers: a status, a sentence, and what to do about it.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Bytes of the body of a request.
pub(crate) const MOST_BODY_BYTES: usize = 1 << 20;
/// How long a body may take to come.
const BODY_TIME: Duration = Duration::from_secs(10);

/// An answer that says why there is no other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    status: StatusCode,
    error: String,
    hint: Option<String>,
}

impl Failure {
    pub(crate) fn new(status: StatusCode, error: impl Into<String>) -> Self {
        Failure {
            status,
            error: error.into(),
            hint: None,
        }
    }

    /// The request cannot be understood.
    pub(crate) fn bad(error: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error)
    }

    /// There is no such thing.
    pub(crate) fn missing(error: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, error)
    }

    /// It cannot be done as things are now.
    pub(crate) fn conflict(error: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, error)
    }

    /// It was understood and tried, and failed.
    pub(crate) fn unprocessable(error: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, error)
    }

    /// Something failed that should not.
    pub(crate) fn bug() -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "TraceSmith failed; this is a bug: the terminal shows the message",
        )
    }

    /// Nobody waits for the answer any longer.
    pub(crate) fn cancelled() -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "cancelled")
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The sentence.
    pub(crate) fn error(&self) -> &str {
        &self.error
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        #[derive(Serialize)]
        struct Told<'a> {
            error: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            hint: Option<&'a str>,
        }
        let told = Told {
            error: &self.error,
            hint: self.hint.as_deref(),
        };
        let text = serde_json::to_vec(&told).expect("texts can be written as JSON");
        let mut response = Response::new(Body::from(text));
        *response.status_mut() = self.status;
        let json = header::HeaderValue::from_static("application/json");
        response.headers_mut().insert(header::CONTENT_TYPE, json);
        response
    }
}

/// An error with its causes, in one line.
pub(crate) fn sentence(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}

impl From<tracesmith_trace::Error> for Failure {
    fn from(error: tracesmith_trace::Error) -> Self {
        use tracesmith_trace::Error::*;
        let status = match &error {
            Cancelled => return Failure::cancelled(),
            NotInTrace { .. }
            | SelectionTooNarrow { .. }
            | NotByStream { .. }
            | EmptyRange { .. }
            | Regex { .. }
            | Glob { .. } => StatusCode::BAD_REQUEST,
            NoSuchStep { .. } | NoSuchRow { .. } | NoSuchTable { .. } | NoSuchColumn { .. } => {
                StatusCode::NOT_FOUND
            }
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Failure::new(status, sentence(&error))
    }
}

impl From<tracesmith_interop::Error> for Failure {
    fn from(error: tracesmith_interop::Error) -> Self {
        match error {
            tracesmith_interop::Error::Trace(error) => error.into(),
            other => Failure::new(StatusCode::INTERNAL_SERVER_ERROR, sentence(&other)),
        }
    }
}

/// The query string of an address.
pub(crate) struct Asked<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Sync> FromRequestParts<S> for Asked<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        match Query::<T>::try_from_uri(&parts.uri) {
            Ok(Query(asked)) => Ok(Asked(asked)),
            Err(refused) => Err(Failure::bad(refused.body_text())),
        }
    }
}

/// The parts of an address that vary.
pub(crate) struct Named<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Named<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        match Path::<T>::from_request_parts(parts, state).await {
            Ok(Path(named)) => Ok(Named(named)),
            Err(refused) => Err(Failure::bad(refused.body_text())),
        }
    }
}

/// A body in JSON.
pub(crate) struct Sent<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Sent<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &S) -> Result<Self, Failure> {
        let announced = request.headers().get(header::CONTENT_LENGTH);
        let announced = announced.and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
        if announced.is_some_and(|length| length > MOST_BODY_BYTES) {
            let text = "the body of the request is longer than 1 MB";
            return Err(Failure::new(StatusCode::PAYLOAD_TOO_LARGE, text));
        }
        let body = tokio::time::timeout(BODY_TIME, Bytes::from_request(request, state))
            .await
            .map_err(|_| {
                Failure::new(
                    StatusCode::REQUEST_TIMEOUT,
                    "the body of the request did not come",
                )
            })?
            .map_err(|refused| Failure::new(refused.status(), refused.body_text()))?;
        serde_json::from_slice(&body)
            .map(Sent)
            .map_err(|error| Failure::bad(format!("the body is not what is needed: {error}")))
    }
}
