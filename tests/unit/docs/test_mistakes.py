"""The page of mistakes: each one, made as a person would, gets the text that the page says.

Run as a script it prints the rows of the two tables that need no Spark:

    python -m tests.unit.docs.test_mistakes
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest
from pyspark.sql.classic.column import Column
from pyspark.sql.types import LongType
from typer.testing import CliRunner

from rivermark import (
    Contract,
    Daily,
    Domain,
    Field,
    Output,
    Rule,
    Stream,
    Suite,
    Table,
    Topology,
    expect,
)
from rivermark.backfill.as_of import parse_day
from rivermark.cli import deployment
from rivermark.cli.deployment import settings_for
from rivermark.cli.main import app
from rivermark.cli.session import check_java
from rivermark.lake.lake import Lake
from rivermark.model.errors import RivermarkError
from rivermark.operators import TumblingWindow
from rivermark.process import Context, KeyedProcess
from rivermark.process.windows.assigners import Counting, Tumbling
from rivermark.restart import NoRestart
from rivermark.runtime.query import recompute
from rivermark.runtime.query.recompute import check_closed
from rivermark.runtime.spark.jvm import jar_set
from rivermark.sinks import DeltaUpsert, FileSink
from rivermark.sources import FileSource, KafkaSource, PostgresSource
from tests.oracles.cafe import contract, orders, sales, sales_table
from tests.unit.cli.conftest import Entry

PAGE = Path(__file__).parents[3] / "docs" / "operations" / "mistakes.md"
AT = re.compile(r" \([^()]+, line \d+( and [^()]+, line \d+)?\)")
"""The place at the end of a text: another one on each machine."""
AHEAD = timedelta(minutes=5)


class Order(msgspec.Struct, frozen=True):
    order_id: int
    at: int


class SlowOrders(KeyedProcess[Order, Order]):
    key = "order_id"
    time = "at"

    def on_event(self, event: Order, ctx: Context[Order]) -> None: ...


def second(name: str = "cafe/others", **more: object) -> Stream:
    """Another stream of the cafe, which writes another table."""
    return sales(writes=sales_table(name=name), **more)


def rule(without: str = "", **more: object) -> Rule:
    declared: dict[str, Any] = {
        "name": "free",
        "broken": "total <= 0",
        "action": "flag",
        "description": "Given away.",
    }
    declared |= more
    declared.pop(without, None)
    return Rule(**declared)


def circle() -> None:
    first, other = sales_table(name="cafe/first"), sales_table(name="cafe/other")
    a = sales(writes=first, reads=(other,), lateness=AHEAD)
    Topology([a, sales(writes=other, reads=(first,), lateness=AHEAD)])


def lookup_read_by_stream() -> None:
    stores = orders(kind="lookup", keys=("order_id",), lateness=None)
    sales(reads=(stores,))


@dataclass
class Sale:
    region: str


DECLARED: dict[str, Callable[[], object]] = {
    "`event_time` left out": lambda: orders(contract=Contract(fields=contract().fields)),
    "`event_time` names no field": lambda: contract(event_time="att"),
    "a type that is none": lambda: Field("total", "decimal(12.2)"),
    "a type's class": lambda: Field("order_id", LongType),  # type: ignore[arg-type]
    "two streams of one name": lambda: Topology([orders(), second("cafe/orders")]),
    "two streams that write one table": lambda: Topology(
        [second(name="cafe/one"), second_writer()]
    ),
    "`build` as text": lambda: sales(build="sales_per_quarter"),
    "a `build` that takes one input too few": lambda: sales(static=(sales_table(),)),
    "`build` is a process class": lambda: sales(build=SlowOrders),
    "`build` is a process": lambda: sales(build=SlowOrders()),
    "`lateness` too small": lambda: sales(lateness=timedelta(seconds=1)),
    "`lateness=0`": lambda: orders(lateness=timedelta(0)),
    "`lateness` in seconds": lambda: orders(lateness=300),
    "`lateness` as text": lambda: orders(lateness="5 minutes"),
    "`margin` as a number": lambda: sales(margin=15),
    "streams that read in a circle": circle,
    "`reads` without a comma": lambda: sales(reads=(orders())),
    "`reads` a name": lambda: sales(reads=("cafe/orders",)),
    "a lookup in `reads`": lookup_read_by_stream,
    "a dump in `reads`": lambda: sales(reads=(orders(lateness=None),)),
    "a rule's action": lambda: rule(action="drop"),
    "a rule as a column": lambda: rule(broken=Column(None)),
    "a `kind` that is none": lambda: sales(kind="batch"),
    "a misspelt argument": lambda: sales(margins=AHEAD),
    "an argument left out": lambda: rule(without="description"),
    "a `format` that is none": lambda: FileSource(folder="cafe", format="xlsx"),  # type: ignore[arg-type]
    "a suite's rule on no column": lambda: sales(
        suite=Suite(expectations=(expect.between("sale", 0, 100_000),))
    ),
    "`suite` is a list": lambda: sales(suite=[]),
    "one expectation without a comma": lambda: Suite(expectations=expect.unique("id")),  # type: ignore[arg-type]
    "the first day as text": lambda: Daily("at", "2026-11-01"),  # type: ignore[arg-type]
    "a time zone that is none": lambda: Daily("at", date(2026, 11, 1), "Europe/Berlinn"),
    "a key that is no column": lambda: sales_table(keys=("regions",)),
    "a group that Dagster cannot name": lambda: sales(group="my cafe"),
    "an owner": lambda: sales(owners=("me",)),
    "a personal column that is none": lambda: orders(personal=("customer",)),
    "a margin below zero": lambda: sales(margin=-AHEAD),
    "a share above 1": lambda: orders(late_below=5),
    "a restart strategy's class": lambda: sales(restart=NoRestart),
    "the first day of a domain as text": lambda: Domain("cafe", first_day="2026-11-01"),  # type: ignore[arg-type]
    "a topology of names": lambda: Topology(["cafe/orders"]),  # type: ignore[list-item]
    "a window's size as a number": lambda: TumblingWindow(15),  # type: ignore[arg-type]
    "no field at all": lambda: contract(fields=()),
    "an event time that may be missing": lambda: contract(
        fields=(Field("order_id", "long", required=True), Field("at", "timestamp"))
    ),
    "a key that is no field": lambda: contract(keys=("orderid",)),
    "a key that may be missing": lambda: contract(keys=("total",)),
    "`writes` is empty": lambda: sales(writes=()),
    "a table of PostgreSQL as events": lambda: orders(source=PostgresSource(table="shop.stores")),
    "PostgreSQL read again every 0 hours": lambda: PostgresSource(
        table="shop.stores", every=timedelta(0)
    ),
    "an option that an expectation lacks": lambda: expect.between(
        "sales",
        0,
        9,
        severty="warning",  # type: ignore[call-arg]
    ),
    "an upsert by no column": lambda: Output(
        sales_table(), sinks=(DeltaUpsert(version="windowend"),)
    ),
    "topics and a pattern": lambda: KafkaSource(
        brokers="localhost:9092", topics="orders", pattern="orders.*"
    ),
    "files of at most none": lambda: FileSource(folder="cafe/orders", max_files=0),
    "an offset of windows in a number": lambda: Tumbling(AHEAD, offset=3),  # type: ignore[arg-type]
    "a clock of windows that is none": lambda: Tumbling(AHEAD, clock="wall"),  # type: ignore[arg-type]
    "a count window of a text": lambda: Counting("3"),  # type: ignore[arg-type]
    "a sink's format": lambda: Output(sales_table(), sinks=(FileSink(format="parquett"),)),  # type: ignore[arg-type]
    "a table of a dataclass": lambda: Table.of(Sale, name="cafe/all", description="All."),  # type: ignore[arg-type]
    "a table of an object": lambda: Table.of(Order(1, 2), name="cafe/all", description="All."),  # type: ignore[arg-type]
    "a number for an instant": lambda: Table.of(
        Order, name="cafe/all", description="All.", event_time="at"
    ),
    "days of a number": lambda: Table.of(
        Order, name="cafe/all", description="All.", days=Daily("at", date(2026, 11, 1))
    ),
}


def second_writer() -> Stream:
    return replace(second("cafe/one"), name="cafe/two")


CAFE = Topology([orders(), sales()])


def with_variable(name: str, value: str) -> Callable[[], object]:
    def act() -> object:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(name, value)
            return settings_for(None)

    return act


def imported(code: str) -> object:
    """Import a deployment whose module has that code, before Spark runs."""
    from pyspark import SparkContext

    code = f"from pyspark.sql import functions as F\n\n{code}\n"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SparkContext, "_active_spark_context", None)

        class Importing(Entry):
            value = "cafe:TOPOLOGY"

            def load(self) -> object:
                exec(compile(code, __file__, "exec"), ModuleType("cafe").__dict__)  # noqa: S102
                return None

        patch.setattr(deployment, "entry_points", lambda **_: [Importing("cafe", None)])
        patch.setattr("linecache.getline", lambda _, line: code.splitlines(keepends=True)[line - 1])
        return deployment.topology()


def without_java(home: str | None = None) -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("JAVA_HOME", raising=False)
        if home is not None:
            patch.setenv("JAVA_HOME", home)
        patch.setenv("PATH", "")
        check_java()
        return None


def without_jars() -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RIVERMARK_CACHE", "/opt/none")
        return jar_set("delta")


def without_a_home() -> object:
    """Pause a group in a home that cannot be there; root may write everywhere else."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RIVERMARK_HOME", "/dev/null")
        patch.setattr(deployment, "entry_points", lambda **_: [Entry("default", CAFE)])
        ended = CliRunner().invoke(app, ["pause", "cafe"])
    raise RivermarkError(ended.stderr.removeprefix("rivermark: ").strip())


