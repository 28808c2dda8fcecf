//! Who may ask: the rules that every request must keep before anything is done for it.
//!
//! - `Host` names this machine, or a name that the user allowed. Otherwise, a page whose name was made to point at this
//!   machine (DNS rebinding) asks. Ports are not compared: `ssh -L` sends that of its other end.
//! - `Origin` is this server, and `Sec-Fetch-Site` does not name another site. Only opening the page itself may be started
//!   from elsewhere, as by a link or by the file that opens the browser.
//! - The head has at most 8 KB.
//! - Everything below `/api` has the key.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::{Method, StatusCode, uri::Authority};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::headers::protect;
use crate::reply::Failure;
use crate::studio::Studio;

/// The header that carries the key.
pub(crate) const KEY: HeaderName = HeaderName::from_static("x-tracesmith-key");

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// Bytes of a request's head.
const MOST_HEAD_BYTES: usize = 8 << 10;

/// The names that the server may be known by.
#[derive(Clone, Debug)]
pub(crate) struct Hosts {
    /// An address that the server listens on, if it was chosen. An address cannot be rebound as a name can.
    listen: Option<IpAddr>,
    allowed: Vec<String>,
}

/// How a request names the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    /// As this machine.
    Here,
    /// By a name that the user allowed; it may belong to a proxy that encrypts.
    Allowed,
}

impl Hosts {
    pub(crate) fn new(listen: Option<IpAddr>, allowed: &[String]) -> Self {
        Hosts {
            listen: listen.filter(|address| !address.is_unspecified()),
            // Any port will do, so one that is given says nothing.
            allowed: allowed
                .iter()
                .map(|name| name_of(name).unwrap_or(name).to_ascii_lowercase())
                .collect(),
        }
    }

    /// How a `Host` names the server; `None` if it names somebody else.
    fn known(&self, host: &str) -> Option<Known> {
        let name = name_of(host)?.to_ascii_lowercase();
        if ["127.0.0.1", "localhost", "[::1]"].contains(&name.as_str()) {
            return Some(Known::Here);
        }
        let address = name
            .trim_start_matches('[')
            .trim_end_matches(']')
            .parse::<IpAddr>();
        if address.is_ok_and(|address| Some(address) == self.listen) {
            return Some(Known::Here);
        }
        self.allowed.contains(&name).then_some(Known::Allowed)
    }

    /// Checks everything but the key.
    fn check(&self, request: &Request) -> Result<(), Failure> {
        let headers = request.headers();
        let host = only(headers, &header::HOST)
            .filter(|host| !host.is_empty())
            .ok_or_else(misdirected)?;
        let known = self.known(host).ok_or_else(misdirected)?;
        // A target such as http://name/path has a name of its own.
        if let Some(target) = request.uri().authority()
            && self.known(target.as_str()).is_none()
        {
            return Err(misdirected());
        }
        if headers.contains_key(header::ORIGIN) {
            let origin = only(headers, &header::ORIGIN).unwrap_or_default();
            let is_ours = is_origin(origin, "http", host)
                || (known == Known::Allowed && is_origin(origin, "https", host));
            if !is_ours {
                return Err(foreign());
            }
        }
        if headers.contains_key(FETCH_SITE) {
            let is_ours = matches!(only(headers, &FETCH_SITE), Some("same-origin" | "none"));
            if !is_ours && !opens_page(request) {
                return Err(foreign());
            }
        }
        let target = request
            .uri()
            .path_and_query()
            .map_or(0, |path| path.as_str().len());
        let fields = headers
            .iter()
            .map(|(name, value)| name.as_str().len() + value.len() + 4);
        if target + fields.sum::<usize>() > MOST_HEAD_BYTES {
            return Err(Failure::new(
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
                "the head of the request is longer than 8 KB",
            ));
        }
        Ok(())
    }
}

/// Whether somebody opens the page itself, which is no secret and cannot be read by those who open it.
fn opens_page(request: &Request) -> bool {
    let headers = request.headers();
    request.method() == Method::GET
        && ["/", "/index.html"].contains(&request.uri().path())
        && only(headers, &FETCH_MODE) == Some("navigate")
        && only(headers, &FETCH_DEST) == Some("document")
}

