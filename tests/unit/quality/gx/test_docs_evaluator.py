"""Suites with their pages: what passes, what does not, and what is never said of data."""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, NoReturn

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_schema

from rivermark.model import expectations as expect
from rivermark.model.check import CheckResult
from rivermark.model.rule import Expectation
from rivermark.model.suite import Suite
from rivermark.model.table import Table
from rivermark.quality.gx.evaluator import DocsEvaluator
from rivermark.quality.result import SuiteResult

NOON: Final = datetime(2019, 3, 1, 12, tzinfo=UTC)
INSTANT: Final = pa.timestamp("us", "UTC")
SCRIPT: Final = "x<script>alert(1)</script>"


def no_spark() -> NoReturn:
    raise AssertionError("no rule here is evaluated by Spark")


def evaluated(
    rows: pa.Table,
    *expectations: Expectation,
    root: Path,
    may_be_empty: bool = False,
    personal: tuple[str, ...] = (),
    **how: Any,
) -> SuiteResult:
    suite = Suite("test/rows", expectations, may_be_empty=may_be_empty)
    table = Table(
        name="test/rows",
        schema=from_arrow_schema(rows.schema),
        description="Rows.",
        personal=personal,
    )
    evaluator = DocsEvaluator(
        rows=rows, table=table, version=3, docs_root=root, frame=no_spark, **how
    )
    return evaluator.evaluate(suite)


def answer(result: SuiteResult, name: str) -> CheckResult:
    return next(r for r in result.results if r.name == name)


def written(root: Path) -> list[str]:
    """The results and pages that lie below a folder."""
    return [p.read_text(errors="replace") for p in root.rglob("*") if p.is_file()]


def test_b078_an_empty_table_is_looked_at_and_no_rule_is_shown_as_fulfilled(tmp_path: Path) -> None:
    empty = pa.schema([("tips", pa.decimal128(12, 2)), ("driver", pa.int64())]).empty_table()

    result = evaluated(
        empty,
        expect.between("tips", 0, 100),
        expect.unique("driver"),
        expect.no_rows_where("tips < 0", name="no negative tips"),
        root=tmp_path,
    )

    assert (result.passed, result.severity, result.rows) == (False, "critical", 0)
    assert answer(result, "there are rows").observed == "0 rows"
    of_rows = [r for r in result.results if r.name != "there are rows"]
    assert {(r.observed, r.passed) for r in of_rows} == {("0 rows evaluated", False)}
    assert result.docs_path is not None
    page = result.docs_path.read_text()
    assert "https:" not in page, "it opens without a network"
    assert "<script" not in page
    assert "there are rows" in page
    assert "tips lies" not in page


def test_a_table_that_may_be_empty_passes_with_the_number_of_rows_said(tmp_path: Path) -> None:
    empty = pa.table({"tips": pa.array([], pa.float64())})

    result = evaluated(empty, expect.between("tips", 0, 100), root=tmp_path, may_be_empty=True)

    assert result.passed
    assert answer(result, "rows are counted").observed == "0 rows"
    assert answer(result, "tips lies from 0 to 100").observed == "0 rows evaluated"


def test_b079_a_column_without_any_value_does_not_pass_a_range(tmp_path: Path) -> None:
    fees = pa.table({"ehail_fee": pa.nulls(4, pa.float64())})

    result = evaluated(fees, expect.between("ehail_fee", 0, 5), root=tmp_path)

    assert not result.passed
    assert answer(result, "ehail_fee lies from 0 to 5").observed == "0 values evaluated"
    assert answer(result, "ehail_fee is given").unexpected_count == 4


