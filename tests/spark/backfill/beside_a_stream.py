"""Backfills of a closed day beside a live stream and a compaction: what is there in the end."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, date, timedelta
from typing import Final

from pyspark.sql import SparkSession

from rivermark import AnyStream, Topology
from rivermark.backfill.maintenance import upkeep
from rivermark.backfill.recompute import Order, replace
from rivermark.backfill.result import Reprocessing
from rivermark.lake.maintenance.maintain import MaintenanceResult
from rivermark.lake.snapshot import row_count
from rivermark.runtime.supervision.run import run_continuous
from rivermark.settings import Settings
from rivermark.testing import wait_until
from tests.spark.helpers.background import running
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.sensors import FOLDER, READINGS, TEN, reading, rows, run, windows
from tests.spark.helpers.stateful_streams import distinct

DAY_MINUTES: Final = 24 * 60
CLOSED: Final = date(2024, 3, 1)
SILVER: Final = distinct()
GOLD: Final = windows(SILVER, minutes=60)
TOPOLOGY: Final = Topology([READINGS, SILVER, GOLD])
OF_THE_DAY: Final = 100
HOUR: Final = timedelta(hours=1)


@dataclass
class Outcome:
    """What the tables hold in the end, what they should, and what was done.

    Silver by the notes of the readings; gold is readings by hour since ten of the first of March.
    """

    silver: Counter[str]
    expected: Counter[str]
    gold: dict[int, int]
    expected_gold: Counter[int]
    done: list[Reprocessing] = field(default_factory=list)
    kept: list[MaintenanceResult] = field(default_factory=list)


def backfills_beside_a_stream(
    spark: SparkSession, settings: Settings, landing: Landing, times: int
) -> Outcome:
    """Replace the first of March so many times while later readings stream in and files are joined.

    After each fourth backfill a compaction has its turn. Readings come in files of one: each is a
    batch, a commit and a small file of its own.
    """
    landing.put(f"{FOLDER}/1.json", *[reading(n / 10, note=f"{n}") for n in range(OF_THE_DAY)])
    landing.put(f"{FOLDER}/2.json", reading(2 * DAY_MINUTES, note="closes"))
    run(spark, settings, READINGS, SILVER, GOLD)
    live: list[str] = []
    done: list[Reprocessing] = []
    kept: list[MaintenanceResult] = []

    def stream(stop: threading.Event) -> object:
        streams: list[AnyStream] = [READINGS, SILVER, GOLD]
        return run_continuous(spark, settings, TOPOLOGY, streams, run_id="live", stop=stop)

    def join_files(stop: threading.Event) -> None:
        while not stop.wait(0.3):
            kept.extend(upkeep(settings, TOPOLOGY, [SILVER.name], run_id="upkeep"))

    def drip(stop: threading.Event) -> None:
        while not stop.wait(0.4):
            note = f"live {len(live)}"
            landing.put(f"{FOLDER}/{note}.json", reading(at_minute(len(live)), note=note))
            live.append(note)

    with running(stream) as thread, running(join_files):
        with running(drip):
            for number in range(times):
                order = Order(stream=SILVER, first=CLOSED, last=CLOSED, run_id=f"fill {number}")
                done.append(replace(spark, settings, order))
                if number % 4 == 3:
                    # Upkeep gives way to backfills, which follow each other without a pause here.
                    before = joined_files(kept)
                    wait_until(
                        lambda: joined_files(kept) > before,  # noqa: B023
                        reason="files are joined",
                        alive=thread.alive,
                    )
        wanted = OF_THE_DAY + 1 + len(live)
        wait_until(
            lambda: row_count(settings.lake(), SILVER.tables[0]) >= wanted,
            reason=f"{wanted} rows are there",
            alive=thread.alive,
        )
    run(spark, settings, READINGS, SILVER, GOLD)
    minutes = [n / 10 for n in range(OF_THE_DAY)] + [
        2 * DAY_MINUTES,
        *map(at_minute, range(len(live))),
    ]
    return Outcome(
        silver=Counter(r["note"] for r in rows(spark, settings, SILVER.tables[0], "note")),
        expected=Counter([*map(str, range(OF_THE_DAY)), "closes", *live]),
        gold={
            (r["window_start"].replace(tzinfo=UTC) - TEN) // HOUR: r["readings"]
            for r in rows(spark, settings, GOLD.tables[0], "window_start", "readings")
        },
        expected_gold=Counter(int(minute // 60) for minute in minutes),
        done=done,
        kept=kept,
    )


def joined_files(kept: list[MaintenanceResult]) -> int:
    """How many small files the compactions have joined."""
    return sum(each.joined_files for each in kept)


def at_minute(number: int) -> float:
    """When the live reading of that number is, in minutes after ten of the first of March."""
    return 2 * DAY_MINUTES + 1 + 10 * number