def day_still_open() -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recompute, "last_reached", lambda *_: datetime(2026, 11, 23, 12, tzinfo=UTC))
        check_closed(Lake("lake"), sales(), date(2026, 11, 23))
        return None


CONSOLE: dict[str, Callable[[], object]] = {
    "a stream's name": lambda: CAFE.named("cafe/sale"),
    "`run cafe`, a group": lambda: CAFE.named("cafe"),
    "`run cafe/orders_late`, a table": lambda: CAFE.named("cafe/orders_late"),
    "a group's name": lambda: CAFE.group("cafee"),
    "`--group cafe/sales`, a stream": lambda: CAFE.group("cafe/sales"),
    "a table's name": lambda: CAFE.table("cafe/order_late"),
    "`show cafe`, a group": lambda: CAFE.table("cafe"),
    "`show cafe/totals`, a stream": lambda: Topology([sales(name="cafe/totals")]).table(
        "cafe/totals"
    ),
    "a day": lambda: parse_day("20/11/2026"),
    "a day that is still open": day_still_open,
    "a column made when a module is imported": lambda: imported('FREE = F.col("total") <= 0'),
    "a `build` that is called": lambda: imported(
        "def total(rows):\n    return F.sum('total')\n\nBUILD = total(None)"
    ),
    "a name that the library does not have": lambda: imported("from rivermark import Straem"),
    "a module that is no Python": lambda: imported("def total(rows)\n    return rows"),
    "`RIVERMARK_DRIVER_MEMORY=2GB`": with_variable("RIVERMARK_DRIVER_MEMORY", "2GB"),
    "`RIVERMARK_MASTER=locl[2]`": with_variable("RIVERMARK_MASTER", "locl[2]"),
    "`RIVERMARK_DRIVER_MEMROY=4g`": with_variable("RIVERMARK_DRIVER_MEMROY", "4g"),
    "`RIVERMARK_NOTIFY_COMMAND=mail-me`": with_variable("RIVERMARK_NOTIFY_COMMAND", "mail-me"),
    "`RIVERMARK_LAKE_ROOT=s4://lake`": with_variable("RIVERMARK_LAKE_ROOT", "s4://lake"),
    "`RIVERMARK_STATE_ROOT=s3://lake/state`": with_variable(
        "RIVERMARK_STATE_ROOT", "s3://lake/state"
    ),
    "Java missing": without_java,
    "`JAVA_HOME=/opt/none`": lambda: without_java("/opt/none"),
    "no JARs": without_jars,
    "`RIVERMARK_HOME` where no folder can be made": without_a_home,
}