def test_every_kind_of_rule_finds_what_breaks_it(tmp_path: Path) -> None:
    hour = timedelta(hours=1)
    rows = pa.table(
        {
            "driver": pa.array([1, 1, 2, None], pa.int64()),
            "base": ["B09", "B09", "B09\n", "xB09"],
            "paid": ["card", "cash", "gold", None],
            "window_start": pa.array([NOON, NOON, NOON, None], INSTANT),
            "window_end": pa.array([NOON + hour, NOON, NOON - hour, NOON], INSTANT),
        }
    )

    result = evaluated(
        rows,
        expect.columns_match("driver", "base", "paid", "window_start", "closed"),
        expect.row_count_between(10, 20),
        expect.unique(("driver", "base"), severity="warning"),
        expect.matches_regex("base", r"B\d\d"),
        expect.in_set("paid", ["card", "cash"]),
        expect.pair_ordered("window_start", "window_end"),
        expect.no_rows_where("paid = 'gold'", name="no gold"),
        expect.no_rows_from(
            "SELECT driver FROM {batch} GROUP BY driver HAVING count(*) > 1", name="one ride each"
        ),
        root=tmp_path,
    )

    found = {r.name: (r.observed, r.example_texts) for r in result.failures}
    assert found == {
        "the columns are as declared": ("missing: closed; unexpected: window_end", ()),
        "the number of rows is as expected": ("4 rows", ()),
        "driver + base occur once": (
            "2 of 3 repeated (66.7 %)",
            ("driver=1, base=B09", "driver=1, base=B09"),
        ),
        "driver is given": ("1 of 4 empty (25 %)", ()),
        "base looks like B\\d\\d": ("2 of 4 do not (50 %), 2 do", ("B09\n", "xB09")),
        "paid is one of card, cash": ("1 of 3 do not (33.3 %), 2 do", ("gold",)),
        "paid is given": ("1 of 4 empty (25 %)", ()),
        "window_start is not after window_end": (
            "1 of 3 do not (33.3 %), 2 do",
            ("window_start=2019-03-01 12:00:00 UTC, window_end=2019-03-01 11:00:00 UTC",),
        ),
        "window_start is given": ("1 of 4 empty (25 %)", ()),
        # The fourth row, whose payment is not known, may be gold too.
        "no gold": ("2 rows", found["no gold"][1]),
        "one ride each": ("1 row", ()),
    }
    assert "paid=gold" in str(found["no gold"][1])
    [stored] = [json.loads(p.read_text()) for p in (tmp_path / "results").rglob("*.json")]
    assert {r["expectation_config"]["meta"]["rule"]: r["success"] for r in stored["results"]} == {
        r.name: r.passed for r in result.results
    }


def test_b080_a_rule_that_cannot_be_evaluated_has_failed_beside_the_others(tmp_path: Path) -> None:
    result = evaluated(
        pa.table({"n": pa.array([0, 2], pa.int32())}),
        expect.no_rows_from("SELECT n FROM {batch} WHERE CAST('x' AS DOUBLE) > n", name="half"),
        expect.no_rows_from("SELECT nowhere FROM {batch}", name="query"),
        expect.not_null("tips"),
        expect.between("n", 0, 1),
        expect.not_null("n"),
        root=tmp_path,
    )

    answers = {r.name: r for r in result.results}
    errors = {name: str(r.error) for name, r in answers.items() if r.error is not None}
    assert errors.keys() == {"half", "query", "tips is given"}
    assert "Could not convert string" in errors["half"]
    assert "nowhere" in errors["query"]
    assert "has no column tips; it has n" in errors["tips is given"]
    assert answers["n lies from 0 to 1"].observed == "1 of 2 do not (50 %), 1 do"
    assert answers["n lies from 0 to 1"].example_texts == ("2",)
    assert answers["n is given"].passed
    assert (result.passed, result.severity, result.rows) == (False, "critical", 2)
    pages = "".join(written(tmp_path / "pages"))
    assert all(message in pages for message in ("Could not convert", "has no column tips"))


