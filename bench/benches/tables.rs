//! The figures of tables: scans and SQL over ten million kernels. Run with `cargo bench -p tracesmith-bench --bench tables`.

#![allow(clippy::unwrap_used, reason = "a bench may stop on any error")]

use std::env;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tracesmith_bench::figure::{median_time, print, print_head};
use tracesmith_bench::training_trace::write_trace;
use tracesmith_sql::{Database, Limits};
use tracesmith_trace::Trace;
use tracesmith_trace::tables::{Condition, Scan};

/// Runs of which the one in the middle counts.
const RUNS: usize = 3;

fn main() {
    let kernels: usize =
        env::var("TRACESMITH_BENCH_KERNELS").map_or(10_000_000, |text| text.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.sbt");
    write_trace(&path, kernels).unwrap();
    print_head(&format!("tables, {kernels} kernels"));
    scans(&path);
    queries(&path);
}

fn open(path: &Path) -> Arc<Trace> {
    Arc::new(Trace::open(path).unwrap())
}

fn scans(path: &Path) {
    let (first, last) = open(path).span().unwrap();
    let middle = u64::midpoint(first.0, last.0);
    let hundredth = (last.0 - first.0) / 100;
    for (name, scan) in [
        (
            "scan of start, end and name",
            Scan::columns(["start", "end", "name"]),
        ),
        ("scan of all columns", Scan::default()),
        (
            "scan of a hundredth of the time",
            Scan::columns(["start", "end", "name"]).between(Some(middle), Some(middle + hundredth)),
        ),
        (
            "scan of one name",
            Scan::columns(["start", "end"]).with("name", Condition::Like("*gemm*".to_owned())),
        ),
    ] {
        let time = median_time(RUNS, || {
            let batches = open(path).table("kernels").unwrap().scan(&scan).unwrap();
            let rows: usize = batches.map(|batch| batch.unwrap().num_rows()).sum();
            black_box(rows);
        });
        print(name, seconds(time), "");
    }
}

fn queries(path: &Path) {
    for (name, sql, asked) in [
        (
            "select name, sum(dur) from kernels group by 1 order by 2 desc",
            "select name, sum(dur) from kernels group by 1 order by 2 desc",
            "under 2.5 s",
        ),
        (
            "the same by readable name, from kernel",
            "select name, sum(dur) from kernel group by 1 order by 2 desc",
            "under 2.5 s",
        ),
        ("kernel_stats()", "select * from kernel_stats()", "under 0.4 s"),
        ("count(*)", "select count(*) from kernels", ""),
        (
            "sum of one name",
            "select sum(dur) from kernels where name glob '*gemm*'",
            "",
        ),
        (
            "join of kernels and calls, 1,000 rows",
            "select k.name, a.name from (select * from kernels limit 1000) k \
             join api_calls a on a.correlation = k.correlation",
            "",
        ),
    ] {
        let time = median_time(RUNS, || {
            let database = Database::new(vec![("t".to_owned(), open(path))], Limits::default()).unwrap();
            let mut rows = 0;
            let mut statement = database.prepare(sql).unwrap();
            statement
                .for_each(|_| {
                    rows += 1;
                    true
                })
                .unwrap();
            assert!(rows > 0);
        });
        print(name, seconds(time), asked);
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}
