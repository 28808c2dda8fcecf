//! Tiles and slices say what the grid says, byte for byte.

use std::sync::Arc;

use serde_json::Value;
use tracesmith_trace::Trace;
use tracesmith_trace::grid::{Grid, GridOptions, RowCells};

use crate::support::{Answer, Running, start, train};

const CELLS: usize = 1_024;

fn grid() -> Grid {
    let trace = Arc::new(Trace::open(&train()).unwrap());
    Grid::new(&trace, GridOptions::default()).unwrap()
}

/// Reads little-endian numbers one after the other.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count);
        self.0 = rest;
        taken
    }

    fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.take(2).try_into().unwrap())
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take(4).try_into().unwrap())
    }

    fn f32s(&mut self, count: usize) -> Vec<f32> {
        (0..count)
            .map(|_| f32::from_le_bytes(self.take(4).try_into().unwrap()))
            .collect()
    }

    fn f64s(&mut self, count: usize) -> Vec<f64> {
        (0..count)
            .map(|_| f64::from_le_bytes(self.take(8).try_into().unwrap()))
            .collect()
    }
}

fn tiles(server: &Running, layout: &Value, query: &str) -> Answer {
    let generation = layout["generation"].as_str().unwrap();
    server.get(&format!("t/0/{generation}/tiles?{query}"))
}

#[test]
fn tiles_are_the_cells_of_the_grid() {
    let server = start(&[&train()]);
    let (layout, grid) = (server.ready(0), grid());
    assert_eq!(layout["origin_ns"], grid.origin().to_string());
    assert_eq!(layout["span_ns"], grid.span());
    let rows = grid.rows();
    for (level, first, count) in [(20, 0, 1), (14, 1, 3), (6, 1_000, 1), (0, 90_000, 2), (63, 0, 1)] {
        let query = format!("level={level}&first={first}&count={count}&rows=0-{}", rows - 1);
        let answer = tiles(&server, &layout, &query);
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(answer.body.len() % 8, 0);
        let mut bytes = Bytes(&answer.body);
        assert_eq!(bytes.take(4), b"TSTL");
        assert_eq!((bytes.u16(), bytes.take(2)), (1, &[level, 0][..]));
        let head: Vec<u32> = (0..6).map(|_| bytes.u32()).collect();
        assert_eq!(head, [first, count, rows, CELLS as u32, 0, 0]);
        let cells = count as usize * CELLS;
        for row in 0..rows {
            assert_eq!(bytes.u32(), row);
            let kind = bytes.take(4)[0];
            match grid.cells(row, level, u64::from(first) * CELLS as u64, cells) {
                RowCells::Spans(spans) => {
                    assert_eq!(kind, 0);
                    let shapes: Vec<u16> = (0..cells).map(|_| bytes.u16()).collect();
                    assert_eq!(shapes, spans.shapes, "row {row} level {level}");
                    for shares in &spans.shares {
                        assert_eq!(bytes.take(cells), shares);
                    }
                    assert_eq!(bytes.take(cells), spans.counts);
                    bytes.take(cells);
                }
                RowCells::Values(values) => {
                    assert_eq!(kind, 1);
                    for plane in [&values.min, &values.max, &values.last] {
                        let read = bytes.f32s(cells);
                        let same = read.iter().zip(plane).all(|(a, b)| a.to_bits() == b.to_bits());
                        assert!(same, "row {row} level {level}");
                    }
                }
            }
        }
        assert!(bytes.0.is_empty());
    }
}