def test_values_of_personal_columns_reach_neither_samples_nor_pages_nor_errors(
    tmp_path: Path,
) -> None:
    rows = pa.table(
        {
            "medallion": ["M00001-secret", "M00001-secret"],
            "seats": pa.array([5, 7], pa.int32()),
            "note": [SCRIPT, "y"],
        }
    )

    result = evaluated(
        rows,
        expect.unique("medallion"),
        expect.matches_regex("medallion", r"H\d+"),
        expect.unique(("medallion", "seats")),
        expect.no_rows_where("medallion LIKE 'M%'", name="no medallions"),
        expect.no_rows_from("SELECT * FROM {batch} WHERE seats > 4", name="no buses"),
        expect.between("seats", 1, 4),
        expect.in_set("note", ["z"]),
        root=tmp_path,
        personal=("medallion",),
    )
    crash = evaluated(
        rows,
        expect.no_rows_from(
            "SELECT seats FROM {batch} WHERE CAST(medallion AS DOUBLE) > 1", name="cast"
        ),
        root=tmp_path,
        personal=("medallion",),
    )

    assert len(result.failures) == 6
    assert "M00001-secret" not in str(result)
    assert not any("M00001-secret" in text for text in written(tmp_path))
    assert "M00001-secret" not in str(crash)
    assert "ConversionException" in str(answer(crash, "cast").error)
    # Open columns do show what is wrong.
    assert answer(result, "seats lies from 1 to 4").example_texts == ("5", "7")


def test_m037_what_the_data_say_stands_on_a_page_as_text(tmp_path: Path) -> None:
    rows = pa.table({"note": [SCRIPT, "y"], "<b>bold</b>": [1, 2]})

    result = evaluated(
        rows,
        expect.in_set("note", ["z"]),
        expect.columns_match("note"),
        expect.no_rows_where(f"note = '{SCRIPT}'", name="<i>no script</i>"),
        root=tmp_path,
    )

    assert len(result.failures) == 3
    assert result.docs_path is not None
    page = result.docs_path.read_text()
    assert "x&lt;script&gt;alert(1)" in page
    assert not any(markup in page for markup in ("<script", "<b>bold", "<i>no script"))


def test_only_the_last_runs_of_a_suite_are_kept(tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2, 3]})
    table = Table(name="test/other", schema=from_arrow_schema(rows.schema), description="Others.")
    another = Suite("test/other", (expect.not_null("id"),))
    first = DocsEvaluator(
        rows=rows, table=table, version=1, docs_root=tmp_path, frame=no_spark
    ).evaluate(another)

    runs = [evaluated(rows, expect.unique("id"), root=tmp_path, keep=2).docs_path for _ in range(4)]

    assert [p is not None and p.exists() for p in runs] == [False, False, True, True]
    assert first.docs_path is not None
    assert first.docs_path.exists()
    assert len(list((tmp_path / "results").rglob("*.json"))) == 3
    assert not [d for d in tmp_path.rglob("*") if d.is_dir() and not any(d.iterdir())]
    assert "version-3" in (tmp_path / "pages" / "index.html").read_text()


def test_two_suites_at_once_do_not_mix(tmp_path: Path) -> None:
    counts: dict[int, SuiteResult] = {}

    def check(count: int) -> None:
        name = f"test/of_{count}"
        rows = pa.table({"id": pa.array(range(count), pa.int64())})
        table = Table(name=name, schema=from_arrow_schema(rows.schema), description="Numbers.")
        suite = Suite(name, (expect.between("id", 0, count - 2),))
        evaluator = DocsEvaluator(
            rows=rows, table=table, version=count, docs_root=tmp_path, frame=no_spark
        )
        counts[count] = evaluator.evaluate(suite)

    threads = [threading.Thread(target=check, args=(n,)) for n in (10, 20, 30, 40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert {n: (r.rows, r.failures[0].example_texts) for n, r in counts.items()} == {
        n: (n, (str(n - 1),)) for n in (10, 20, 30, 40)
    }
    assert len({r.docs_path for r in counts.values()}) == 4


@pytest.mark.parametrize("text", ["2019-03-01 00:00:00", ""])
def test_b081_a_range_of_times_on_text_is_refused(text: str, tmp_path: Path) -> None:
    result = evaluated(
        pa.table({"pickup": [text]}),
        expect.between("pickup", "2019-03-01", "2019-04-01"),
        root=tmp_path,
        docs=False,
    )

    [error] = [r.error for r in result.failures]
    assert "string has no order with" in str(error)
