"""The mistakes that only Spark finds: each gets the text of the page, by `rivermark check`.

Run as a script it prints the rows of the page's table.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path

import msgspec
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from assets.topology import TOPOLOGY
from rivermark import Daily, Ingest, Output, Rule, Stream, Suite, Table, Topology, expect
from rivermark.model.errors import StreamFailed
from rivermark.model.stream import AnyStream
from rivermark.monitor.checks.row_checks import static_rows_unique
from rivermark.operators import TumblingWindow, per_window
from rivermark.process import Context, KeyedProcess, Millis
from rivermark.process.spark import run_process
from rivermark.runtime.preflight import EmptyInputs, faults_of, faults_without_spark
from rivermark.runtime.spark.session import open_session
from rivermark.runtime.supervision.run import run_bounded
from rivermark.settings import Settings
from rivermark.testing.landing import land
from tests.oracles.cafe import contract, orders, sales, sales_per_quarter, sales_table
from tests.unit.docs.test_mistakes import AT, PAGE, rows_of

QUARTER = timedelta(minutes=15)


class Order(msgspec.Struct, frozen=True):
    order_id: int
    at: Millis


class Forgotten(KeyedProcess[Order, Order]):
    key = "order_id"
    time = "at"
    hold = True

    def on_event(self, event: Order, ctx: Context[Order]) -> None:
        ctx.timers.event.register(event.at + 900_000)

    def on_timer(self, at: Millis, ctx: Context[Order]) -> None: ...


def wrong_column(rows: DataFrame) -> DataFrame:
    revenue = F.sum("totl").cast("decimal(22,2)")
    return per_window(rows, TumblingWindow(QUARTER), "at", "region", sales=revenue)


def no_window(rows: DataFrame) -> DataFrame:
    return rows.groupBy("region").agg(
        F.min("at").alias("window_start"),
        F.max("at").alias("window_end"),
        F.sum("total").cast("decimal(22,2)").alias("sales"),
    )


def other_time(rows: DataFrame) -> DataFrame:
    moved = rows.withColumn("moved", F.col("at") + F.expr("interval 1 hour"))
    total = F.sum("total").cast("decimal(22,2)")
    return per_window(moved, TumblingWindow(QUARTER), "moved", "region", sales=total)


def without_room(rows: DataFrame) -> DataFrame:
    total = F.sum("total").cast("decimal(12,2)").cast("decimal(22,2)")
    return per_window(rows, TumblingWindow(QUARTER), "at", "region", sales=total)


def computed(value: str) -> Callable[[DataFrame], DataFrame]:
    return lambda rows: sales_per_quarter(rows.withColumn("made", F.expr(value)).where("made > 0"))


def forgotten() -> Stream:
    days = Daily("at", date(2026, 11, 1))
    table = Table.of(Order, name="cafe/forgotten", description="Forgotten.", days=days)
    return sales(writes=table, build=run_process(Forgotten))


def with_rule(rule: Rule) -> Ingest:
    return orders(contract=contract(rules=(rule,)))


CHECKED: dict[str, Callable[[], AnyStream]] = {
    "a column in `build`": lambda: sales(build=wrong_column),
    "a column in a rule": lambda: with_rule(Rule("free", "totl <= 0", "flag", "Free.")),
    "a rule that is no condition": lambda: with_rule(Rule("free", "total", "flag", "Free.")),
    "results without a window": lambda: sales(build=no_window),
    "a window over a computed time": lambda: sales(build=other_time),
    "a column that `build` leaves out": lambda: sales(
        build=lambda rows: sales_per_quarter(rows).withColumnRenamed("sales", "sale")
    ),
    "double for decimal": lambda: sales(
        build=lambda rows: sales_per_quarter(rows).withColumn("sales", F.col("sales") * 1.0)
    ),
    "`build` returns nothing": lambda: sales(build=lambda rows: None),
    "a condition of a table": lambda: sales(writes=(Output(sales_table(), lambda: True),)),  # type: ignore[arg-type,return-value]
    "a column in the condition of a table": lambda: sales(
        writes=(Output(sales_table(), lambda: F.col("salse") > 0),)
    ),
    "the day that rows touch": lambda: sales(kind="refresh", touches=lambda: F.col("at")),
    "a timer without `margin`": forgotten,
    "a sum of amounts in their own type": lambda: sales(build=without_room),
    "a text as a number": lambda: sales(build=computed("cast(region AS int)")),
    "a division": lambda: sales(build=computed("total / order_id")),
    "an element of a list": lambda: sales(build=computed("size(array(array(region)[1]))")),
    "the time of computing": lambda: sales(build=computed("unix_timestamp(now())")),
    "rows that are counted in `build`": lambda: sales(
        build=lambda rows: sales_per_quarter(rows.limit(rows.count()))
    ),
    "rows that are taken out of Spark in `build`": lambda: sales(
        build=lambda rows: sales_per_quarter(rows).where(F.lit(len(rows.collect()) > 0))
    ),
    "the first rows": lambda: sales(build=lambda rows: sales_per_quarter(rows.limit(5))),
    "a column in a suite's SQL": lambda: sales(
        suite=Suite(expectations=(expect.no_rows_where("sale < 0", name="no refunds"),))
    ),
    "a text beside a number": lambda: sales(
        suite=Suite(expectations=(expect.no_rows_where("region > 5", name="low regions"),))
    ),
}


def sentences(stream: AnyStream, inputs: EmptyInputs) -> str:
    faults = (*faults_without_spark(stream), *faults_of(stream, inputs))
    return " ".join(AT.sub("", str(fault)) for fault in faults)


def left_out() -> str:
    """The text of a lookup whose ingest was forgotten in the topology."""
    stores = orders(name="cafe/stores", kind="lookup", keys=("order_id",), lateness=None)
    joined = sales(static=(stores,), build=lambda rows, stores: rows)
    (fault,) = Topology([orders(), joined]).left_out()
    return AT.sub("", str(fault))


def test_a_mistake_that_spark_finds_gets_the_text_of_the_page(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    inputs = EmptyInputs(spark, tmp_path)
    texts = {mistake: sentences(make(), inputs) for mistake, make in CHECKED.items()}
    texts["a lookup that is in no topology"] = left_out()

    assert texts == rows_of(PAGE.read_text(), "By `rivermark check`")
    assert sentences(orders(), inputs) == sentences(sales(), inputs) == ""
    assert capfd.readouterr() == ("", "")


def test_a_fault_names_the_line_of_the_code(spark: SparkSession, tmp_path: Path) -> None:
    [fault] = faults_of(CHECKED["a column in `build`"](), EmptyInputs(spark, tmp_path))
    [rule] = faults_without_spark(CHECKED["a column in a rule"]())

    lines = Path(__file__).read_text().splitlines()
    for error, code in (
        (fault, 'per_window(rows, TumblingWindow(QUARTER), "at", "region", sales=revenue)'),
        (rule, '"totl <= 0"'),
    ):
        file, line = error.place.rsplit(", line ", 1)
        assert (Path(file).name, code in lines[int(line) - 1]) == (Path(__file__).name, True)


def test_a_join_of_a_stream_with_itself_is_checked_like_one_of_two(
    spark: SparkSession, tmp_path: Path
) -> None:
    def beside_earlier(rows: DataFrame) -> DataFrame:
        moved = F.col("at") + F.expr("INTERVAL 1 HOUR")
        earlier = rows.select(F.col("order_id").alias("other"), moved.alias("later"))
        near = F.col("at").between(F.col("later"), F.col("later") + F.expr("INTERVAL 1 HOUR"))
        return sales_per_quarter(rows.join(earlier, (F.col("order_id") == F.col("other")) & near))

    [fault] = faults_of(sales(build=beside_earlier), EmptyInputs(spark, tmp_path))

    assert "the right side of its INNER join has lost its watermark" in str(fault)


@pytest.mark.long  # `make test` begins with `make check`, which finds the same.
def test_the_streams_of_this_deployment_have_no_fault(spark: SparkSession, tmp_path: Path) -> None:
    inputs = EmptyInputs(spark, tmp_path)
    faults = [
        str(fault)
        for stream in TOPOLOGY.streams
        for fault in (*faults_without_spark(stream), *faults_of(stream, inputs))
    ]
    assert faults == []


def test_a_run_says_the_same_and_what_is_wrong_with_each_line(
    spark: SparkSession, settings: Settings
) -> None:
    folder = Path(settings.landing_root) / "cafe" / "orders"
    order = '{"order_id": 1, "at": "2026-11-20T10:00:00Z", "region": "N", "total": 1}'
    land(folder / "good.json", [order])
    land(folder / "array.json", [f"[{order},", f"{order},", f"{order}]"])
    land(folder / "pretty.json", ["{", '  "order_id": 1,', '  "region": "N"', "}"])
    land(folder / "values.json", ["order_id,at,region,total", "1,2026-11-20T10:00:00Z,N,1"])
    land(folder / "broken.json", [order[:-1] + ", }"])
    land(folder / "millis.json", [order.replace('"2026-11-20T10:00:00Z"', "1795500600000")])
    land(folder / "comma.json", [order.replace('"total": 1', '"total": "5,50"')])
    wrong = CHECKED["a column in `build`"]()
    cafe = Topology([orders(), wrong])

    with pytest.raises(StreamFailed) as caught:
        run_bounded(spark, settings, cafe, cafe.streams, run_id="cafe")

    page = PAGE.read_text()
    assert AT.sub("", str(caught.value)) == rows_of(page, "In a run")["a column in `build`"]
    table = spark.read.format("delta").load(settings.lake().path("cafe/orders_quarantine"))
    details = {(r["_file"], r["_row"]): r["details"] for r in table.collect()}
    shown = rows_of(page, "In a run")
    for mistake, file, rows in (
        ("a JSON array", "array.json", (1, 2)),
        ("JSON over several lines", "pretty.json", (1, 2, 3, 4)),
        ("CSV for JSON", "values.json", (1, 2)),
        ("broken JSON", "broken.json", (1,)),
        ("milliseconds since 1970 for a timestamp (`unreadable_at`)", "millis.json", (1,)),
        ("a decimal comma (`unreadable_total`)", "comma.json", (1,)),
    ):
        assert {details[file, row] for row in rows} == {shown[mistake]}
    assert len(details) == 12
    stores = orders(name="cafe/stores", kind="lookup", keys=("order_id",), lateness=None)
    joined = sales(static=(stores,), build=lambda rows, stores: rows)
    never_ran = "a lookup whose ingest never ran (`joined_tables_have_one_row_a_key`)"
    assert static_rows_unique(settings, joined).observed == shown[never_ran]


if __name__ == "__main__":
    settings = Settings(home=Path(tempfile.mkdtemp()))
    session = open_session(settings)
    for mistake, make in CHECKED.items():
        text = sentences(make(), EmptyInputs(session, settings.home))
        sys.stdout.write(f"| {mistake} | {text} |\n")
    sys.stdout.write(f"| a lookup that is in no topology | {left_out()} |\n")
