"""How the console writes: what a payload may do, what a narrow terminal shows, what JSON is."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import RenderableType

from rivermark.cli.console import PlainConsole, cell, coloured, grid, plain, print_json
from rivermark.cli.exit_codes import ExitCode

EVIL = "a\x1b[31mb\x1b]0;title\x07[red]c[/red]\r"


def drawn(*parts: RenderableType, width: int = 80, terminal: bool = False) -> str:
    console = PlainConsole(
        file=io.StringIO(),
        width=width,
        force_terminal=terminal,
        color_system="standard" if terminal else None,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )
    for part in parts:
        console.print(part)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_n051_no_escape_sequence_of_a_payload_is_printed() -> None:
    table = grid(EVIL, ("file", EVIL))
    table.add_row(EVIL, cell(EVIL))
    table.add_row(plain(EVIL), coloured(f"failed: {EVIL}"))

    for width in (250, 20):
        shown = drawn(table, EVIL, plain(EVIL), width=width)
        assert not {"\x1b", "\x07", "\r"} & set(shown)
        assert shown.replace("\n", "").replace(" ", "").count("a\\x1b[31mb") >= 6
        assert "[red]c[/red]" in shown.replace("\n", "").replace(" ", "")


COUNTS = ("rows in", "admitted", "late", "quarantined", "rows")


def test_a_table_that_does_not_fit_is_shown_row_by_row_with_every_number_whole() -> None:
    table = grid("taxi: desired run", ("stream", *COUNTS, "watermark", "state"), right=COUNTS)
    numbers = ("1,234,567", "1,200,000", "34,000", "567", "")
    table.add_row("taxi/ride_events", *numbers, "2026-03-02 12:00:00", coloured("running"))
    error = "failed: " + "no space left " * 8
    table.add_row("taxi/trips_of_the_day", *numbers, "", coloured(error))

    wide = drawn(table, width=200).splitlines()
    assert wide[2].split() == [
        "stream",
        "rows",
        "in",
        "admitted",
        "late",
        "quarantined",
        "rows",
        "watermark",
        "state",
    ]
    narrow = drawn(table)
    assert max(cell_len(line) for line in narrow.splitlines()) <= 80
    assert "taxi: desired run" in narrow
    for whole in (*numbers, "taxi/ride_events", "2026-03-02 12:00:00", "running"):
        assert whole in narrow
    assert "…" not in narrow
    assert " ".join(narrow.split()).count("no space left") == 8
    assert "watermark" not in narrow.split("taxi/trips_of_the_day")[1]


@pytest.mark.parametrize("columns", [1, 2, 5])
def test_a_table_breaks_no_word_and_no_number_at_any_width(columns: int) -> None:
    names = [f"count{n}" for n in range(columns)]
    table = grid(None, ("name", *names), right=names)
    table.add_row("taxi/trips_of_the_day", *("1,234,567" for _ in names))

    for width in range(24, 100):
        shown = drawn(table, width=width)
        assert max(cell_len(line) for line in shown.splitlines()) <= width
        assert shown.split().count("1,234,567") == columns, (width, shown)
        assert "taxi/trips_of_the_day" in shown.split(), (width, shown)


def test_a_small_table_stays_a_table() -> None:
    table = grid(None, ("name", "rows"), right=("rows",))
    table.add_row("taxi/trips", "12")

    assert drawn(table, width=40).splitlines()[-2].split() == ["taxi/trips", "12"]


@pytest.mark.parametrize(
    ("state", "code"),
    [("running", "32"), ("silent for 300 s", "33"), ("failed: disk full", "31"), ("odd", "")],
)
def test_states_are_coloured_on_a_terminal_and_nowhere_else(
    state: str, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert drawn(coloured(state), terminal=True).startswith(f"\x1b[{code}m" if code else state)
    assert drawn(coloured(state)) == f"{state}\n"
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[3" not in drawn(coloured(state), terminal=True)


@dataclass
class Shown:
    name: str
    took: timedelta


def test_json_is_one_document_whatever_the_values_are(capsys: pytest.CaptureFixture[str]) -> None:
    at = datetime(2026, 3, 2, 12, tzinfo=UTC)
    print_json(
        {
            "evil": EVIL + "\x7f\x9b",
            "at": at,
            "day": at.date(),
            "money": Decimal("1.50"),
            "numbers": [1, 2.5, float("nan"), True, None],
            "row": Shown("x", timedelta(minutes=1)),
            "set": {"b", "a"},
            "raw": b"\xff",
            "path": Path("/a"),
            "code": ExitCode.FAULT,
            "by_day": {date(2026, 3, 2): 1},
        }
    )

    text = capsys.readouterr().out
    assert not {"\x1b", "\x07", "\x7f", "\x9b"} & set(text)
    assert json.loads(text) == {
        "evil": EVIL + "\x7f\x9b",
        "at": "2026-03-02T12:00:00+00:00",
        "day": "2026-03-02",
        "money": "1.50",
        "numbers": [1, 2.5, "nan", True, None],
        "row": {"name": "x", "took": 60.0},
        "set": ["a", "b"],
        "raw": "ff",
        "path": "/a",
        "code": 1,
        "by_day": {"2026-03-02": 1},
    }
