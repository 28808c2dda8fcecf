//! Response bodies, compressed with gzip once and then shared.

use std::io::Write;

use axum::body::{Body, Bytes};
use axum::http::header::{self, HeaderMap, HeaderValue};
use axum::response::Response;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;

use crate::reply::Failure;

/// Below this size, packing saves nothing.
const LEAST_PACKED_BYTES: usize = 1 << 10;

/// The body of an answer.
#[derive(Clone, Debug)]
pub(crate) struct Payload {
    content_type: &'static str,
    plain: Bytes,
    packed: Option<Bytes>,
}

/// How long a browser may keep an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    /// It asks every time.
    No,
    /// As long as it likes: another answer has another address.
    Forever,
}

impl Payload {
    /// Bytes of a type that browsers know. Packs them, which takes a while: not for threads of the runtime.
    pub(crate) fn new(content_type: &'static str, bytes: Vec<u8>) -> Self {
        let packed = (bytes.len() >= LEAST_PACKED_BYTES).then(|| pack(&bytes));
        Payload {
            content_type,
            plain: bytes.into(),
            packed: packed.flatten(),
        }
    }

    /// Rows of numbers.
    pub(crate) fn binary(bytes: Vec<u8>) -> Self {
        Self::new("application/octet-stream", bytes)
    }

    /// JSON that is written already.
    pub(crate) fn json_text(bytes: Vec<u8>) -> Self {
        Self::new("application/json", bytes)
    }

    /// Something as JSON.
    pub(crate) fn json(value: &impl Serialize) -> Result<Self, Failure> {
        let text = serde_json::to_vec(value).map_err(|_| Failure::bug())?;
        Ok(Self::json_text(text))
    }

    /// What it takes in memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.plain.len() + self.packed.as_ref().map_or(0, Bytes::len)
    }

    /// The answer, in the form that the client accepts.
    pub(crate) fn response(&self, request: &HeaderMap, keep: Keep) -> Response {
        let packed = self.packed.as_ref().filter(|_| accepts_gzip(request));
        let mut response = Response::new(Body::from(packed.unwrap_or(&self.plain).clone()));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.content_type));
        headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        if packed.is_some() {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        if keep == Keep::Forever {
            let forever = HeaderValue::from_static("private, max-age=31536000, immutable");
            headers.insert(header::CACHE_CONTROL, forever);
        }
        response
    }
}

fn pack(bytes: &[u8]) -> Option<Bytes> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), Compression::new(1));
    // A vector always takes bytes. Without a packed form, the plain one is sent.
    encoder.write_all(bytes).ok()?;
    Some(encoder.finish().ok()?.into())
}

/// Whether a client takes gzip. It may list it only to refuse it.
fn accepts_gzip(request: &HeaderMap) -> bool {
    let lists = request.get_all(header::ACCEPT_ENCODING).iter();
    let codings = lists
        .filter_map(|list| list.to_str().ok())
        .flat_map(|list| list.split(','));
    codings.into_iter().any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let weight = weight.trim().strip_prefix("q=").map(str::trim);
        name.trim().eq_ignore_ascii_case("gzip")
            && weight.is_none_or(|weight| weight.parse::<f32>().is_ok_and(|weight| weight > 0.0))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_sent_to_those_who_take_it() {
        let accepts = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(text));
            accepts_gzip(&headers)
        };
        assert!(accepts("gzip") && accepts("br, GZIP") && accepts("gzip;q=0.5, br") && accepts("gzip; q=1"));
        assert!(!accepts("br") && !accepts("gzip;q=0") && !accepts("gzip;q=x") && !accepts(""));
        assert!(!accepts_gzip(&HeaderMap::new()));
    }
}
