"""Tables: what is read, and what DataFrame libraries make of it."""

from __future__ import annotations

import csv
import gc
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

import tracesmith


def test_every_table_has_an_attribute_or_a_documented_place(train: tracesmith.Trace) -> None:
    for name in train.tables:
        table = train.table(name)
        assert table.name == name and table.doc
        if isinstance(getattr(type(train), name, None), property) and name not in (
            "metadata",
            "health",
            "devices",
            "steps",
        ):
            assert getattr(train, name).name == name


def test_every_table_has_the_rows_that_the_command_exports(
    train: tracesmith.Trace, fixtures: Path, binary: str, tmp_path: Path
) -> None:
    subprocess.run(
        [binary, "export", str(fixtures / "train-h200.sbt"), "-f", "csv", "-o", str(tmp_path / "tables")],
        check=True,
        capture_output=True,
    )
    files = sorted((tmp_path / "tables").glob("*.csv"))
    assert len(files) > 20
    for file in files:
        with file.open(newline="") as lines:
            expected = list(csv.DictReader(lines))
        table = train.table(file.stem)
        columns = list(expected[0]) if expected else []
        rows = table.to_dicts(columns)
        assert len(rows) == len(expected), file.stem
        for row, of_command in zip(rows, expected, strict=True):
            for name in columns:
                assert _written(row[name], of_command[name]), (file.stem, name, row[name], of_command[name])


def _written(value: Any, text: str) -> bool:
    """Whether a CSV file writes the value like this."""
    if value is None:
        return text == ""
    if isinstance(value, bool):
        return text == str(value).lower()
    if isinstance(value, float):
        return float(text) == value
    return text == str(value)


def test_times_are_signed_and_durations_fit(train: tracesmith.Trace) -> None:
    rows = train.kernels.to_dicts(["start", "end", "duration"])
    assert len(rows) == 150
    assert all(row["end"] - row["start"] == row["duration"] > 0 for row in rows)
    pyarrow = pytest.importorskip("pyarrow")
    schema = pyarrow.schema(train.kernels.select("start", "end", "stream"))
    assert [str(field.type) for field in schema] == ["int64", "int64", "uint64"]


