//! What queries return, and what they cannot do.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tracesmith_sql::{Completions, Database, Error, FOREIGN_VIEWS, FUNCTIONS, Limits, ValueRef};
use tracesmith_trace::Trace;
use tracesmith_trace::tables::{ColumnKind, catalog};

fn trace(name: &str) -> Arc<Trace> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures")
        .join(name);
    Arc::new(Trace::open(&path).unwrap())
}

fn database(names: &[&str]) -> Database {
    let traces = names
        .iter()
        .map(|name| ((*name).to_owned(), trace(name)))
        .collect();
    Database::new(traces, Limits::default()).unwrap()
}

fn text(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => "null".to_owned(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => format!("{number:.6}"),
        ValueRef::Text(text) => String::from_utf8(text.to_vec()).unwrap(),
        ValueRef::Blob(_) => "blob".to_owned(),
    }
}

fn query(database: &Database, sql: &str) -> Vec<Vec<String>> {
    let mut statement = database
        .prepare(sql)
        .unwrap_or_else(|error| panic!("{sql}: {error}"));
    let mut rows = Vec::new();
    statement
        .for_each(|row| {
            rows.push(row.iter().map(|value| text(*value)).collect());
            true
        })
        .unwrap_or_else(|error| panic!("{sql}: {error}"));
    rows
}

fn failure(database: &Database, sql: &str) -> Error {
    let mut statement = match database.prepare(sql) {
        Ok(statement) => statement,
        Err(error) => return error,
    };
    match statement.for_each(|_| true) {
        Err(error) => error,
        Ok(()) => panic!("{sql} does not fail"),
    }
}

const DEMO: &str = "demo-h200.sbt";
const SYNTHETIC: &str = "synthetic-v1.sbt";

#[test]
fn every_table_view_and_function_can_be_read() {
    for name in [DEMO, "synthetic-v1.sbt", "replay-h200.sbt"] {
        let database = database(&[name]);
        for info in catalog() {
            let count = query(&database, &format!("select count(*) from {}", info.name));
            let rows = query(&database, &format!("select * from {}", info.name));
            assert_eq!(count[0][0], rows.len().to_string(), "{name} {}", info.name);
            for row in &rows {
                assert_eq!(row.len(), info.columns.len(), "{name} {}", info.name);
            }
        }
        for view in FOREIGN_VIEWS {
            query(&database, &format!("select * from {}", view.name));
        }
        for function in FUNCTIONS {
            for row in query(&database, &format!("select * from {}()", function.name)) {
                assert_eq!(row.len(), function.columns.len(), "{}", function.name);
            }
        }
    }
}

