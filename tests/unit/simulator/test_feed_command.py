"""The commands that land generated feeds as they happen."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from simulator.ads.commands import clicks
from simulator.disorder import Disorder
from simulator.fraud.commands import accounts
from simulator.readings.commands import sensors
from simulator.web.commands import visitors

LONGER = ("2", "10", "60")
"""Seconds that a feed runs: a busy machine may land nothing in the first of them."""


@pytest.mark.parametrize(
    ("command", "arguments", "folders"),
    [
        (visitors, ["--users", "20000"], {"page_views"}),
        (accounts, ["--accounts", "5000"], {"logins", "payments"}),
        (clicks, ["--users", "5000", "--port", "0"], {"clicks"}),
        (sensors, ["--sensors", "10", "--period", "0.1"], {"sensors"}),
    ],
)
def test_events_land_as_they_happen(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: Callable[..., None],
    arguments: list[str],
    folders: set[str],
) -> None:
    # Phones and queues hold events back for up to 20 seconds, longer than a test is to last.
    monkeypatch.setattr("simulator.web.commands.MOBILE_NETWORK", Disorder())
    monkeypatch.setattr("simulator.fraud.commands.QUEUES", Disorder())
    monkeypatch.setattr("simulator.ads.commands.QUEUES", Disorder())
    app = typer.Typer()
    app.command()(command)
    for seconds in LONGER:
        began = datetime.now(UTC)
        home = tmp_path / seconds
        result = CliRunner().invoke(app, [*arguments, "--for", seconds, "--home", str(home)])
        assert result.exit_code == 0, result.output
        landed = list((home / "landing").rglob("part-*.json"))
        if {file.parent.name for file in landed} == folders:
            break
    rows = [json.loads(line) for file in landed for line in file.read_text().splitlines()]
    times = [datetime.fromisoformat(row["event_time"]) for row in rows]
    assert began - timedelta(seconds=1) < min(times) < max(times) < datetime.now(UTC)
    assert f"stopped: {len(rows)} rows in {len(landed)} files" in result.output
    assert {file.parent.name for file in landed} == folders
