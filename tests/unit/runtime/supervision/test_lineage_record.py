"""The lineage of columns that runs record: once for each code, and never in the way of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from assets.taxi.ingest import FARE_EVENTS
from assets.taxi.long_rides import LONG_RIDES
from assets.taxi.tips import DRIVER_TIPS, HOURLY_WINNERS
from rivermark.model.errors import DeclarationError
from rivermark.runtime.preflight import column_lineage
from rivermark.runtime.supervision import lineage_record
from rivermark.runtime.supervision.lineage_record import record_lineage, recorded_lineage

SPARK: Any = "a session"
LINEAGE = {"tips": [("taxi/clean_fares", "tip")]}


@pytest.fixture
def analyzed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The streams that were analyzed; a build that fails on empty tables is HOURLY_WINNERS'."""
    names: list[str] = []

    def analyze(_: object, stream: Any) -> dict[str, list[tuple[str, str]]]:
        names.append(stream.name)
        if stream is HOURLY_WINNERS:
            raise DeclarationError("its build fails")
        return LINEAGE

    monkeypatch.setattr(column_lineage, "column_lineage", analyze)
    return names


def test_a_stream_is_analyzed_once_for_its_code(
    tmp_path: Path, analyzed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert recorded_lineage(tmp_path, DRIVER_TIPS) == {}

    for _ in range(2):
        record_lineage(SPARK, tmp_path, [FARE_EVENTS, DRIVER_TIPS, LONG_RIDES])
    assert recorded_lineage(tmp_path, DRIVER_TIPS) == LINEAGE
    assert analyzed == [DRIVER_TIPS.name]

    monkeypatch.setattr(lineage_record, "code_of", lambda stream: "changed")
    record_lineage(SPARK, tmp_path, [DRIVER_TIPS])
    assert analyzed == [DRIVER_TIPS.name] * 2


def test_a_build_that_fails_is_left_to_its_stream(tmp_path: Path, analyzed: list[str]) -> None:
    record_lineage(SPARK, tmp_path, [HOURLY_WINNERS, DRIVER_TIPS])

    assert recorded_lineage(tmp_path, HOURLY_WINNERS) == {}
    assert recorded_lineage(tmp_path, DRIVER_TIPS) == LINEAGE


def test_a_record_that_cannot_be_read_is_none(tmp_path: Path, analyzed: list[str]) -> None:
    record_lineage(SPARK, tmp_path, [DRIVER_TIPS])
    [path] = tmp_path.rglob("*.json")
    path.write_text("{")

    assert recorded_lineage(tmp_path, DRIVER_TIPS) == {}
    record_lineage(SPARK, tmp_path, [DRIVER_TIPS])
    assert recorded_lineage(tmp_path, DRIVER_TIPS) == LINEAGE