/// A header that must come once.
fn only<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    let value: &HeaderValue = values.next()?;
    match values.next() {
        None => value.to_str().ok(),
        Some(_) => None,
    }
}

/// A host without its port. `None` if it is neither a name nor an address.
fn name_of(host: &str) -> Option<&str> {
    let authority: Authority = host.parse().ok()?;
    let has_user = host.contains('@');
    let name = authority.host();
    let rest = host.strip_prefix(name)?;
    let is_port = |port: &str| port.parse::<u16>().is_ok() && port.bytes().all(|byte| byte.is_ascii_digit());
    let has_good_end = rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port);
    (!has_user && has_good_end).then(|| &host[..name.len()])
}

fn is_origin(origin: &str, scheme: &str, host: &str) -> bool {
    origin
        .strip_prefix(scheme)
        .and_then(|rest| rest.strip_prefix("://"))
        .is_some_and(|named| named.eq_ignore_ascii_case(host))
}

fn misdirected() -> Failure {
    Failure::new(
        StatusCode::MISDIRECTED_REQUEST,
        "this server is not known by that name",
    )
    .with_hint("open it as 127.0.0.1 or localhost, or start it with --allow-host NAME")
}

fn foreign() -> Failure {
    Failure::new(StatusCode::FORBIDDEN, "requests of other pages are refused")
}

/// The outermost layer: checks what all requests must keep, and protects all answers.
pub(crate) async fn guard(State(studio): State<Arc<Studio>>, request: Request, next: Next) -> Response {
    let mut response = match studio.hosts.check(&request) {
        Ok(()) => next.run(request).await,
        Err(failure) => failure.into_response(),
    };
    protect(response.headers_mut());
    response
}

/// The layer of everything below `/api`: checks the key.
pub(crate) async fn with_key(State(studio): State<Arc<Studio>>, request: Request, next: Next) -> Response {
    let mut given = request.headers().get_all(KEY).iter();
    let is_right = given.next().is_some_and(|key| studio.key.is(key.as_bytes()));
    if !is_right || given.next().is_some() {
        return Failure::new(StatusCode::UNAUTHORIZED, "the key is missing or wrong")
            .with_hint("open the address that 'tracesmith studio' printed, with everything after #")
            .into_response();
    }
    studio.tabs.note_request();
    next.run(request).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_known_with_any_port_and_nothing_else() {
        let hosts = Hosts::new("10.0.0.7".parse().ok(), &["Proxy.example:8443".to_owned()]);
        for here in [
            "127.0.0.1",
            "127.0.0.1:1",
            "localhost:8000",
            "LOCALHOST",
            "[::1]:8000",
            "[::1]",
            "10.0.0.7:9",
        ] {
            assert_eq!(hosts.known(here), Some(Known::Here), "{here}");
        }
        assert_eq!(hosts.known("proxy.EXAMPLE:443"), Some(Known::Allowed));
        for other in [
            "",
            "evil.example",
            "evil.example:80",
            "127.0.0.1.evil.example",
            "localhost.",
            "localhost:",
            "localhost:x",
            "localhost:99999",
            "127.0.0.1:80:80",
            "user@127.0.0.1",
            "127.0.0.2",
            "0.0.0.0",
            "::1",
            "[::2]",
            "10.0.0.8",
            "2130706433",
            "a.proxy.example",
        ] {
            assert_eq!(hosts.known(other), None, "{other}");
        }
        // All addresses are no address that a page could be opened by.
        assert_eq!(Hosts::new("0.0.0.0".parse().ok(), &[]).known("0.0.0.0"), None);
    }

    #[test]
    fn origins_have_scheme_host_and_port() {
        assert!(is_origin("http://localhost:8000", "http", "localhost:8000"));
        assert!(is_origin("http://LocalHost:8000", "http", "localhost:8000"));
        for other in [
            "null",
            "https://localhost:8000",
            "http://localhost",
            "http://localhost:8000/",
            "localhost:8000",
        ] {
            assert!(!is_origin(other, "http", "localhost:8000"), "{other}");
        }
    }
}
