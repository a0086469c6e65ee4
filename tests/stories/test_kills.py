"""The generator drips; run, JVM, daemon, page, code server and UI are killed; the tables are right.

The oracle is plain Python over the landed files. Nothing is started by hand after `resume`.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from assets.taxi.enrichment import WAITING
from rivermark.testing import wait_until
from simulator.disorder import Disorder
from simulator.taxi.drip import drip
from simulator.taxi.drip_plan import DripPlan
from tests.oracles.rides import TaxiOracle, by_id
from tests.stories.deployment import (
    VICTIMS,
    Deployment,
    Victim,
    deployed,
    pause,
    percentile,
)

GROUP = "taxi_events"
WATCHED = "taxi/fare_events_raw"
SEED = 20261127


def record(story: list[str], event: str) -> None:
    """Keep an event for the report at the end of the story."""
    story.append(f"{datetime.now(UTC):%H:%M:%S} {event}")


def rows_of(deployment: Deployment, table: str, *columns: str) -> list[tuple[Any, ...]]:
    """Rows of a table, sorted, read without Spark."""
    rows = DeltaTable(deployment.settings.lake().path(table)).to_pyarrow_table(
        columns=list(columns)
    )
    return sorted(zip(*(rows[c].to_pylist() for c in columns), strict=True), key=repr)


def landed_rows(deployment: Deployment) -> int:
    """Lines in the landed files of rides and fares."""
    root = Path(deployment.settings.landing_root) / "taxi"
    files = [*root.glob("rides/*.json"), *root.glob("fares/*.json")]
    return sum(len(file.read_text().splitlines()) for file in files)


def raw_rows(deployment: Deployment) -> int:
    """Rows of both raw tables."""
    return sum(
        len(rows_of(deployment, f"taxi/{name}_events_raw", "_row")) for name in ("ride", "fare")
    )


def run_the_story(
    folder: Path, *, rate: float, victims: Sequence[Victim]
) -> tuple[Deployment, list[str]]:
    """Drip while victims are killed one after the other, then wait until all is read, and pause."""
    story: list[str] = []
    dice = random.Random(SEED)  # seeded: the moments are the same each time
    with deployed(folder) as deployment:
        deployment.without_nightly_merge()
        landing = Path(deployment.settings.landing_root)
        plan = DripPlan(
            rate=rate,
            clock="training",
            disorder=Disorder(
                delay=timedelta(seconds=30),
                late=0.01,
                late_by=timedelta(minutes=2),
                duplicates=0.01,
                loss=0.005,
                seed=SEED,
            ),
        )
        stop = threading.Event()
        dripping = threading.Thread(
            target=lambda: drip(landing, folder / "manifest.json", plan, stop=stop), daemon=True
        )
        dripping.start()
        deployment.set_desired(GROUP, "run")
        try:
            wait_until(
                lambda: deployment.last_commit(WATCHED)[0] >= 0, 600, reason="the first commit"
            )
            wait_until(lambda: deployment.living(GROUP) is not None, 240, reason="the run lives")
            record(story, "first commit")
            for victim in victims:
                waited = pause(dice, 1, 8)
                seconds = deployment.kill(victim, GROUP, WATCHED)
                record(story, f"killed {victim} after {waited:.1f} s: back after {seconds:.1f} s")
                # As `rivermark resume`: kills by hand are no storm, which would be given up.
                deployment.set_desired(GROUP, "run")
            pause(dice, 2, 5)
            stop.set()
            dripping.join(60)
            assert not dripping.is_alive()
            wait_until(
                lambda: raw_rows(deployment) == landed_rows(deployment),
                600,
                reason="all files are read",
            )
            wait_until(
                lambda: all_written(deployment), 600, reason="what follows from them is written"
            )
            deployment.set_desired(GROUP, "paused")
            wait_until(
                lambda: all(b.state == "stopped" for b in deployment.beats(GROUP).values()),
                120,
                reason="the streams stop",
            )
        finally:
            stop.set()
            (folder / "story.log").write_text("\n".join(story) + "\n")
    return deployment, story


def expected_tables(oracle: TaxiOracle) -> dict[str, tuple[tuple[str, ...], list[tuple[Any, ...]]]]:
    """Columns and rows of each table once everything that was landed has been worked off.

    What waits for the watermark is there up to the watermark that the landed files allow.
    """
    assert oracle.fares.newest is not None
    final = oracle.fares.newest - timedelta(minutes=1)
    pairs, lone_rides, lone_fares = oracle.partners()
    starts = {r["ride_id"]: r["event_time"] for r in oracle.clean_rides if r["is_start"]}
    paid = {f["ride_id"]: f["event_time"] for f in oracle.clean_fares}
    newest = min(
        max(r["event_time"] for r in oracle.clean_rides),
        max(f["event_time"] for f in oracle.clean_fares),
    )
    expired = newest - timedelta(minutes=1) - WAITING
    key = ("ride_id",)
    return {
        "taxi/ride_events": (key, [(i,) for i in by_id(oracle.rides.admitted)]),
        "taxi/fare_events": (key, [(i,) for i in by_id(oracle.fares.admitted)]),
        "taxi/ride_events_late": (key, [(i,) for i in by_id(oracle.rides.late)]),
        "taxi/fare_events_late": (key, [(i,) for i in by_id(oracle.fares.late)]),
        "taxi/clean_fares": (key, [(i,) for i in by_id(oracle.clean_fares)]),
        "taxi/clean_rides": (
            ("ride_id", "is_start", "start_cell", "end_cell"),
            list(oracle.cells()),
        ),
        "taxi/driver_tips": (
            ("window_end", "driver_id", "tips"),
            [(*k, v) for k, v in oracle.driver_tips().items() if k[0] <= final],
        ),
        "taxi/hourly_winners": (
            ("window_end", "driver_id", "tips"),
            [(end, *best) for end, best in oracle.winners().items() if end <= final],
        ),
        "taxi/rides_with_fares": (key, [(i,) for i in pairs]),
        "taxi/unmatched_rides": (key, [(i,) for i in lone_rides if starts[i] < expired]),
        "taxi/unmatched_fares": (key, [(i,) for i in lone_fares if paid[i] < expired]),
    }


def all_written(deployment: Deployment) -> bool:
    """Whether every table has as many rows as it must have in the end.

    Only the number: a table with wrong rows, or with too many, is for the test to report.
    """
    expected = expected_tables(TaxiOracle(Path(deployment.settings.landing_root)))
    return all(
        DeltaTable(deployment.settings.lake().path(table)).count() >= len(rows)
        for table, (_, rows) in expected.items()
    )


def check_tables(deployment: Deployment) -> None:
    """Every table equals the oracle: nothing lost, nothing doubled."""
    oracle = TaxiOracle(Path(deployment.settings.landing_root))
    assert oracle.rides.late, "a story without late events proves less than it says"
    for table, (columns, rows) in expected_tables(oracle).items():
        actual = [tuple(map(in_utc, row)) for row in rows_of(deployment, table, *columns)]
        assert sorted(actual) == sorted(rows), table
    progress = rows_of(deployment, "ops/stream_progress", "stream", "dropped_by_watermark")
    assert sum(dropped or 0 for _, dropped in progress) == 0


def in_utc(value: Any) -> Any:
    """A time with Python's own UTC, as the oracle has it; anything else as it is."""
    return value.astimezone(UTC) if isinstance(value, datetime) else value


