"""The way of a file through an ingest, put together from notes of several threads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench.timeline import STEPS, pauses, table, ways

INGEST = "taxi/fare_events"


def note(what: str, began: float, ended: float, **facts: object) -> dict[str, Any]:
    return {"what": what, "began": began, "ended": ended, **facts}


NOTES = [
    note("plan", 100.4, 100.5, stream=INGEST, arrival=7, files=[["a.json", 100.1]]),
    note("commit", 100.4, 100.5, stream=f"{INGEST}:arrivals", table=f"ops/arrivals/{INGEST}"),
    note("wake", 100.6, 100.6, stream=INGEST),
    note("commit", 101.1, 101.3, stream=INGEST, table=f"{INGEST}_raw"),
    note("checkpoint", 101.25, 101.3, path="/lake/raw"),
    note("commit", 101.3, 101.4, stream=INGEST, table=INGEST),
    note("read", 100.9, 101.0, stream=INGEST),
    note("admit", 100.9, 101.5, stream=INGEST, arrivals=[7]),
    note("batch", 100.8, 101.6, stream=INGEST),
    note("batch", 100.8, 101.6, stream="web/clicks"),
]


def test_each_step_is_told_and_nothing_is_counted_twice() -> None:
    [way] = ways(NOTES, INGEST, lambda _: 100.0)
    took = {step: round(seconds, 3) for step, seconds in way.steps.items()}
    assert took == {
        "land": 0.1,
        "settle": 0.3,
        "plan": 0.1,
        "trigger": 0.1,
        "spark": 0.2,
        "collect": 0.1,
        "read": 0.1,
        "raw": 0.3,
        "admitted": 0.1,
    }
    assert [*took] == [step for step, _ in STEPS]
    assert way.seconds == pytest.approx(1.4)

    shown = table([way], NOTES, [(100.0, 100.02), (90.0, 91.0)])
    assert "committed | 300 | 300 | 300 | 300 |" in shown
    assert "| collector's pauses meanwhile | | | 1000 | 20 |" in shown
    assert "| table checkpoints | | | 50 | 50 |" in shown


def test_pauses_of_the_collector_are_read_from_its_log(tmp_path: Path) -> None:
    log = tmp_path / "pauses.log"
    log.write_text(
        "[2026-11-30T01:30:00.000+0000] Using Serial\n"
        "[2026-11-30T01:30:01.500+0000] GC(0) Pause Young (Allocation Failure) 9M->2M(30M) 5.5ms\n"
    )
    [(began, ended)] = pauses(log)
    assert ended - began == pytest.approx(0.0055, abs=1e-5)
    assert ended % 60 == pytest.approx(1.5, abs=1e-5)
