"""What a source holds beyond the plan, as a run reports it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rivermark import RivermarkError
from rivermark.ingest.plan import BatchPlanner
from rivermark.ingest.producers import Producer, Producers
from rivermark.ingest.watermark import Progress
from rivermark.model.source import Part
from rivermark.runtime.query.ingest import SourceBacklog
from rivermark.settings import Settings
from rivermark.sources import FileSource, PerProducer, SocketSource, Source
from tests.unit.cli.conftest import NOON, ORDERS


def opened(settings: Settings, source: Source) -> SourceBacklog:
    ingest = replace(ORDERS, source=source)
    return SourceBacklog(BatchPlanner(settings.lake(), settings.landing_root, ingest, "run"))


def test_files_that_wait_are_listed_as_files(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    folder = Path(settings.landing_root) / "orders"
    folder.mkdir(parents=True)
    source = FileSource(folder="orders", settle=timedelta(0), max_files=1)
    backlog = opened(settings, source)
    backlog.running = True
    for n in range(4):
        (folder / f"{n}.json").write_text("{}\n")
    (folder / "half.json").write_text("{")
    backlog.poll()
    held, half = backlog.describe()

    assert held == "2 files are ready and wait for the batches before them"
    assert half.startswith("file ")
    assert half.endswith("half.json: looks unfinished: no line end")


def test_planned_batches_are_left_until_the_newest_was_read(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    folder = Path(settings.landing_root) / "orders"
    folder.mkdir(parents=True)
    source = FileSource(folder="orders", settle=timedelta(0), max_files=1)
    for n in range(5):
        (folder / f"{n}.json").write_text("{}\n")
    opened(settings, source).poll()

    # Of a run that begins with what an earlier one has planned.
    backlog = opened(settings, source)
    assert backlog.is_left()
    backlog.taken({0})
    assert backlog.is_left()
    backlog.taken({1, 2})
    backlog.taken({3, 4})
    assert backlog.is_left(), "as many as a batch takes may not be all"
    (folder / "5.json").write_text("{}\n")
    backlog.poll()
    backlog.taken({5})
    assert not backlog.is_left()
    (folder / "6.json").write_text("{}\n")
    backlog.poll()
    assert backlog.is_left()


def test_producers_that_run_ahead_are_named_and_counted(tmp_path: Path) -> None:
    settings, now = Settings(home=tmp_path), datetime.now(UTC)
    idle, drift = timedelta(minutes=1), timedelta(hours=1)
    source = FileSource(folder="orders", settle=timedelta(0), producers="^(.)")
    rule = PerProducer(idle=idle, drift=drift)
    ingest = replace(ORDERS, source=source, watermark=rule)
    landing = Path(settings.landing_root) / "orders"
    landing.mkdir(parents=True)
    (landing / "b.json").write_text("{}\n")
    known = {
        "a": Producer(now, NOON),
        "b": Producer(now, NOON + 2 * drift),
        "c": Producer(now - 2 * idle, NOON + 9 * drift),
    }
    progress = Progress(producers=Producers(NOON, now, NOON, known))
    planner = BatchPlanner(settings.lake(), settings.landing_root, ingest, "run")
    backlog = SourceBacklog(planner, lambda: progress)
    backlog.running = True
    backlog.poll()

    assert backlog.describe() == ["held back until slower producers have followed: b, c"]
    assert backlog.waiting() == 0
    assert backlog.numbers() == {
        "producers": 2,
        "idle_producers": 1,
        "held_back": 2,
        "skew_seconds": 7200.0,
    }


def test_a_source_without_files_waits_by_its_own_word(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    backlog = opened(settings, SocketSource(host="localhost", port=1))
    backlog.planner.source.close()
    backlog.poll()

    [line] = backlog.describe()
    assert line.startswith("range localhost:1: ")


def test_what_is_unread_of_parts_is_measured_with_each_full_poll(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(home=tmp_path)
    (Path(settings.landing_root) / "orders").mkdir(parents=True)
    backlog = opened(settings, FileSource(folder="orders"))
    backlog.poll()
    assert backlog.numbers() == {}

    minute_ago = datetime.now(UTC) - timedelta(minutes=1)
    parts = [Part("orders/0", 7, minute_ago, minute_ago), Part("orders/1", 0, minute_ago, None)]
    monkeypatch.setattr(backlog.planner.source, "parts", lambda _: parts)
    backlog.poll()
    numbers = backlog.numbers()
    assert numbers["unread"] == 7
    assert 60 <= numbers["oldest_unread_seconds"] < 90

    def unknown(_: object) -> list[Part]:
        raise RivermarkError("no broker answers")

    monkeypatch.setattr(backlog.planner.source, "parts", unknown)
    backlog.poll()
    assert backlog.numbers() == {}