/// Each query runs on the virtual tables, and on a copy of them in ordinary tables of SQLite.
#[test]
fn answers_are_those_of_ordinary_tables() {
    let ours = database(&[DEMO]);
    let plain = rusqlite::Connection::open_in_memory().unwrap();
    for name in ["kernels", "api_calls", "gpu_ops", "launches"] {
        let info = catalog().iter().find(|info| info.name == name).unwrap();
        let columns: Vec<String> = info
            .columns
            .iter()
            .map(|column| {
                let kind = match column.kind {
                    ColumnKind::Text => "text",
                    ColumnKind::F64 => "real",
                    _ => "integer",
                };
                format!("\"{}\" {kind}", column.name)
            })
            .collect();
        plain
            .execute_batch(&format!("create table {name}({})", columns.join(",")))
            .unwrap();
        let mut statement = ours.prepare(&format!("select * from {name}")).unwrap();
        let marks = vec!["?"; columns.len()].join(",");
        let mut insert = plain
            .prepare(&format!("insert into {name} values ({marks})"))
            .unwrap();
        statement
            .for_each(|row| {
                let values: Vec<rusqlite::types::Value> =
                    row.iter().map(|v| (*v).try_into().unwrap()).collect();
                insert.execute(rusqlite::params_from_iter(values)).unwrap();
                true
            })
            .unwrap();
    }
    let start = query(
        &ours,
        "select start from kernels order by start limit 1 offset 100",
    );
    let start = &start[0][0];
    for sql in [
        "select name, count(*), sum(end - start) from kernels group by name order by 3 desc, 1".to_owned(),
        "select name, sum(duration) from kernels group by 1".to_owned(),
        "select distinct name from kernels order by name desc".to_owned(),
        format!("select start, name from kernels where start >= {start} and duration > 2000 order by start"),
        format!("select count(*) from kernels where start between {start} and {start} + 1000000"),
        "select count(*) from kernels where name = 'none'".to_owned(),
        "select count(*), min(start) from kernels where name glob '*a*' and grid_x >= 1".to_owned(),
        "select count(*) from kernels where name like '%A%'".to_owned(),
        "select count(*) from kernels where name = null or name is null".to_owned(),
        "select count(*) from kernels where name in (select name from kernels limit 1)".to_owned(),
        "select count(*) from kernels where start > '5'".to_owned(),
        "select count(*) from kernels where start > 5.5 and start < 1e30".to_owned(),
        "select count(*) from kernels where start < -1".to_owned(),
        "select k.name, count(*), sum(a.end - a.start) from kernels k join api_calls a on a.correlation = k.correlation \
         group by 1 order by 1"
            .to_owned(),
        "select o.name, l.call, l.latency from gpu_ops o join launches l on l.op = o.op order by o.op".to_owned(),
        "select stream, count(*) from kernels group by stream order by stream desc".to_owned(),
        "select a.name from kernels a left join kernels b on b.start = a.end order by a.start, 1".to_owned(),
        "select name, start from kernels order by name, start".to_owned(),
        "select max(start), name from kernels where name < 'm' group by name".to_owned(),
    ] {
        let mut statement = plain.prepare(&sql).unwrap();
        let width = statement.column_count();
        let mut expected: Vec<Vec<String>> = Vec::new();
        let mut rows = statement.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            expected.push((0..width).map(|column| text(row.get_ref(column).unwrap())).collect());
        }
        let mut found = query(&ours, &sql);
        if !sql.contains("order by") {
            expected.sort();
            found.sort();
        }
        assert_eq!(found, expected, "{sql}");
    }
}

#[test]
fn several_traces_have_a_column_with_their_names() {
    let database = database(&[DEMO, "synthetic-v1.sbt"]);
    let both = query(
        &database,
        "select trace, count(*) from kernels group by trace order by trace",
    );
    assert_eq!(both.len(), 2);
    assert_eq!(both[0][0], DEMO);
    let one = query(
        &database,
        "select count(*) from kernels where trace = 'demo-h200.sbt'",
    );
    assert_eq!(one[0][0], both[0][1]);
    let none = query(&database, "select count(*) from kernels where trace = 'other'");
    assert_eq!(none[0][0], "0");
    let stats = query(
        &database,
        "select trace, sum(count) from kernel_stats() group by trace order by trace",
    );
    assert_eq!(stats, both);
}

#[test]
fn statistics_are_those_of_a_query() {
    let database = database(&[DEMO]);
    let stats = query(
        &database,
        "select name, count, total, round(mean, 3), min, max from kernel_stats() order by total desc, name",
    );
    let grouped = query(
        &database,
        "select coalesce(demangled, name) n, count(*), sum(duration), round(avg(duration), 3), min(duration), \
         max(duration) from kernels group by 1 order by 3 desc, 1",
    );
    assert_eq!(stats, grouped);
    let shares = query(&database, "select sum(share) from kernel_stats()");
    assert_eq!(shares[0][0], "1.000000");
}

#[test]
fn gaps_and_paths_take_arguments() {
    let database = database(&[DEMO]);
    let all: usize = query(&database, "select count(*) from gaps()")[0][0]
        .parse()
        .unwrap();
    let median = query(
        &database,
        "select duration from gaps() order by duration limit 1 offset 20",
    );
    let median: u64 = median[0][0].parse().unwrap();
    let long = query(
        &database,
        &format!("select min(duration), count(*) from gaps({median})"),
    );
    assert_eq!(long[0][0].parse::<u64>().unwrap(), median);
    assert!(long[0][1].parse::<usize>().unwrap() < all);
    let whole: u64 = query(&database, "select sum(duration) from critical_path()")[0][0]
        .parse()
        .unwrap();
    let step: u64 = query(&database, "select sum(duration) from critical_path(5)")[0][0]
        .parse()
        .unwrap();
    assert!(0 < step && step < whole);
    let error = failure(&database, "select * from critical_path(100000)");
    assert!(error.to_string().contains("there is no step 100000"), "{error}");
    let error = failure(&database, "select * from gaps('long')");
    assert!(error.to_string().contains("at_least must be a number"), "{error}");
    let error = failure(&database, "select * from overlap('games')");
    assert!(error.to_string().contains("compute, communication"), "{error}");
    assert_eq!(
        query(&database, "select * from overlap('compute', 'copy')").len(),
        1
    );
}

