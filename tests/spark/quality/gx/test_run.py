"""Suites run on real sessions: what passes, what does not, and what is never said of data."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rivermark.model import expectations as expect
from rivermark.model.check import CheckResult
from rivermark.model.rule import Expectation
from rivermark.model.suite import Suite
from rivermark.quality.errors import SuiteDoesNotFit
from rivermark.quality.gx.evaluator import SparkEvaluator
from rivermark.quality.result import SuiteResult

pytestmark = pytest.mark.spark

FEBRUARY = Path(__file__).parents[3] / "data/tlc/yellow_tripdata_2025-02_sample5000.parquet"
NOON = datetime(2019, 3, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("quality")


def evaluated(
    df: DataFrame, *expectations: Expectation, root: Path, may_be_empty: bool = False, **how: Any
) -> SuiteResult:
    suite = Suite("test/rows", expectations, may_be_empty=may_be_empty)
    how = {"docs": False, **how}
    return SparkEvaluator(frame=df, table="test/rows", version=3, docs_root=root, **how).evaluate(
        suite
    )


def answer(result: SuiteResult, name: str) -> CheckResult:
    return next(r for r in result.results if r.name == name)


@contextmanager
def zone(spark: SparkSession, name: str) -> Iterator[None]:
    before = str(spark.conf.get("spark.sql.session.timeZone"))
    spark.conf.set("spark.sql.session.timeZone", name)
    try:
        yield
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def test_b078_an_empty_table_is_looked_at_and_does_not_pass(
    spark: SparkSession, pages: Path
) -> None:
    third_of_march = spark.createDataFrame([], "tips decimal(12,2), driver long")

    result = evaluated(
        third_of_march,
        expect.between("tips", 0, 100),
        expect.unique("driver"),
        expect.no_rows_where("tips < 0", name="no negative tips"),
        root=pages,
    )

    assert not result.passed
    assert result.severity == "critical"
    assert result.rows == 0
    assert answer(result, "there are rows").observed == "0 rows"
    of_rows = [r for r in result.results if r.name != "there are rows"]
    assert {r.observed for r in of_rows} == {"0 rows evaluated"}
    assert not any(r.passed for r in of_rows)


def test_b078_the_page_of_an_empty_table_shows_no_rule_as_fulfilled(
    spark: SparkSession, pages: Path
) -> None:
    empty = spark.createDataFrame([], "tips double")

    result = evaluated(empty, expect.between("tips", 0, 100), root=pages, docs=True)

    assert result.docs_path is not None
    page = result.docs_path.read_text()
    assert "https:" not in page, "it opens without a network"
    assert "<script" not in page
    assert "there are rows" in page
    assert "tips lies" not in page


def test_a_table_that_may_be_empty_passes_with_the_number_of_rows_said(
    spark: SparkSession, pages: Path
) -> None:
    empty = spark.createDataFrame([], "tips double")

    result = evaluated(empty, expect.between("tips", 0, 100), root=pages, may_be_empty=True)

    assert result.passed
    assert answer(result, "rows are counted").observed == "0 rows"
    assert answer(result, "tips lies from 0 to 100").observed == "0 rows evaluated"


@pytest.mark.long
def test_b079_empty_values_of_real_trips_are_counted_and_bounded_apart(
    spark: SparkSession, pages: Path
) -> None:
    trips = spark.read.parquet(str(FEBRUARY))

    result = evaluated(trips, expect.between("passenger_count", 1, 6), root=pages)
    lenient = evaluated(
        trips,
        expect.between("passenger_count", 1, 6, mostly=0.99, allow_null_share=0.225),
        root=pages,
    )

    assert result.rows == 5000
    given = answer(result, "passenger_count is given")
    assert (given.evaluated_count, given.unexpected_count, given.passed) == (5000, 1125, False)
    assert "22.5 %" in given.observed
    inside = answer(result, "passenger_count lies from 1 to 6")
    assert (inside.evaluated_count, inside.unexpected_count, inside.passed) == (3875, 24, False)
    assert "3,851 do" in inside.observed
    assert set(inside.example_texts) == {"0.0"}
    assert lenient.passed


def test_b079_a_column_without_any_value_does_not_pass_a_range(
    spark: SparkSession, pages: Path
) -> None:
    fees = spark.range(4).select(F.lit(None).cast("double").alias("ehail_fee"))

    result = evaluated(fees, expect.between("ehail_fee", 0, 5), root=pages)

    assert not result.passed
    assert answer(result, "ehail_fee lies from 0 to 5").observed == "0 values evaluated"
    assert answer(result, "ehail_fee is given").unexpected_count == 4


@pytest.fixture(params=[pytest.param("UTC", marks=pytest.mark.long), "America/New_York"])
def process_zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("process_zone")
@pytest.mark.parametrize(
    "session_zone", [pytest.param("UTC", marks=pytest.mark.long), "Asia/Kathmandu"]
)
def test_b081_limits_of_time_find_the_same_row_in_every_zone(
    spark: SparkSession, pages: Path, session_zone: str
) -> None:
    stray = datetime(2019, 4, 12, 22, 20, 7, tzinfo=UTC)
    at_the_edges = [datetime(2019, 3, 1, tzinfo=UTC), datetime(2019, 3, 31, 23, 59, 59, tzinfo=UTC)]
    march = expect.between(
        "pickup", "2019-03-01 00:00:00", datetime(2019, 4, 1, tzinfo=UTC), high_excluded=True
    )
    with zone(spark, session_zone):
        pickups = spark.createDataFrame([(t,) for t in (*at_the_edges, stray)], "pickup timestamp")

        result = evaluated(pickups, march, root=pages)

    assert len(result.failures) == 1
    found = result.failures[0]
    assert (found.unexpected_count, found.evaluated_count) == (1, 3)
    assert found.example_texts == ("2019-04-12 22:20:07 UTC",)


def test_b081_a_range_of_times_on_text_is_refused(spark: SparkSession, pages: Path) -> None:
    pickups = spark.createDataFrame([("2019-03-01 00:00:00",)], "pickup string")

    result = evaluated(pickups, expect.between("pickup", "2019-03-01", "2019-04-01"), root=pages)

    errors = [r.error for r in result.failures]
    assert len(errors) == 1
    assert "string has no order with" in str(errors[0])


@pytest.mark.long
def test_days_are_compared_as_days(spark: SparkSession, pages: Path) -> None:
    days = spark.createDataFrame([(date(2019, 3, d),) for d in (1, 2, 3)], "day date")

    with zone(spark, "America/New_York"):
        result = evaluated(days, expect.between("day", "2019-03-02", "2019-03-02"), root=pages)

    assert not result.passed
    assert result.failures[0].example_texts == ("2019-03-01", "2019-03-03")


@pytest.mark.long
def test_b088_the_jump_of_trips_without_passengers_is_shown_with_its_share(
    spark: SparkSession, pages: Path
) -> None:
    january = spark.range(7500).select(F.lit(1).alias("passengers"))
    february = spark.range(8500).select((F.col("id") >= 1339).cast("int").alias("passengers"))
    rule = expect.between("passengers", 1, 6, mostly=0.99, severity="warning")

    before, after = (evaluated(month, rule, root=pages) for month in (january, february))

    assert before.passed
    assert after.severity == "warning"
    drift = answer(after, "passengers lies from 1 to 6")
    assert drift.observed == "1,339 of 8,500 do not (15.8 %), 7,161 do"
    assert drift.bound == "at least 99 %"


@pytest.mark.long
def test_money_and_not_a_number_are_judged_as_numbers(spark: SparkSession, pages: Path) -> None:
    rows = spark.createDataFrame(
        [(Decimal("0.10"), 1.0), (Decimal("0.09"), float("nan"))], "tip decimal(12,2), miles double"
    )

    result = evaluated(
        rows, expect.between("tip", Decimal("0.10")), expect.between("miles", 0), root=pages
    )

    assert answer(result, "tip is at least 0.10").example_texts == ("0.09",)
    assert answer(result, "miles is at least 0").example_texts == ("nan",)


# Short: each expectation in test_evaluators_agree.py.
@pytest.mark.long
def test_every_kind_of_rule_finds_what_breaks_it(spark: SparkSession, pages: Path) -> None:
    rows = spark.createDataFrame(
        [
            (1, "B09", "card", NOON, NOON + timedelta(hours=1)),
            (1, "B09", "cash", NOON, NOON),
            (2, "B09\n", "gold", NOON, NOON - timedelta(hours=1)),
            (None, "xB09", None, None, NOON),
        ],
        "driver long, base string, paid string, window_start timestamp, window_end timestamp",
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
        root=pages,
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


def test_b080_a_rule_that_cannot_be_evaluated_has_failed_beside_the_others(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = spark.createDataFrame([(0,), (2,)], "n int")

    result = evaluated(
        rows,
        expect.no_rows_from("SELECT n FROM {batch} WHERE CAST('x' AS DOUBLE) > n", name="half"),
        expect.no_rows_from("SELECT nowhere FROM {batch}", name="query"),
        expect.not_null("tips"),
        expect.between("n", 0, 1),
        expect.not_null("n"),
        root=tmp_path,
        docs=True,
    )

    answers = {r.name: r for r in result.results}
    errors = {name: str(r.error) for name, r in answers.items() if r.error is not None}
    assert errors.keys() == {"half", "query", "tips is given"}
    assert "CAST_INVALID_INPUT" in errors["half"]
    assert "nowhere" in errors["query"]
    assert "has no column tips; it has n" in errors["tips is given"]
    assert answers["n lies from 0 to 1"].observed == "1 of 2 do not (50 %), 1 do"
    assert answers["n lies from 0 to 1"].example_texts == ("2",)
    assert answers["n is given"].passed
    assert (result.passed, result.severity, result.rows) == (False, "critical", 2)
    written = "".join(p.read_text(errors="replace") for p in tmp_path.rglob("*.html"))
    assert all(message in written for message in ("CAST_INVALID_INPUT", "has no column tips"))


def test_b080_a_rule_without_an_answer_stays_so_where_there_are_no_rows(
    spark: SparkSession, pages: Path
) -> None:
    result = evaluated(spark.range(0).toDF("id"), expect.not_null("tips"), root=pages)

    answers = {r.name: r for r in result.results}
    assert "has no column tips; it has id" in str(answers["tips is given"].error)
    assert answers["there are rows"].observed == "0 rows"


def test_values_of_personal_columns_reach_neither_samples_nor_pages_nor_errors(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = spark.createDataFrame(
        [("M00001-secret", 5, "x<script>alert(1)</script>"), ("M00001-secret", 7, "y")],
        "medallion string, seats int, note string",
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
        docs=True,
    )
    crash = evaluated(
        rows,
        expect.no_rows_from(
            "SELECT seats FROM {batch} WHERE CAST(medallion AS DOUBLE) > 1", name="cast"
        ),
        root=tmp_path,
        personal=("medallion",),
        docs=True,
    )

    written = [p.read_text(errors="replace") for p in tmp_path.rglob("*") if p.is_file()]
    assert len(result.failures) == 6
    assert "M00001-secret" not in str(result)
    assert not any("M00001-secret" in text for text in written)
    assert "M00001-secret" not in str(crash)
    assert "CAST_INVALID_INPUT" in str(answer(crash, "cast").error)
    # Open columns do show what is wrong, as text and never as markup.
    assert answer(result, "seats lies from 1 to 4").example_texts == ("5", "7")
    assert not any("<script>alert(1)" in text for text in written if "seats" in text)
    assert any("x&lt;script&gt;alert(1)" in text for text in written)


def test_the_session_is_left_as_it_was(spark: SparkSession, pages: Path) -> None:
    configured = spark.conf.getAll
    # Delta keeps the state of tables that other tests read.
    cached = set(spark.sparkContext._jsc.getPersistentRDDs())
    spark.range(1).selectExpr("'mine' AS whose").createOrReplaceTempView("tmp_view")
    rows = spark.range(10).toDF("id")

    evaluated(
        rows,
        expect.unique("id"),
        expect.between("id", 1, 5),
        expect.no_rows_from("SELECT * FROM {batch} WHERE id > 100", name="none"),
        root=pages,
        docs=True,
    )

    assert spark.conf.getAll == configured
    assert set(spark.sparkContext._jsc.getPersistentRDDs()) <= cached
    assert not rows.is_cached
    assert SparkSession.getActiveSession() is spark
    assert [row.whose for row in spark.table("tmp_view").collect()] == ["mine"]
    spark.catalog.dropTempView("tmp_view")
    evaluated(
        rows, expect.no_rows_from("SELECT * FROM {batch} WHERE id > 100", name="none"), root=pages
    )
    assert not spark.catalog.tableExists("tmp_view")


def test_rows_of_another_session_are_judged_there(spark: SparkSession, pages: Path) -> None:
    other = spark.newSession()
    other.conf.set("spark.sql.session.timeZone", "Asia/Kathmandu")

    result = evaluated(
        other.range(3).toDF("id"),
        expect.no_rows_from("SELECT * FROM {batch} WHERE id = 2", name="no two"),
        root=pages,
    )

    assert answer(result, "no two").unexpected_count == 1
    assert other.conf.get("spark.sql.session.timeZone") == "Asia/Kathmandu"


def test_only_the_last_runs_of_a_suite_are_kept(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.range(3).toDF("id")
    another = Suite("test/other", (expect.not_null("id"),))
    first = SparkEvaluator(frame=rows, table="test/other", version=1, docs_root=tmp_path).evaluate(
        another
    )

    runs = [
        evaluated(rows, expect.unique("id"), root=tmp_path, docs=True, keep=2).docs_path
        for _ in range(4)
    ]

    assert [p is not None and p.exists() for p in runs] == [False, False, True, True]
    assert first.docs_path is not None
    assert first.docs_path.exists()
    assert len(list((tmp_path / "results").rglob("*.json"))) == 3
    assert not [d for d in tmp_path.rglob("*") if d.is_dir() and not any(d.iterdir())]
    assert "version-3" in (tmp_path / "pages" / "index.html").read_text()


def test_two_suites_at_once_do_not_mix(spark: SparkSession, tmp_path: Path) -> None:
    counts: dict[int, SuiteResult] = {}

    def check(rows: int) -> None:
        suite = Suite(f"test/of_{rows}", (expect.between("id", 0, rows - 2),))
        evaluator = SparkEvaluator(
            frame=spark.range(rows).toDF("id"),
            table=f"test/of_{rows}",
            version=rows,
            docs_root=tmp_path,
        )
        counts[rows] = evaluator.evaluate(suite)

    threads = [threading.Thread(target=check, args=(n,)) for n in (10, 20, 30, 40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert {n: (r.rows, r.failures[0].example_texts) for n, r in counts.items()} == {
        n: (n, (str(n - 1),)) for n in (10, 20, 30, 40)
    }
    assert len({r.docs_path for r in counts.values()}) == 4


def test_a_stream_is_not_judged(spark: SparkSession, pages: Path) -> None:
    rates = spark.readStream.format("rate").load()

    with pytest.raises(SuiteDoesNotFit, match="not on a stream"):
        evaluated(rates, expect.not_null("value"), root=pages)
