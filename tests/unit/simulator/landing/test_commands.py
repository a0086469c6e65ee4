from datetime import timedelta

import pytest

from simulator.landing.commands import landing_progress
from simulator.landing.pace import Progress
from tests.unit.cli.conftest import NOON


def test_a_landing_tells_how_far_it_is_and_how_far_behind(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("simulator.landing.commands.LINE_SECONDS", 0)
    monkeypatch.setenv("COLUMNS", "250")

    with landing_progress("views to landing") as heard:
        heard(Progress(files=2, rows=1200, due=NOON, behind=timedelta(seconds=3)))

    told = "views to landing: 1,200 rows in 2 files, event time 2026-03-02 12:00:00, 3 s behind"
    assert told in capsys.readouterr().err
