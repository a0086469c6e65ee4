"""The session of a backfill fits the bytes that it reads."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from deltalake import write_deltalake

from rivermark.backfill.context import BackfillContext, bytes_of_days
from rivermark.lake.schema import create_table
from rivermark.model.stream import table_of
from rivermark.model.topology import Topology
from rivermark.runtime.query.backlog import LARGE, kind_of_backfill
from rivermark.runtime.spark.session import spark_conf
from rivermark.settings import Settings
from tests.unit.backfill.conftest import DAY, NEXT_DAY, STREAM, Tip, tips


def test_only_files_of_the_days_and_their_margin_count(settings: Settings) -> None:
    lake, fares = settings.lake(), table_of(STREAM.reads[0])
    assert bytes_of_days(lake, STREAM, DAY, DAY) == 0
    create_table(lake, fares)
    days: list[Tip] = [(1, "1.00"), (2, "2.00", NEXT_DAY), (3, "3.00", NEXT_DAY + timedelta(9))]
    for each in days:
        write_deltalake(lake.path(fares), tips(each), mode="append")

    one = bytes_of_days(lake, STREAM, DAY, DAY)
    assert one > 0
    assert bytes_of_days(lake, STREAM, DAY, NEXT_DAY) == pytest.approx(2 * one, rel=0.1)


def test_the_session_is_chosen_before_it_is_asked_for(settings: Settings) -> None:
    told: list[Any] = []
    context = BackfillContext(
        settings=settings,
        topology=Topology([STREAM]),
        spark=lambda: told.append("spark"),  # type: ignore[arg-type, return-value]
        run_id="r",
        expect=told.append,
    )
    context.engine_for(STREAM, DAY, NEXT_DAY)

    assert told == [0, "spark"]


def test_a_recompute_of_much_has_a_session_for_it(settings: Settings) -> None:
    few, much = (spark_conf(settings, kind_of_backfill(size)) for size in (LARGE, LARGE + 1))

    adaptive = "spark.sql.adaptive.enabled"
    assert (few[adaptive], much[adaptive]) == ("false", "true")
    assert few["spark.sql.codegen.wholeStage"] == "false"
    assert "spark.sql.codegen.wholeStage" not in much
    assert int(much["spark.sql.shuffle.partitions"]) > int(few["spark.sql.shuffle.partitions"])
    assert "TieredStopAtLevel" not in much["spark.driver.extraJavaOptions"]