def text_of(act: Callable[[], object]) -> str:
    """What a mistake gets, without its place."""
    with pytest.raises(RivermarkError) as caught:
        act()
    return AT.sub("", str(caught.value))


def rows_of(page: str, title: str) -> dict[str, str]:
    """The texts of one of the page's tables, by mistake."""
    (section,) = re.findall(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", page, re.M | re.S)
    rows = re.findall(r"^\| (.*?) \| (.*) \|$", section, re.MULTILINE)[2:]
    return {mistake: text.replace("\\|", "|") for mistake, text in rows}


@pytest.mark.parametrize("mistake", DECLARED)
def test_a_mistake_in_a_declaration_gets_the_text_of_the_page(mistake: str) -> None:
    assert text_of(DECLARED[mistake]) == rows_of(PAGE.read_text(), "When it is declared")[mistake]


@pytest.mark.parametrize("mistake", CONSOLE)
def test_a_mistake_at_the_console_gets_the_text_of_the_page(mistake: str) -> None:
    assert text_of(CONSOLE[mistake]) == rows_of(PAGE.read_text(), "In the console")[mistake]


def test_the_page_has_no_mistake_that_is_not_tried() -> None:
    page = PAGE.read_text()
    assert rows_of(page, "When it is declared").keys() == DECLARED.keys()
    assert rows_of(page, "In the console").keys() == CONSOLE.keys()


@pytest.mark.parametrize("mistake", DECLARED)
def test_a_declaration_says_where_it_was_made(mistake: str) -> None:
    with pytest.raises(RivermarkError) as caught:
        DECLARED[mistake]()
    assert re.search(r"tests/\S+\.py, line \d+", str(caught.value))


if __name__ == "__main__":
    for acts in (DECLARED, CONSOLE):
        for mistake, act in acts.items():
            sys.stdout.write(f"| {mistake} | {text_of(act).replace('|', chr(92) + '|')} |\n")
        sys.stdout.write("\n")
