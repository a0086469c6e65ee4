"""The generator drips; the run, its engine and the code server are killed; the tables are right.

The oracle is plain Python over the landed files. Nobody starts anything by hand after `resume`.
"""

from __future__ import annotations

import random
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from assets.taxi.enrichment import WAITING
from assets.taxi.world.disorder import Disorder
from assets.taxi.world.drip import drip
from assets.taxi.world.drip_plan import DripPlan
from tests.oracles.rides import TaxiOracle, by_id
from tests.stories.deployment import Deployment, deployed, pause, until

GROUP = "taxi_events"
WATCHED = "taxi/fare_events_raw"
SEED = 20261127


def tell(told: list[str], what: str) -> None:
    """Keep what happened for the report at the end of the story."""
    told.append(f"{datetime.now(UTC):%H:%M:%S} {what}")


def rows_of(deployment: Deployment, table: str, *columns: str) -> list[tuple[Any, ...]]:
    """Rows of a table, sorted, read without an engine."""
    found = DeltaTable(deployment.settings.lake().path(table)).to_pyarrow_table(
        columns=list(columns)
    )
    return sorted(zip(*(found[c].to_pylist() for c in columns), strict=True), key=repr)


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


def run_the_story(folder: Path, *, rate: float, victims: list[str]) -> tuple[Deployment, list[str]]:
    """Drip while victims are killed one after the other, then wait until all is read and rest."""
    told: list[str] = []
    dice = random.Random(SEED)  # seeded: the moments are the same each time
    with deployed(folder) as deployment:
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
        deployment.wish(GROUP, "run")
        try:
            until(lambda: deployment.last_commit(WATCHED)[0] >= 0, 240, "the first commit")
            until(lambda: deployment.living(GROUP) is not None, 60, "the run lives")
            tell(told, "first commit")
            for victim in victims:
                waited = pause(dice, 1, 12)
                beat = deployment.living(GROUP)
                assert beat is not None, "killing what is dead proves nothing"
                if victim == "code server":
                    for server in deployment.code_servers():
                        server.kill()
                    tell(told, f"killed the code server after {waited:.1f} s")
                    continue
                pid = beat.pid if victim == "run" else beat.jvm_pid
                assert pid is not None
                seconds = deployment.kill(pid, GROUP, WATCHED)
                tell(
                    told,
                    f"killed the {victim} after {waited:.1f} s: committed after {seconds:.1f} s",
                )
            pause(dice, 2, 5)
            stop.set()
            dripping.join(60)
            assert not dripping.is_alive()
            until(
                lambda: raw_rows(deployment) == landed_rows(deployment), 180, "all files are read"
            )
            until(lambda: settled(deployment), 180, "what follows from them is written")
            deployment.wish(GROUP, "paused")
            until(
                lambda: all(b.state == "stopped" for b in deployment.beats(GROUP).values()),
                120,
                "the streams rest",
            )
        finally:
            stop.set()
            (folder / "story.log").write_text("\n".join(told) + "\n")
    return deployment, told


def settled(deployment: Deployment) -> bool:
    """Whether the winners of every hour that is over are there."""
    oracle = TaxiOracle(Path(deployment.settings.landing_root))
    newest = oracle.fares.newest
    assert newest is not None
    final = newest - timedelta(minutes=1)
    wanted = {end for end in oracle.winners() if end <= final}
    return len(rows_of(deployment, "taxi/hourly_winners", "window_end")) >= len(wanted) and len(
        rows_of(deployment, "taxi/clean_fares", "ride_id")
    ) >= len(oracle.clean_fares)


def check_tables(deployment: Deployment) -> None:
    """Every table equals the oracle: nothing lost, nothing doubled."""
    oracle = TaxiOracle(Path(deployment.settings.landing_root))

    def ids(table: str) -> list[int]:
        return [i for (i,) in sorted(rows_of(deployment, table, "ride_id"))]

    assert oracle.rides.late, "a story without late events proves less than it says"
    assert ids("taxi/ride_events") == by_id(oracle.rides.admitted)
    assert ids("taxi/fare_events") == by_id(oracle.fares.admitted)
    assert ids("taxi/ride_events_late") == by_id(oracle.rides.late)
    assert ids("taxi/fare_events_late") == by_id(oracle.fares.late)
    assert ids("taxi/clean_fares") == by_id(oracle.clean_fares)
    assert rows_of(
        deployment, "taxi/clean_rides", "ride_id", "is_start", "start_cell", "end_cell"
    ) == sorted(oracle.cells(), key=repr)
    assert oracle.fares.newest is not None
    final = oracle.fares.newest - timedelta(minutes=1)
    tips = {k: v for k, v in oracle.driver_tips().items() if k[0] <= final}
    found = rows_of(deployment, "taxi/driver_tips", "window_end", "driver_id", "tips")
    assert {(end.astimezone(UTC), driver): t for end, driver, t in found} == tips
    assert len(found) == len(tips)
    winners = {end: best for end, best in oracle.winners().items() if end <= final}
    best = rows_of(deployment, "taxi/hourly_winners", "window_end", "driver_id", "tips")
    assert {end.astimezone(UTC): (driver, t) for end, driver, t in best} == winners
    assert len(best) == len(winners)
    pairs, lone_rides, _ = oracle.partners()
    starts = {r["ride_id"]: r["event_time"] for r in oracle.clean_rides if r["is_start"]}
    newest = min(
        max(r["event_time"] for r in oracle.clean_rides),
        max(f["event_time"] for f in oracle.clean_fares),
    )
    expired = newest - timedelta(minutes=1) - WAITING
    assert ids("taxi/rides_with_fares") == sorted(pairs)
    assert ids("taxi/unmatched_rides") == sorted(i for i in lone_rides if starts[i] < expired)
    progress = rows_of(deployment, "ops/stream_progress", "stream", "dropped_by_watermark")
    assert sum(dropped or 0 for _, dropped in progress) == 0


@pytest.mark.story
def test_a_killed_run_and_a_killed_engine_lose_and_double_nothing(tmp_path: Path) -> None:
    deployment, told = run_the_story(tmp_path, rate=60, victims=["run", "engine"])

    check_tables(deployment)
    print("\n".join(told))  # noqa: T201 - the recovery times belong to the report


@pytest.mark.story
@pytest.mark.slow
def test_three_killed_runs_a_killed_engine_and_code_server_lose_and_double_nothing(
    tmp_path: Path,
) -> None:
    deployment, told = run_the_story(
        tmp_path,
        rate=60,
        victims=["run", "engine", "run", "code server", "run"],
    )

    check_tables(deployment)
    print("\n".join(told))  # noqa: T201
