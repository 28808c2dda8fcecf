//! The headers that every answer has, whatever it answers.

use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};

/// Pages load scripts, styles and data from this server alone, nobody may show them in a frame, and no text can become
/// markup: names in traces come from the programs of strangers.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
     img-src 'self' data: blob:; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
     require-trusted-types-for 'script'";

/// What every answer says to the browser.
static ALL: [(HeaderName, &str); 5] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
];

/// Adds them. An answer that does not say how long it can be kept is not kept.
pub(crate) fn protect(headers: &mut HeaderMap) {
    for (name, value) in &ALL {
        headers.insert(name.clone(), HeaderValue::from_static(value));
    }
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
}

/// The same as text, for an answer that is written without a server of HTTP.
pub(crate) fn protection() -> String {
    let lines = ALL.iter().map(|(name, value)| format!("{name}: {value}\r\n"));
    lines.chain(["cache-control: no-store\r\n".to_owned()]).collect()
}
