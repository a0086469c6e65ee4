"""The wheel in an environment and a project of somebody else's, far from this repository."""

from __future__ import annotations

import json
import os
from pathlib import Path
from textwrap import dedent

import pytest

from tests.stories.fresh_environment import FreshEnvironment

pytestmark = pytest.mark.story

PROJECT = {
    "pyproject.toml": """
        [project]
        name = "my-project"
        version = "1"

        [tool.rivermark]
        topology = "my_project.streams:TOPOLOGY"
    """,
    "my_project/__init__.py": "",
    "my_project/streams.py": """
        from datetime import date, timedelta
        from pyspark.sql import DataFrame, functions as F
        from rivermark import Contract, Domain, Field, Table, Topology
        from rivermark.sources import FileSource

        SHOP = Domain("shop", first_day=date(2026, 1, 1))
        ORDERS = SHOP.ingest(
            name="shop/orders",
            description="Orders.",
            source=FileSource(folder="orders", pattern="*.json"),
            lateness=timedelta(hours=1),
            contract=Contract(
                event_time="at",
                keys=("order_id",),
                fields=(
                    Field("order_id", "long", required=True),
                    Field("at", "timestamp", required=True),
                    Field("cents", "long", required=True),
                ),
            ),
        )

        def large(orders: DataFrame) -> DataFrame:
            return orders.where(F.col("cents") > 100).select("order_id", "at", "cents")

        LARGE = SHOP.stream(
            reads=(ORDERS,),
            build=large,
            volume="events",
            writes=Table(
                name="shop/large_orders",
                schema="order_id long, at timestamp, cents long",
                description="Orders above one.",
                event_time="at",
            ),
        )
        TOPOLOGY = Topology([ORDERS, LARGE])
    """,
    "my_project/definitions.py": """
        import dagster as dg
        import rivermark
        import rivermark.dagster
        from my_project.streams import TOPOLOGY

        @dg.asset(deps=[dg.AssetKey(["streams", "shop", "large_orders"])])
        def total(platform: dg.ResourceParam[str]) -> dg.MaterializeResult:
            rows = rivermark.table("shop/large_orders").arrow(columns=["cents"])
            return dg.MaterializeResult(metadata={"cents": sum(rows["cents"].to_pylist())})

        watch = dg.define_asset_job("watch", selection=[total])
        defs = dg.Definitions.merge(
            dg.Definitions(
                assets=[total],
                jobs=[watch],
                schedules=[dg.ScheduleDefinition(job=watch, cron_schedule="0 6 * * *")],
                resources={"platform": "mine"},
                executor=dg.multiprocess_executor,
            ),
            rivermark.dagster.definitions(TOPOLOGY, prefix="streams"),
        )
    """,
}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> FreshEnvironment:
    """An environment with the wheel, and a project beside it."""
    installed = FreshEnvironment(tmp_path_factory.mktemp("elsewhere"))
    for name, text in PROJECT.items():
        file = installed.work / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(dedent(text).lstrip())
    installed.dagster_home = installed.work / "dagster"
    installed.dagster_home.mkdir()
    return installed


def test_the_console_and_dagster_know_the_project_alone(installed: FreshEnvironment) -> None:
    where = installed.run("python", "-c", "import rivermark; print(rivermark.__file__)")
    listed = json.loads(installed.run("rivermark", "status", "--json"))
    absent = "import importlib.util as u; print([u.find_spec(n) for n in ('assets', 'simulator')])"

    assert Path(where.strip()).is_relative_to(installed.bin.parent)
    assert [stream["stream"] for stream in listed["streams"]] == [
        "shop/orders",
        "shop/large_orders",
    ]
    assert installed.run("python", "-c", absent).strip() == "[None, None]"
    installed.run(
        "python", "-m", "dagster", "definitions", "validate", "-m", "my_project.definitions"
    )


@pytest.mark.slow
def test_streams_run_beside_what_the_project_had(installed: FreshEnvironment) -> None:
    assert json.loads(installed.run("rivermark", "setup", "--no-archive", "--json"))["sets"]
    assert "no fault" in installed.run("rivermark", "check")
    landing = installed.home / "landing" / "orders"
    landing.mkdir(parents=True)
    orders = [{"order_id": n, "at": f"2026-03-02T12:0{n}:00Z", "cents": n * 50} for n in range(6)]
    (landing / "a.json").write_text("".join(json.dumps(order) + "\n" for order in orders))
    os.utime(landing / "a.json", (1_772_000_000, 1_772_000_000))
    execute = ("python", "-m", "dagster", "job", "execute", "-m", "my_project.definitions", "-j")

    installed.run(*execute, "streams_shop_catch_up")
    installed.run(*execute, "watch")

    shown = installed.run(
        "rivermark", "sql", "FROM shop.large_orders SELECT cents ORDER BY 1", "--csv"
    )
    assert shown.split() == ['"cents"', "150", "200", "250"]
    events = (
        "import dagster as dg\n"
        "with dg.DagsterInstance.get() as instance:\n"
        "    total = instance.get_latest_materialization_event(dg.AssetKey('total'))\n"
        "    print(total.asset_materialization.metadata['cents'].value)\n"
    )
    assert installed.run("python", "-c", events).strip() == "600"
