//! How much anybody may send, and how slowly.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use crate::support::{read_answer, start};

#[test]
fn long_heads_are_refused() {
    let server = start(&[]);
    let (host, key) = (server.host(), server.key_line());
    let fits = format!("x-filler: {}", "a".repeat(7_000));
    assert_eq!(
        server
            .with("GET", "/api/v1/session", &[&host, &key, &fits])
            .status,
        200
    );
    let long = format!("x-filler: {}", "a".repeat(9_000));
    let answer = server.with("GET", "/api/v1/session", &[&host, &key, &long]);
    answer.error(431);
    answer.assert_protected();
    let target = format!("/api/v1/session?{}", "a".repeat(9_000));
    server.with("GET", &target, &[&host, &key]).error(431);
    // Beyond the buffer, the connection ends before the request is understood.
    let longer = format!("x-filler: {}", "a".repeat(1 << 20));
    let request = format!("GET /api/v1/session HTTP/1.1\r\n{host}\r\n{key}\r\n{longer}\r\n\r\n");
    if let Some(answer) = server.raw(&request) {
        assert_eq!((answer.status, answer.body.len()), (431, 0));
    }
    assert_eq!(server.get("session").status, 200);
}

#[test]
fn long_bodies_are_refused() {
    let server = start(&[]);
    let answer = server.post("open", &"x".repeat((1 << 20) + 1));
    assert_eq!(answer.status, 413);
    answer.assert_protected();
    let unread = server.raw(&format!(
        "POST /api/v1/open HTTP/1.1\r\n{}\r\n{}\r\ncontent-length: 99999999999\r\n\r\n",
        server.host(),
        server.key_line()
    ));
    unread.unwrap().error(413);
    server.post("open", "{").error(400);
    server.post("open", r#"{"path": 3}"#).error(400);
}

#[test]
fn slow_heads_end_the_connection() {
    let server = start(&[]);
    let begin = Instant::now();
    let mut silent = server.connect();
    let mut slow = server.connect();
    slow.write_all(b"GET /api/v1/session HTTP/1.1\r\nhost: 127")
        .unwrap();
    // A connection that had a request before is not better.
    let mut reused = server.connect();
    let request = format!("GET / HTTP/1.1\r\n{}\r\n\r\n", server.host());
    reused.write_all(request.as_bytes()).unwrap();
    // A body that does not come.
    let mut bodiless = server.connect();
    let request = server
        .post_text("open", "{}")
        .replace("content-length: 2", "content-length: 2000");
    bodiless.write_all(request.as_bytes()).unwrap();
    // Each is read to its end, so each has ended. The one request that is complete has its answer.
    for (stream, answers) in [(&mut silent, 0), (&mut slow, 0), (&mut reused, 1)] {
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        let rest = String::from_utf8_lossy(&rest);
        assert_eq!(rest.matches("HTTP/1.1 200 OK").count(), answers, "{rest}");
    }
    read_answer(&mut bodiless).unwrap().error(408);
    let waited = begin.elapsed();
    assert!(
        waited >= Duration::from_secs(9) && waited < Duration::from_secs(30),
        "{waited:?}"
    );
}

#[test]
fn there_is_an_end_to_connections() {
    let server = start(&[]);
    let held: Vec<_> = (0..64).map(|_| server.connect()).collect();
    // The server accepts in the order in which they came.
    let begin = Instant::now();
    let refused = loop {
        let mut one_more = server.connect();
        let request = format!("GET / HTTP/1.1\r\n{}\r\nconnection: close\r\n\r\n", server.host());
        let _ = one_more.write_all(request.as_bytes());
        if let Some(answer) = read_answer(&mut one_more).filter(|answer| answer.status == 503) {
            break answer;
        }
        assert!(
            begin.elapsed() < Duration::from_secs(5),
            "65 connections were accepted"
        );
    };
    refused.assert_protected();
    drop(held);
    let begin = Instant::now();
    while server
        .raw(&format!(
            "GET /x HTTP/1.1\r\n{}\r\nconnection: close\r\n\r\n",
            server.host()
        ))
        .is_none_or(|answer| answer.status != 404)
    {
        assert!(begin.elapsed() < Duration::from_secs(5), "no place became free");
    }
}
