"""The commands that land generated feeds as they happen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from simulator.fraud.commands import accounts
from simulator.web.commands import visitors


@pytest.mark.parametrize(
    ("command", "arguments", "folders"),
    [
        # How long a phone sends late depends on the moment: in four seconds there may be no event.
        (visitors, ["--users", "20000", "--for", "12"], {"page_views"}),
        (accounts, ["--accounts", "5000", "--for", "6"], {"logins", "payments"}),
    ],
)
def test_events_land_as_they_happen(
    tmp_path: Path, command: Callable[..., None], arguments: list[str], folders: set[str]
) -> None:
    app = typer.Typer()
    app.command()(command)

    result = CliRunner().invoke(app, [*arguments, "--home", str(tmp_path)])

    assert result.exit_code == 0, result.output
    landed = list((tmp_path / "landing").rglob("part-*.json"))
    rows = sum(len(file.read_text().splitlines()) for file in landed)
    assert f"stopped: {rows} rows in {len(landed)} files" in result.output
    assert {file.parent.name for file in landed} == folders
