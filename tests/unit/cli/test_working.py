"""What may take more than five seconds says on a terminal what it does (issue 25, "Also")."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rivermark.cli import console
from rivermark.model.topology import Topology
from tests.unit.cli.conftest import HOURLY, NOON, ONE, Run
from tests.unit.conftest import Put


@pytest.mark.parametrize(
    ("arguments", "doing"),
    [
        (["files", "shop/orders"], "Looking at files"),
        (["sql", "FROM shop.hourly"], "Asking"),
        (["sql", "FROM shop.hourly", "--csv"], "Asking"),
        (["sql", "FROM shop.hourly", "--json"], "Asking"),
        (["sql", "FROM shop.hourly", "--out", "rows.csv"], "Writing rows.csv"),
        (["sql", "--views", "lake.duckdb"], "Looking at tables"),
        (["dead-letters", "list"], "Reading dead letters"),
        (["dead-letters", "send"], "Sending"),
        (["accept-loss", "shop/orders"], "Asking the source of shop/orders"),
        (["reset", "shop/hourly", "--yes"], "Putting shop/hourly aside"),
        (["status"], "Reading tables"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_a_command_says_what_it_does(
    arguments: list[str],
    doing: str,
    rivermark: Run,
    shop: Topology,
    put: Put,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    put(HOURLY.outputs[0].table, {"window_end": NOON + ONE, "orders": 1})
    monkeypatch.chdir(tmp_path)
    said: list[str] = []

    @contextmanager
    def status(_: object, words: str, **__: object) -> Iterator[None]:
        said.append(words)
        yield

    monkeypatch.setattr(type(console.err()), "status", status)

    rivermark(*arguments)

    assert doing in said