#[test]
fn slices_are_those_of_the_grid() {
    let server = start(&[&train()]);
    let (layout, grid) = (server.ready(0), grid());
    let generation = layout["generation"].as_str().unwrap();
    let last = grid.rows() - 1;
    let (from, to) = (0, grid.span());
    let query = format!("t/0/{generation}/slices?rows=0-{last}&from={from}&to={to}&limit=50");
    let answer = server.get(&query);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let mut bytes = Bytes(&answer.body);
    assert_eq!(bytes.take(4), b"TSSL");
    assert_eq!(
        (bytes.u16(), bytes.u16(), bytes.u32(), bytes.u32()),
        (1, 0, last + 1, 0)
    );
    let (mut found, mut cut) = (0, 0);
    for row in 0..=last {
        let known = grid.slices(row, from, to, 50);
        let head: Vec<u32> = (0..4).map(|_| bytes.u32()).collect();
        assert_eq!(
            head,
            [row, known.starts.len() as u32, u32::from(known.has_more), 0]
        );
        let count = known.starts.len();
        assert_eq!(
            bytes.f64s(count),
            known.starts.iter().map(|time| *time as f64).collect::<Vec<_>>()
        );
        assert_eq!(
            bytes.f64s(count),
            known
                .durations
                .iter()
                .map(|time| *time as f64)
                .collect::<Vec<_>>()
        );
        let shapes: Vec<u32> = (0..count).map(|_| bytes.u32()).collect();
        assert_eq!(shapes, known.shapes);
        bytes.take(count % 2 * 4);
        found += count;
        cut += usize::from(known.has_more);
    }
    assert!(bytes.0.is_empty() && found > 100 && cut > 0, "{found} {cut}");
}

#[test]
fn idle_rows_come_later_and_change_no_other_row() {
    let server = start(&[&train()]);
    let (layout, grid) = (server.ready(0), grid());
    let tracks = layout["tracks"].as_array().unwrap();
    let idle = tracks.iter().find(|track| track["kind"] == "idle").unwrap();
    assert!(idle["first_row"].as_u64().unwrap() >= u64::from(grid.rows()));
    assert!(idle["slices"].as_u64().unwrap() > 0);
    let categories = idle["categories"].as_array().unwrap();
    assert!((1..=4).contains(&categories.len()), "{categories:?}");
    // The generation before it had all other rows.
    let (stamp, number) = layout["generation"].as_str().unwrap().rsplit_once('-').unwrap();
    assert_eq!(number, "2");
    let rows = format!("0-{}", grid.rows() - 1);
    let of = |number: u32| {
        let answer = server.get(&format!(
            "t/0/{stamp}-{number}/tiles?level=12&first=0&count=1&rows={rows}"
        ));
        assert_eq!(answer.status, 200);
        answer.body
    };
    assert_eq!(of(1), of(2));
    server
        .get(&format!("t/0/{stamp}-3/tiles?level=12&first=0&count=1&rows=0"))
        .error(409);
}

#[test]
fn questions_for_too_much_are_refused() {
    let server = start(&[&train()]);
    let layout = server.ready(0);
    for query in [
        "level=64&first=0&count=1&rows=0",
        "level=0&first=0&count=0&rows=0",
        "level=0&first=0&count=65&rows=0",
        "level=0&first=0&count=1&rows=4000000000",
        "level=0&first=0&count=1&rows=0-4294967295",
        "level=0&first=0&count=1&rows=5-2",
        "level=0&first=0&count=1&rows=x",
        "level=0&first=0&count=1",
        "level=-1&first=0&count=1&rows=0",
    ] {
        tiles(&server, &layout, query).error(400);
    }
}

#[test]
fn answers_are_packed_for_those_who_take_it() {
    let server = start(&[&train()]);
    let layout = server.ready(0);
    let generation = layout["generation"].as_str().unwrap();
    for path in [
        format!("t/0/{generation}/tiles?level=14&first=0&count=1&rows=0-3"),
        "t/0/shapes".to_owned(),
        "t/0/analysis/kernels".to_owned(),
    ] {
        let plain = server.get(&path);
        let packed = server.get_with(&path, &["accept-encoding: gzip, br"]);
        assert_eq!(
            (
                plain.header("content-encoding"),
                packed.header("content-encoding")
            ),
            (None, Some("gzip"))
        );
        assert_eq!(plain.body, packed.body, "{path}");
        let sent: usize = packed.header("content-length").unwrap().parse().unwrap();
        assert!(sent < plain.body.len() / 2, "{path}: {sent}");
        assert_eq!(packed.header("vary"), Some("accept-encoding"));
    }
    let refused = server.get_with("t/0/shapes", &["accept-encoding: gzip;q=0"]);
    assert_eq!(refused.header("content-encoding"), None);
}