#[test]
fn errors_name_the_place() {
    let database = database(&[DEMO]);
    let error = failure(&database, "select name,\n  strat from kernels").to_string();
    assert_eq!(
        error,
        "no such column: strat, at line 2, column 3\n    strat from kernels\n    ^"
    );
    let error = failure(&database, "selec 1").to_string();
    assert!(error.contains("at line 1, column 1"), "{error}");
}

#[test]
fn nothing_can_be_written_or_opened() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("f.db").display().to_string();
    let database = database(&[DEMO]);
    for sql in [
        "create table t(a)".to_owned(),
        "create temp table t(a)".to_owned(),
        "create view v as select 1".to_owned(),
        "drop view kernel".to_owned(),
        "insert into kernels(name) values ('x')".to_owned(),
        "delete from kernels".to_owned(),
        "update kernels set name = 'x'".to_owned(),
        format!("attach '{file}' as f"),
        format!("vacuum into '{file}'"),
        "pragma query_only = false".to_owned(),
        "pragma hard_heap_limit = 0".to_owned(),
        "pragma trusted_schema = true".to_owned(),
        "begin".to_owned(),
        "select load_extension('x')".to_owned(),
        "create virtual table t using kernels".to_owned(),
        "create temp trigger t instead of insert on kernel begin select 1; end".to_owned(),
    ] {
        let error = failure(&database, &sql);
        // A statement without columns is never run.
        let refusals = ["may not be modified", "returns no rows"];
        let text = error.to_string();
        let is_refused =
            matches!(error, Error::NotAllowed) || refusals.iter().any(|words| text.contains(words));
        assert!(is_refused, "{sql}: {error}");
    }
    assert!(!Path::new(&file).exists());
    assert!(
        !query(&database, "select * from kernel limit 1").is_empty(),
        "the view is still there"
    );
}

#[test]
fn a_query_without_end_ends_when_its_time_is_up() {
    let limits = Limits {
        time: Some(Duration::from_millis(200)),
        ..Limits::default()
    };
    let database = Database::new(vec![(DEMO.to_owned(), trace(DEMO))], limits).unwrap();
    let begun = Instant::now();
    let error = failure(
        &database,
        "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n",
    );
    assert!(matches!(error, Error::TimedOut { .. }), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_query_that_is_interrupted_ends() {
    let database = database(&[DEMO]);
    let interrupt = database.interrupter();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        interrupt();
    });
    let error = failure(
        &database,
        "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n",
    );
    assert!(matches!(error, Error::Interrupted), "{error}");
    // The next one runs.
    assert_eq!(query(&database, "select count(*) from kernels"), [["300"]]);
}

#[test]
fn a_query_runs_after_one_that_took_too_long() {
    let mut database = database(&[DEMO]);
    database.set_time_limit(Some(Duration::from_millis(50)));
    let endless = "select count(*) from kernels a, kernels b, kernels c, kernels d";
    let error = failure(&database, endless);
    assert!(matches!(error, Error::TimedOut { .. }), "{error}");
    database.set_time_limit(None);
    assert_eq!(query(&database, "select count(*) from kernels"), [["300"]]);
}

