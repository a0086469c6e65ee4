"""The commands that land generated feeds as they happen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from assets.fraud.commands import accounts
from assets.web.commands import visitors


@pytest.mark.parametrize(
    ("command", "arguments", "folders"),
    [
        (visitors, ["--users", "20000"], {"page_views"}),
        (accounts, ["--accounts", "5000"], {"logins", "payments"}),
    ],
)
def test_events_land_as_they_happen(
    tmp_path: Path, command: Callable[..., None], arguments: list[str], folders: set[str]
) -> None:
    app = typer.Typer()
    app.command()(command)

    for attempt in range(6):
        # What happens in four seconds is chance, and on a busy machine it may be nothing.
        home = tmp_path / str(attempt)
        result = CliRunner().invoke(app, [*arguments, "--for", "4", "--home", str(home)])

        assert result.exit_code == 0, result.output
        landed = list((home / "landing").rglob("part-*.json"))
        rows = sum(len(file.read_text().splitlines()) for file in landed)
        assert f"stopped: {rows} rows in {len(landed)} files" in result.output
        if {file.parent.name for file in landed} == folders:
            return
    pytest.fail(f"{folders} never got a file each")
