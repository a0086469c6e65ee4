"""What the console makes of runs; the runs themselves are played."""

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest

from rivermark.ingest.plan import BatchPlanner
from rivermark.model.errors import StreamFailed
from rivermark.model.topology import Topology
from rivermark.runtime.batch_metrics import StreamSummary
from rivermark.runtime.supervision.report import Report
from rivermark.settings import Settings
from tests.unit.cli.conftest import NOON, ORDERS, Run, drop

WIDE = {"COLUMNS": "250"}
Played = Callable[..., dict[str, StreamSummary]]


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Played], None]:
    """Play a run of the library, without an engine."""

    @contextmanager
    def engine(*_: object) -> Iterator[None]:
        yield None

    monkeypatch.setattr("rivermark.cli.run.engine", engine)

    def played(name: str, run: Played) -> None:
        monkeypatch.setattr(f"rivermark.runtime.supervision.{name}", run)

    return played


def summaries(streams: Any) -> dict[str, StreamSummary]:
    return {s.name: StreamSummary(s.name, rows_in=1200, admitted=1100, late=7) for s in streams}


def report(stream: str, rows_in: int, **more: Any) -> Report:
    numbers: dict[str, int | float] = {"rows_in": rows_in, "rows_out": rows_in, "late": 0}
    numbers |= {"quarantined": 0, "rows_per_second": 12.3}
    return Report(stream, NOON, more.pop("kind", "final"), numbers, **more)


def test_a_bounded_run_tells_each_stream_as_it_ends_and_all_in_a_table(
    rivermark: Run, shop: Topology, play: Callable[[str, Played], None]
) -> None:
    def run(*given: Any, on_report: Any, **_: Any) -> dict[str, StreamSummary]:
        on_report(report("shop/orders", 1200))
        on_report(report("shop/hourly", 0))
        found = summaries(given[3])
        found["shop/hourly"].pending.append("3 rows of state wait")
        return found

    play("run.run_bounded", run)

    result = rivermark("run", "--group", "shop", env=WIDE)

    assert result.exit_code == 0
    assert "shop/orders: 1,200 rows in = 1,200 admitted + 0 late + 0 quarantined" in result.stderr
    assert "shop/hourly: nothing new" in result.stderr
    assert "1,100" in result.stdout
    assert "shop/hourly: 3 rows of state wait" in result.stdout


def test_a_stopped_run_says_that_something_is_left(
    rivermark: Run, shop: Topology, play: Callable[[str, Played], None]
) -> None:
    def run(*given: Any, stop: Any, **_: Any) -> dict[str, StreamSummary]:
        signal.raise_signal(signal.SIGTERM)
        assert stop.is_set()
        return summaries(given[3])

    play("run.run_bounded", run)

    result = rivermark("run")

    assert result.exit_code == 130
    assert "run again to go on" in result.stderr


def test_a_continuous_run_ends_well_on_a_signal(
    rivermark: Run, shop: Topology, play: Callable[[str, Played], None]
) -> None:
    def run(*given: Any, stop: Any, on_report: Any, report_every: timedelta, **_: Any) -> Any:
        assert report_every == timedelta(seconds=5)
        on_report(report("shop/orders", 1200, kind="progress", watermark=NOON))
        on_report(report("shop/hourly", 0, kind="progress"))
        signal.raise_signal(signal.SIGINT)
        assert stop.is_set()
        return summaries(given[3])

    play("run.run_continuous", run)

    result = rivermark("run", "--continuous", "--every", "5")

    assert result.exit_code == 0
    assert "12:00:00  shop/orders: 1,200 rows in (12 a second)" in result.stderr
    assert "watermark 2026-03-02 12:00:00" in result.stderr
    assert "shop/hourly" not in result.stderr


def test_n063_a_pause_of_reports_goes_with_a_continuous_run(rivermark: Run, shop: Topology) -> None:
    result = rivermark("run", "--every", "5")

    assert result.exit_code == 2
    assert "--every is the interval of reports and needs --continuous" in result.stderr


def test_a_failed_stream_is_a_sentence_with_its_name(
    rivermark: Run, shop: Topology, play: Callable[[str, Played], None]
) -> None:
    def run(*_: Any, **__: Any) -> dict[str, StreamSummary]:
        raise StreamFailed("shop/hourly", "no space left on device")

    play("run.run_bounded", run)

    result = rivermark("run")

    assert result.exit_code == 1
    assert "stream 'shop/hourly' failed: no space left on device" in result.stderr


def test_a_dry_run_counts_the_files_that_are_not_planned_yet(
    rivermark: Run, shop: Topology, settings: Settings
) -> None:
    for name in ("a.json", "b.json"):
        drop(settings, name, "{}\n", age_seconds=60)
    BatchPlanner(settings.lake(), settings.landing_root, ORDERS, "run-1").poll()
    drop(settings, "c.json", "{}\n", age_seconds=60)

    orders, hourly, _ = json.loads(rivermark("run", "--dry-run", "--json").stdout)["streams"]

    assert orders == {"stream": "shop/orders", "group": "shop", "waiting": 1}
    assert hourly["waiting"] is None
