import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from rivermark.cli.demo import DemoReport, news, when_admitted, with_input
from rivermark.cli.demo_scene import LandedInput, Scene, Served, scenes, serving
from rivermark.model.errors import RivermarkError
from rivermark.monitor.charts import rows_per_hour
from rivermark.runtime.supervision.report import Report
from rivermark.settings import Settings
from tests.unit.cli.conftest import BUSIEST, HOURLY, NOON, ONE, ORDERS, SHOP, Entry
from tests.unit.conftest import Put


def landed(new_files: int) -> list[LandedInput]:
    return [LandedInput("orders", 3, 30, new_files)]


def report(before: int, after: int) -> DemoReport:
    return DemoReport({"shop/orders": before}, {"shop/orders": after}, [])


@pytest.mark.parametrize(
    ("new_files", "before", "after", "sentence"),
    [
        (3, 0, 30, "30 rows added to 1 tables."),
        (0, 10, 30, "20 rows added to 1 tables, left over from an earlier run."),
        (0, 30, 30, "Nothing new had landed: the 1 tables have the rows they had before."),
    ],
)
def test_the_demo_says_what_it_added(
    new_files: int, before: int, after: int, sentence: str
) -> None:
    assert news(landed(new_files), report(before, after)) == sentence


def test_streams_without_any_input_are_left_out(settings: Settings) -> None:
    assert with_input(settings, SHOP) == []

    folder = Path(settings.landing_root) / "shop" / "orders"
    folder.mkdir(parents=True)
    (folder / "a.json").write_text("{}\n")

    assert with_input(settings, SHOP) == [ORDERS, HOURLY, BUSIEST]


def test_what_came_in_is_drawn_once_when_the_last_ingest_has_ended() -> None:
    later = replace(ORDERS, name="shop/later")
    heard: list[str] = []
    listen = when_admitted(
        [ORDERS, later, HOURLY], lambda r: heard.append(r.stream), lambda: heard.append("drawn")
    )

    listen(Report(ORDERS.name, NOON, "progress", {}))
    for stream in (ORDERS, HOURLY, later, BUSIEST):
        listen(Report(stream.name, NOON, "final", {}))

    names = [ORDERS.name, ORDERS.name, HOURLY.name, later.name]
    assert heard == [*names, "drawn", BUSIEST.name]


def test_the_chart_counts_admitted_rows_by_hour(settings: Settings, put: Put) -> None:
    hours = (0, 0.5, 2)
    put(ORDERS.admitted, *({"order_id": n, "at": NOON + h * ONE} for n, h in enumerate(hours)))

    found = sorted(rows_per_hour(settings, ORDERS))

    assert [(h.hour, h.rows) for h in found] == [(NOON, 2), (NOON + 2 * ONE, 1)]


@pytest.mark.parametrize(
    ("found", "complaint"),
    [(ImportError("no such module"), "cannot be imported: no such"), (7, "not a Scene but int")],
)
def test_a_scene_that_is_none_is_named(
    found: object, complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rivermark.cli.demo_scene.entry_points", lambda **_: [Entry("x", found)])

    with pytest.raises(RivermarkError, match=complaint):
        scenes()


def test_a_scene_s_service_is_named_by_the_environment_while_the_demo_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DEMO_KNOWN", "somebody's own")
    monkeypatch.delenv("DEMO_SERVICE", raising=False)

    @contextmanager
    def serve() -> Iterator[Served]:
        yield Served({"DEMO_SERVICE": "http://127.0.0.1:1", "DEMO_KNOWN": "ours"}, lambda: ["3"])

    parts = {"a": Scene(land=lambda _: (), serve=serve), "b": Scene(land=lambda _: ())}
    with serving(parts) as said:
        assert os.environ["DEMO_SERVICE"] == "http://127.0.0.1:1"
        assert os.environ["DEMO_KNOWN"] == "somebody's own"
        assert said() == ["3"]
    assert "DEMO_SERVICE" not in os.environ
    assert os.environ["DEMO_KNOWN"] == "somebody's own"