def table_of(deployment: Deployment) -> str:
    """What each kind of kill cost until its work went on, in seconds."""
    lines = ["| killed | times | p50 | p95 | max |", "| --- | ---: | ---: | ---: | ---: |"]
    for victim, seconds in deployment.recoveries.items():
        p50, p95, most = percentile(seconds, 0.5), percentile(seconds, 0.95), max(seconds)
        lines.append(f"| {victim} | {len(seconds)} | {p50:.1f} | {p95:.1f} | {most:.1f} |")
    return "\n".join([*lines, "0 rows lost, 0 doubled"])


@pytest.mark.story
@pytest.mark.slow
def test_a_killed_run_and_a_killed_jvm_lose_and_double_nothing(tmp_path: Path) -> None:
    deployment, story = run_the_story(tmp_path, rate=60, victims=("run", "JVM"))

    check_tables(deployment)
    print("\n".join([*story, table_of(deployment)]))  # noqa: T201 - the times belong to the report


@pytest.mark.story
@pytest.mark.slow
@pytest.mark.timeout(1_500)
def test_whatever_is_killed_comes_back_without_a_hand_and_loses_and_doubles_nothing(
    tmp_path: Path,
) -> None:
    deployment, story = run_the_story(tmp_path, rate=60, victims=VICTIMS)

    check_tables(deployment)
    print("\n".join([*story, table_of(deployment)]))  # noqa: T201 - the times belong to the report


@pytest.mark.story
@pytest.mark.slow
@pytest.mark.timeout(9_000)
def test_ten_kills_of_each_lose_and_double_nothing(tmp_path: Path) -> None:
    deployment, story = run_the_story(tmp_path, rate=60, victims=VICTIMS * 10)

    check_tables(deployment)
    print("\n".join([*story, table_of(deployment)]))  # noqa: T201
