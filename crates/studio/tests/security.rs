//! Who gets an answer: each rule of the server, by what others could send.

use tracesmith_studio::Options;

use crate::support::{Running, fixtures, start, start_with};

fn server() -> Running {
    start(&[])
}

#[test]
fn only_the_right_key_gets_data() {
    let server = server();
    let (host, key) = (server.host(), server.key_line());
    let session = "/api/v1/session";
    assert_eq!(server.with("GET", session, &[&host, &key]).status, 200);
    let (last, rest) = server.key.split_at(31);
    let flipped = if rest == "0" { "1" } else { "0" };
    for wrong in [
        String::new(),
        "x-tracesmith-key:".to_owned(),
        "x-tracesmith-key: 0".to_owned(),
        format!("x-tracesmith-key: {last}{flipped}"),
        format!("x-tracesmith-key: {last}"),
        format!("x-tracesmith-key: {}0", server.key),
        format!(
            "x-tracesmith-key: {}",
            server
                .key
                .to_uppercase()
                .replace(|c: char| c.is_ascii_digit(), "0")
        ),
        format!("x-tracesmith-key: {0}\r\nx-tracesmith-key: {0}", server.key),
        format!("x-tracesmith-key: 0\r\nx-tracesmith-key: {}", server.key),
        format!("cookie: key={}", server.key),
        format!("authorization: Bearer {}", server.key),
    ] {
        let headers: Vec<&str> = [host.as_str(), wrong.as_str()]
            .into_iter()
            .filter(|line| !line.is_empty())
            .collect();
        let answer = server.with("GET", session, &headers);
        answer.error(401);
        answer.assert_protected();
    }
    let in_address = format!("{session}?key={}", server.key);
    server.with("GET", &in_address, &[&host]).error(401);
    // What does not exist needs the key, too.
    for path in [
        "/api/v1/absent",
        "/api/v1/t/0/layout",
        "/api/v1/t/99/layout",
        "/api/v1/events",
    ] {
        server.with("GET", path, &[&host]).error(401);
    }
    for path in [
        "/api",
        "/api/v1/",
        "/api/v2/session",
        "/%61pi/v1/session",
        "//api/v1/session",
        "/API/v1/session",
    ] {
        server.with("GET", path, &[&host]).error(404);
    }
}

#[test]
fn other_names_of_the_server_are_refused_and_any_port_is_not() {
    let server = server();
    let key = server.key_line();
    for name in [
        "127.0.0.1",
        "127.0.0.1:8000",
        "localhost:1",
        "LocalHost",
        "[::1]:8000",
    ] {
        let host = format!("host: {name}");
        assert_eq!(
            server.with("GET", "/api/v1/session", &[&host, &key]).status,
            200,
            "{name}"
        );
    }
    let port = server.port;
    for name in [
        "evil.example".to_owned(),
        format!("evil.example:{port}"),
        format!("127.0.0.1.evil.example:{port}"),
        format!("localhost.evil.example:{port}"),
        "localhost.".to_owned(),
        "0.0.0.0".to_owned(),
        "127.0.0.2".to_owned(),
        "127.1".to_owned(),
        "evil.example@127.0.0.1".to_owned(),
        "127.0.0.1@evil.example".to_owned(),
        "127.0.0.1:80:80".to_owned(),
    ] {
        let host = format!("host: {name}");
        for path in ["/api/v1/session", "/", "/absent"] {
            let answer = server.with("GET", path, &[&host, &key]);
            answer.error(421);
            answer.assert_protected();
        }
    }
    // None, two, and one in the target.
    let old = server
        .raw(&format!("GET /api/v1/session HTTP/1.0\r\n{key}\r\n\r\n"))
        .unwrap();
    old.error(421);
    let two = server.with("GET", "/", &["host: 127.0.0.1", "host: evil.example"]);
    assert!([400, 421].contains(&two.status), "{}", two.status);
    let target = server.with(
        "GET",
        "http://evil.example/api/v1/session",
        &["host: 127.0.0.1", &key],
    );
    target.error(421);
}

#[test]
fn names_that_the_user_allows_are_answered() {
    let server = start_with(Options {
        folder: fixtures(),
        allowed_hosts: vec!["gpu.example".to_owned()],
        ..Options::default()
    });
    let key = server.key_line();
    let session = "/api/v1/session";
    let with = |lines: &[&str]| {
        server
            .with("GET", session, &[lines, &[key.as_str()]].concat())
            .status
    };
    assert_eq!(with(&["host: gpu.example"]), 200);
    assert_eq!(
        with(&["host: GPU.example:443", "origin: https://gpu.example:443"]),
        200
    );
    assert_eq!(with(&["host: gpu.example", "origin: https://evil.example"]), 403);
    assert_eq!(with(&["host: not-gpu.example"]), 421);
    assert_eq!(with(&["host: 127.0.0.1"]), 200);
}