/// `|` is the cursor.
#[test]
fn words_complete_to_what_can_follow() {
    let completions = Completions::new(database(&[DEMO]).names().unwrap());
    for (query, expected) in [
        ("sel|", vec!["select"]),
        ("SEL|", vec!["SELECT"]),
        ("select * from kernel_|", vec!["kernel_stats("]),
        ("select * from idle|", vec!["idle_gaps"]),
        ("select * from steps, idle|", vec!["idle_gaps"]),
        ("select next_n| from idle_gaps", vec!["next_name"]),
        ("select k.demang| from kernels as k", vec!["demangled"]),
        ("select g.next| from gaps(10) g", vec!["next_name"]),
        ("select KERNELS.demang| from kernels", vec!["demangled"]),
        ("select is_w| from steps where", vec!["is_warm_up"]),
        ("select 'sel|' from steps", vec![]),
        ("select 1 /* sel|", vec![]),
        ("select du| from kernels", vec!["dur", "duration"]),
        ("é sel|", vec!["select"]),
    ] {
        let cursor = query.find('|').unwrap();
        let text = query.replace('|', "");
        let (start, found) = completions.complete(&text, cursor);
        assert_eq!(found, expected, "{query}");
        assert!(text.is_char_boundary(start) && start <= cursor);
    }
    let (_, all) = completions.complete("", 0);
    assert!(all.len() > 50);
}

#[test]
fn a_query_that_takes_too_much_memory_ends() {
    let limits = Limits {
        memory_bytes: 8 << 20,
        ..Limits::default()
    };
    let database = Database::new(vec![(DEMO.to_owned(), trace(DEMO))], limits).unwrap();
    let error = failure(
        &database,
        "with recursive n(i) as (select 1 union all select i + 1 from n limit 10000000) \
         select i, zeroblob(1000) from n order by -i",
    );
    assert!(matches!(error, Error::OutOfMemory { .. }), "{error}");
}

#[test]
fn kernels_have_readable_names_next_to_their_symbols() {
    let database = database(&["synthetic-v1.sbt"]);
    let readable = query(
        &database,
        "select name, symbol, sum(dur) from kernel group by 1, 2 order by 3, 1",
    );
    let expected =
        "select coalesce(demangled, name), name, sum(duration) from kernels group by 1, 2 order by 3, 1";
    assert_eq!(readable, query(&database, expected));
    assert!(readable.iter().any(|row| row[0] != row[1]), "{readable:?}");
    let ops = "select name, symbol, sum(duration) from gpu_ops where \"table\" = 'kernels' group by 1, 2 order by 3, 1";
    assert_eq!(query(&database, ops), readable);
    let launched =
        "select count(*) from launches l join gpu_ops o on o.op = l.op where l.symbol is not o.symbol";
    assert_eq!(query(&database, launched), [["0"]]);
    let short = query(&database, "select distinct short_name from kernels");
    assert!(short.iter().all(|row| !row[0].contains(['<', '('])), "{short:?}");
    // The name is a column of the table: SQLite groups by it without sorting.
    let plan = query(
        &database,
        "explain query plan select name, sum(dur) from kernel group by 1",
    );
    assert!(!format!("{plan:?}").contains("B-TREE"), "{plan:?}");
}

#[test]
fn views_of_nsys_have_its_device_and_process_numbers() {
    for traces in [&[DEMO][..], &[DEMO, SYNTHETIC][..]] {
        let database = database(traces);
        let rows = query(
            &database,
            "select distinct k.deviceId, k.globalPid / 0x1000000 % 0x1000000, d.ordinal, p.pid \
             from CUPTI_ACTIVITY_KIND_KERNEL k join devices d on d.ordinal = k.deviceId \
             join processes p on p.pid = k.globalPid / 0x1000000 % 0x1000000",
        );
        assert!(!rows.is_empty());
        for row in rows {
            assert_eq!((&row[0], &row[1]), (&row[2], &row[3]));
        }
        let first = query(
            &database,
            "select min(deviceId), count(*) from CUPTI_ACTIVITY_KIND_KERNEL",
        );
        assert_eq!(first[0][0], "0", "GPUs are counted from 0");
        let calls = query(
            &database,
            "select count(*) from CUPTI_ACTIVITY_KIND_RUNTIME where globalTid is null \
             union all select count(*) from CUPTI_ACTIVITY_KIND_RUNTIME where globalTid & ~0xffffff <> globalPid",
        );
        assert_eq!(calls, [["0"], ["0"]]);
    }
}
