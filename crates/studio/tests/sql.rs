//! Queries in SQL.

use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{start, train};

/// Runs for minutes.
const ENDLESS: &str = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 4000000000) select max(i) from n";

fn body(query: &str) -> String {
    serde_json::json!({ "query": query }).to_string()
}

#[test]
fn queries_give_columns_with_types_and_rows() {
    let server = start(&[&train()]);
    server.ready(0);
    let query = "select name, count(*) as n, avg(dur) / 2 as half, null as empty from kernel group by 1 order by n desc, name";
    let table = server.post("t/0/sql", &body(query)).good();
    let kinds: Vec<&str> = table["columns"]
        .as_array()
        .unwrap()
        .iter()
        .map(|column| column["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["text", "integer", "real", "null"]);
    assert_eq!(
        (&table["columns"][1]["name"], &table["truncated"]),
        (&"n".into(), &false.into())
    );
    assert!(table["rows"].as_array().unwrap().len() > 3 && table["ms"].as_f64().unwrap() >= 0.0);
    let big = server
        .post("t/0/sql", &body("select 9007199254740993, 9007199254740992"))
        .good();
    assert_eq!(
        big["rows"],
        serde_json::json!([["9007199254740993", 9_007_199_254_740_992_i64]])
    );
    let two = serde_json::json!({ "query": "select * from kernel", "limit": 2 }).to_string();
    let two = server.post("t/0/sql", &two).good();
    assert_eq!(
        (two["rows"].as_array().unwrap().len(), &two["truncated"]),
        (2, &true.into())
    );
}

#[test]
fn queries_only_read() {
    let server = start(&[&train()]);
    server.ready(0);
    for query in [
        "create table t (a)",
        "attach 'x.db' as x",
        "pragma writable_schema = 1",
        "select load_extension('x')",
        "select * from",
        "",
    ] {
        server.post("t/0/sql", &body(query)).error(400);
    }
    assert!(
        server
            .post("t/0/sql", &body("select absent from kernel"))
            .error(400)
            .contains("absent")
    );
}

#[test]
fn a_query_ends_when_its_page_goes() {
    let server = start(&[&train()]);
    server.ready(0);
    // As many as there are places for long work: the next one has to wait for one of them.
    for _ in 0..2 {
        let mut stream = server.connect();
        stream
            .write_all(server.post_text("t/0/sql", &body(ENDLESS)).as_bytes())
            .unwrap();
        thread::sleep(Duration::from_millis(300));
        drop(stream);
    }
    let begin = Instant::now();
    let quick = server.post("t/0/sql", &body("select 1")).good();
    assert_eq!(quick["rows"], serde_json::json!([[1]]));
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
}
