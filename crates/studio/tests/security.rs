//! Who gets an answer: each rule of the server, by what others could send.

use std::net::{IpAddr, Ipv4Addr, TcpStream, UdpSocket};
use std::time::Duration;

use tracesmith_studio::{Control, Options, Server};

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

#[test]
fn only_this_machine_can_connect() {
    let server = Server::bind(Options {
        folder: fixtures(),
        ..Options::default()
    })
    .unwrap();
    let addresses = server.addresses().to_vec();
    assert!(!addresses.is_empty());
    let port = addresses[0].port();
    for address in &addresses {
        assert!(address.ip().is_loopback() && address.port() == port, "{address}");
    }
    std::thread::spawn(move || server.run());
    let reached = |ip: IpAddr| TcpStream::connect_timeout(&(ip, port).into(), Duration::from_secs(2)).is_ok();
    for address in &addresses {
        assert!(reached(address.ip()), "{address}");
    }
    // Another address of the loopback network, and the one that other machines know this one by.
    assert!(!reached(Ipv4Addr::new(127, 0, 0, 2).into()));
    if let Some(outer) = outer_address() {
        assert!(!reached(outer), "{outer} answers");
    }
}

/// The address from which this machine would reach others. Nothing is sent.
fn outer_address() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    let ip = socket.local_addr().ok()?.ip();
    (!ip.is_loopback() && !ip.is_unspecified()).then_some(ip)
}

#[test]
fn every_server_has_a_key_of_its_own() {
    let (one, other) = (server(), server());
    assert_ne!(one.key, other.key);
    for key in [&one.key, &other.key] {
        assert!(
            key.len() == 32 && key.bytes().all(|byte| byte.is_ascii_hexdigit()),
            "{key}"
        );
    }
    let (host, foreign) = (one.host(), other.key_line());
    one.with("GET", "/api/v1/session", &[&host, &foreign]).error(401);
    // No page and no answer has the key in it.
    for path in ["/", "/index.html", "/main.js", "/api/v1/session"] {
        let answer = one.with("GET", path, &[&host, &one.key_line()]);
        assert!(
            !String::from_utf8_lossy(&answer.body).contains(&one.key),
            "{path}"
        );
    }
}

#[test]
fn requests_that_two_readers_could_read_in_two_ways_are_refused() {
    let server = server();
    let (host, key) = (server.host(), server.key_line());
    let smuggled = format!("GET /api/v1/session HTTP/1.1\r\n{host}\r\n{key}\r\n\r\n");
    for lines in [
        "content-length: 0\r\ncontent-length: 9".to_owned(),
        "transfer-encoding: x".to_owned(),
        "content-length: -1".to_owned(),
        "bad header: 1".to_owned(),
        "\u{0}: 1".to_owned(),
    ] {
        let request = format!("POST /api/v1/open HTTP/1.1\r\n{host}\r\n{lines}\r\n\r\n{smuggled}");
        if let Some(answer) = server.raw(&request) {
            assert_ne!(answer.status, 200, "{lines}");
            assert!(!answer.text().contains("\"version\""), "{lines}");
        }
    }
    assert_eq!(server.get("session").status, 200);
}

#[test]
fn a_key_in_a_form_of_another_page_changes_nothing() {
    // What a form or an image of another page can send: no header of our own, and a type that needs no preflight.
    let server = start_with(Options {
        folder: fixtures(),
        control: Control::Allowed,
        ..Options::default()
    });
    let host = server.host();
    let body = format!("{{\"path\": \"train-h200.sbt\", \"key\": \"{}\"}}", server.key);
    for path in ["open", "t/0/cut", "t/0/notes"] {
        for kind in [
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data",
        ] {
            let request = format!(
                "POST /api/v1/{path} HTTP/1.1\r\n{host}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\
                 connection: close\r\n\r\n{body}",
                body.len()
            );
            let answer = server.raw(&request).unwrap();
            answer.error(401);
            answer.assert_protected();
        }
    }
    assert_eq!(server.json("session")["traces"], serde_json::json!([]));
}