def test_ranges_and_conditions_select_rows(train: tracesmith.Trace) -> None:
    kernels = train.kernels
    rows = kernels.to_dicts(["start", "end", "short_name", "stream"])
    first = rows[40]["start"]
    last = rows[90]["start"]
    between = kernels.between(first, last).to_dicts(["start"])
    assert [row["start"] for row in between] == [
        row["start"] for row in rows if row["end"] >= first and row["start"] < last
    ]
    name = rows[0]["short_name"]
    same = [row for row in rows if row["short_name"] == name]
    assert len(kernels.where(short_name=name)) == len(same) > 0
    assert len(kernels.where(short_name=[name, "no such kernel"])) == len(same)
    assert len(kernels.like(name="triton_*")) == sum("triton_" in row["short_name"] for row in rows) > 0
    # Names of C++ have stars: a condition is no pattern.
    assert len(kernels.where(name="triton_*")) == 0
    assert len(kernels.where(stream=rows[0]["stream"]).where(short_name="no such kernel")) == 0
    assert kernels.where(stream=10**9).to_dicts() == []
    # A second range narrows the first.
    assert len(kernels.between(first, None).between(None, last)) == len(between)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda t: t.table("kernel"), "there is no table kernel"),
        (lambda t: t.kernels.select("nam"), "has no column nam; it has start, end"),
        (lambda t: t.kernels.where(nam=1), "has no column nam"),
        (lambda t: t.kernels.where(stream=[object()]), "cannot compare"),
        (lambda t: t.kernels.where(stream=None), "cannot compare"),
        (lambda t: t.kernels.like(nam="a*"), "has no column nam"),
        (lambda t: t.kernels.between("5 parsecs"), "is not a time"),
        (lambda t: t.kernels.between("3s", "2s"), "the time range is empty"),
        (lambda t: t.kernels.between("900s"), "after the end of the trace"),
        (lambda t: t.kernels.between(-5), "is not a time"),
        (lambda t: t.sql("selec 1"), "syntax error"),
        (lambda t: t.sql("select * from nope"), "no such table"),
        (lambda t: t.sql("create table x (y)"), "only read traces"),
        (lambda t: t.sql("select 1", timeout=-1), "not a number of seconds"),
    ],
)
def test_wrong_arguments_are_value_errors(train: tracesmith.Trace, wrong: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        wrong(train)


def test_sql_answers_with_types(train: tracesmith.Trace) -> None:
    rows = train.sql(
        "select short_name, count(*) as n, avg(duration) as mean from kernels group by 1 order by n desc, 1"
    )
    assert rows.columns == ["short_name", "n", "mean"]
    dicts = rows.to_dicts()
    assert sum(row["n"] for row in dicts) == 150
    assert isinstance(dicts[0]["mean"], float) and isinstance(dicts[0]["short_name"], str)
    assert train.sql("select null as x, x'00ff' as b").to_dicts() == [{"x": None, "b": b"\x00\xff"}]
    assert len(train.sql("select 1 where 0")) == 0


def test_sql_takes_values_for_its_parameters(train: tracesmith.Trace) -> None:
    name = train.kernels.to_dicts(["name"])[0]["name"]
    expected = sum(row["name"] == name for row in train.kernels.to_dicts(["name"]))
    count = "select count(*) as n from kernels where name = "
    assert train.sql(f"{count}?", [name]).to_dicts() == [{"n": expected}]
    assert train.sql(f"{count}:name", {"name": name}).to_dicts() == [{"n": expected}]
    assert train.sql(f"{count}@name and name = $name", {"name": name}).to_dicts() == [{"n": expected}]
    assert train.sql(f"{count}?", ("'; drop table kernels; --",)).to_dicts() == [{"n": 0}]
    values = [None, True, 7, -(2**63), 0.5, "ä'", b"\x00\xff"]
    answer = train.sql("select ? as a, ? as b, ? as c, ? as d, ? as e, ? as f, ? as g", values).to_dicts()
    assert list(answer[0].values()) == [None, 1, *values[2:]]
    assert train.sql("select ?1 as a, ?1 as b", [2**64 - 1]).to_dicts() == [{"a": -1, "b": -1}]
    start = train.kernels.to_dicts(["start"])[75]["start"]
    later = train.sql("select count(*) as n from kernels where start >= ?", [start]).to_dicts()
    assert later == train.sql(f"select count(*) as n from kernels where start >= {start}").to_dicts()


@pytest.mark.parametrize(
    ("query", "params", "kind", "message"),
    [
        ("select ?", None, ValueError, r"number 1 of the query has no value; .*pass params"),
        ("select :a", None, ValueError, "'a' of the query has no value; "),
        ("select ?", [float("nan")], ValueError, "pass None for null"),
        ("select ?", [], ValueError, "1 parameters, and 0 values"),
        ("select 1", [1], ValueError, "0 parameters, and 1 values"),
        ("select :a", {}, ValueError, "'a' of the query has no value"),
        ("select :a", {"a": 1, "b": 2}, ValueError, "no parameter 'b'"),
        ("select ?", {"a": 1}, ValueError, "no parameter 'a'"),
        ("select ?, :a", {"a": 1}, ValueError, "number 1 of the query has no value"),
        ("select ?", "a", TypeError, "not str"),
        ("select ?", 7, TypeError, "iterable"),
        ("select ?", [2**64], TypeError, "64 bits"),
        ("select ?", [object()], TypeError, "a parameter is"),
    ],
)
def test_wrong_parameters_are_errors(
    train: tracesmith.Trace, query: str, params: Any, kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        train.sql(query, params)


def test_head_reads_the_first_rows(train: tracesmith.Trace) -> None:
    every = train.kernels.to_dicts()
    for count in (0, 1, 10, 149, 150, 1000):
        assert train.kernels.head(count).to_dicts() == every[:count]
    assert len(train.kernels.head()) == 10
    few = train.kernels.select("name", "duration").like(name="*gemm*").head(2)
    assert few.columns == ["name", "duration"] and len(few) <= 2
    with pytest.raises(ValueError, match="number of rows"):
        train.kernels.head(-1)


def test_head_does_not_read_the_rest(train: tracesmith.Trace, tmp_path: Path) -> None:
    with tracesmith.Session(tmp_path / "many.sbt") as session:
        for number in range(300):
            session.emit_many("counters", {"name": "n", "time": range(1000), "value": float(number)})
            session.flush()
    content = bytearray((tmp_path / "many.sbt").read_bytes())
    # The first blocks are whole. What a reader needs at once is before them, and after the middle.
    for offset in range(len(content) // 4, len(content) // 2):
        content[offset] ^= 0xFF
    (tmp_path / "damaged.sbt").write_bytes(content)
    trace = tracesmith.open(tmp_path / "damaged.sbt")
    before = len(trace.health.damage)
    # A block has 1000 rows.
    for count in (0, 5, 1000):
        assert len(trace.counters.head(count)) == count
        assert len(trace.health.damage) == before
    trace.verify()
    assert len(trace.health.damage) > before


def test_sql_ends_with_its_time(train: tracesmith.Trace) -> None:
    with pytest.raises(tracesmith.TraceError, match="did not end within"):
        train.sql(
            "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n",
            timeout=0.2,
        )
    assert train.sql("select 1 as one").to_dicts() == [{"one": 1}]


def test_dataframe_libraries_take_tables_as_they_are(train: tracesmith.Trace) -> None:
    polars = pytest.importorskip("polars")
    pyarrow = pytest.importorskip("pyarrow")
    pandas = pytest.importorskip("pandas")
    columns = ["name", "start", "duration", "stream"]
    table = train.kernels.select(*columns)
    expected = table.to_dicts()
    assert polars.DataFrame(table).with_columns(polars.col("name").cast(polars.String)).to_dicts() == expected
    assert pyarrow.table(table).to_pylist() == expected
    assert pandas.DataFrame.from_arrow(table).to_dict("records") == expected
    assert (
        table.to_polars().height == table.to_arrow().num_rows == len(table.to_pandas()) == len(table) == 150
    )
    read = table.read()
    # The same rows again, from memory, at the same address: nothing is copied.
    first, second = (pyarrow.table(read).column("start").chunk(0).buffers()[1].address for _ in range(2))
    assert first == second


def test_dictionaries_have_each_text_once_and_no_others(train: tracesmith.Trace) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    pandas = pytest.importorskip("pandas")
    frame = train.kernels.to_pandas()
    assert len(frame) == 150
    assert sorted(frame["short_name"].cat.categories) == sorted({row["short_name"] for row in train.kernels})
    # A stream keeps all texts, because later rows may need them. pandas refuses a text that is there twice.
    streamed = pandas.DataFrame.from_arrow(train.kernels)
    assert list(streamed["short_name"]) == list(frame["short_name"])
    texts = pyarrow.table(train.kernels).column("short_name").chunk(0).dictionary.to_pylist()
    assert len(texts) == len(set(texts))


def test_duckdb_queries_a_table(train: tracesmith.Trace) -> None:
    duckdb = pytest.importorskip("duckdb")
    kernels = train.kernels.select("stream", "duration")
    total = sum(row["duration"] for row in kernels.to_dicts())
    assert duckdb.sql("select count(*), sum(duration) from kernels").fetchall() == [(150, total)]
    assert len(kernels) == 150


def test_numbers_of_numpy_are_values(train: tracesmith.Trace) -> None:
    numpy = pytest.importorskip("numpy")
    kernels = train.kernels
    stream = kernels.to_dicts(["stream"])[0]["stream"]
    expected = len(kernels.where(stream=stream))
    assert expected > 0
    for value in (numpy.int64(stream), numpy.uint8(stream), numpy.float32(stream), numpy.array(stream)):
        assert len(kernels.where(stream=value)) == expected
        assert len(kernels.where(stream=[value, 10**9])) == expected
    assert len(kernels.where(stream=numpy.array([stream, 10**9]))) == expected
    flag = next(name for name, column in kernels.schema.items() if column.type == "bool")
    for value in (True, False):
        of_python = len(kernels.where(**{flag: value}))
        assert len(kernels.where(**{flag: numpy.bool_(value)})) == of_python
    idle = str(train.idle(stream=stream))
    assert str(train.idle(stream=numpy.int64(stream))) == idle
    assert str(train.idle(stream=numpy.array([stream]))) == idle


def test_numpy_arrays_have_the_values(train: tracesmith.Trace) -> None:
    numpy = pytest.importorskip("numpy")
    arrays = train.kernels.to_numpy(["start", "name", "correlation", "graph"])
    dicts = train.kernels.to_dicts(["start", "name", "correlation", "graph"])
    assert arrays["start"].dtype == numpy.int64
    assert arrays["start"].tolist() == [row["start"] for row in dicts]
    assert arrays["name"].tolist() == [row["name"] for row in dicts]
    assert numpy.ma.masked_array(arrays["graph"]).tolist() == [row["graph"] for row in dicts]


def test_rows_outlive_their_trace(fixtures: Path) -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(tracesmith.open(fixtures / "train-h200.sbt").kernels.select("start"))
    gc.collect()
    assert frame.height == 150 and frame["start"].is_sorted()


def test_threads_share_a_trace(train: tracesmith.Trace) -> None:
    expected = train.sql("select sum(duration) as ns from kernels").to_dicts()
    failures: list[object] = []

    def read() -> None:
        for _ in range(20):
            total = sum(row["duration"] for row in train.kernels.to_dicts(["duration"]))
            if (
                train.sql("select sum(duration) as ns from kernels").to_dicts() != expected
                or total != expected[0]["ns"]
            ):
                failures.append(total)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