#[test]
fn other_pages_are_refused() {
    let server = server();
    let (host, key) = (server.host(), server.key_line());
    let with = |path: &str, line: &str| server.with("GET", path, &[&host, &key, line]);
    let own = format!("origin: http://127.0.0.1:{}", server.port);
    assert_eq!(with("/api/v1/session", &own).status, 200);
    for origin in [
        "http://evil.example".to_owned(),
        "null".to_owned(),
        "file://".to_owned(),
        String::new(),
        format!("https://127.0.0.1:{}", server.port),
        format!("http://localhost:{}", server.port),
        "http://127.0.0.1".to_owned(),
        format!("http://127.0.0.1:{}.evil.example", server.port),
    ] {
        for path in ["/api/v1/session", "/"] {
            let answer = with(path, &format!("origin: {origin}"));
            answer.error(403);
            answer.assert_protected();
        }
    }
    let two = format!("{own}\r\norigin: http://evil.example");
    with("/api/v1/session", &two).error(403);
    for site in ["same-origin", "none"] {
        assert_eq!(
            with("/api/v1/session", &format!("sec-fetch-site: {site}")).status,
            200,
            "{site}"
        );
    }
    for site in ["cross-site", "same-site", "", "elsewhere"] {
        for path in ["/api/v1/session", "/main.js"] {
            let answer = with(path, &format!("sec-fetch-site: {site}"));
            answer.error(403);
            answer.assert_protected();
        }
    }
}

#[test]
fn a_link_from_elsewhere_opens_the_page_and_nothing_more() {
    let pages = tempfile::tempdir().unwrap();
    std::fs::write(pages.path().join("index.html"), "<head></head>").unwrap();
    let server = start_with(Options {
        folder: fixtures(),
        pages: Some(pages.path().to_owned()),
        ..Options::default()
    });
    let (host, key) = (server.host(), server.key_line());
    let opened = [
        "sec-fetch-site: cross-site",
        "sec-fetch-mode: navigate",
        "sec-fetch-dest: document",
    ];
    let with = |method: &str, path: &str, lines: &[&str]| {
        server.with(method, path, &[&[host.as_str(), key.as_str()], lines].concat())
    };
    assert_eq!(with("GET", "/", &opened).status, 200);
    with("GET", "/api/v1/session", &opened).error(403);
    with("POST", "/", &opened).error(403);
    // In a frame, or as an image.
    for dest in ["iframe", "image", "object", ""] {
        let dest = format!("sec-fetch-dest: {dest}");
        with("GET", "/", &[opened[0], opened[1], &dest]).error(403);
    }
    with("GET", "/", &opened[..1]).error(403);
    with("GET", "/", &[opened[0], "sec-fetch-mode: no-cors", opened[2]]).error(403);
}

#[test]
fn preflights_and_wrong_methods_are_refused() {
    let server = server();
    let (host, key) = (server.host(), server.key_line());
    let preflight = server.with(
        "OPTIONS",
        "/api/v1/session",
        &[
            &host,
            "origin: http://evil.example",
            "access-control-request-method: GET",
            "access-control-request-headers: x-tracesmith-key",
        ],
    );
    preflight.error(403);
    preflight.assert_protected();
    let without_origin = server.with("OPTIONS", "/api/v1/session", &[&host]);
    without_origin.error(401);
    without_origin.assert_protected();
    for (method, path) in [
        ("POST", "/api/v1/session"),
        ("PUT", "/api/v1/open"),
        ("GET", "/api/v1/open"),
        ("DELETE", "/api/v1/t/0/layout"),
        ("GET", "/api/v1/t/0/cut"),
        ("POST", "/"),
        ("TRACE", "/"),
        ("CONNECT", "/"),
    ] {
        let answer = server.with(method, path, &[&host, &key, "content-length: 0"]);
        assert!(
            [400, 405].contains(&answer.status),
            "{method} {path}: {}",
            answer.status
        );
        answer.assert_protected();
    }
}

#[test]
fn every_answer_is_protected() {
    let server = start(&[&crate::support::synthetic()]);
    let layout = server.ready(0);
    let generation = layout["generation"].as_str().unwrap();
    let tiles = format!("t/0/{generation}/tiles?level=0&first=0&count=1&rows=0");
    for (path, status) in [
        ("session", 200),
        ("files", 200),
        ("t/0/layout", 200),
        ("t/0/shapes", 200),
        (tiles.as_str(), 200),
        ("t/0/analysis/kernels", 200),
        ("t/0/analysis/absent", 404),
        ("t/0/table/absent", 404),
        ("t/0/event?row=0&start=1", 404),
        ("t/0/tiles", 404),
        ("t/x/layout", 400),
        ("t/0/area", 400),
        ("t/0/area?from=x&to=1", 400),
        ("absent", 404),
    ] {
        let answer = server.get(path);
        assert_eq!(answer.status, status, "{path}: {}", answer.text());
        answer.assert_protected();
        let kept = answer.header("cache-control").unwrap();
        assert_eq!(kept.contains("immutable"), path == tiles, "{path}: {kept}");
        if status != 200 {
            answer.error(status);
        }
    }
}
