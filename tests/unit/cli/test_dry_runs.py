"""A dry run says what would be done and changes no file; without it the command does just that."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rivermark.cli.deployment import attempted, suited
from rivermark.ingest.split_outcomes import INGEST_FILES
from rivermark.model.errors import RivermarkError, UnknownStream, WrongUse
from rivermark.model.stream import AnyStream, Ingest
from rivermark.model.topology import Topology
from rivermark.runtime.checkpoint.generation import open_generation, read_generation
from rivermark.runtime.supervision.desired_state import DesiredStore
from rivermark.settings import Settings
from tests.unit.cli.conftest import HOURLY, NOON, ORDERS, SHOP, Run
from tests.unit.conftest import Put

COMMANDS = [
    ("run --dry-run", "shop/hourly"),
    ("pause shop --dry-run", "group 'shop' would be paused; it is desired run now"),
    ("resume --group shop --dry-run", "group 'shop' would run"),
    ("merge-late --dry-run", "no late row"),
    ("retake shop/orders a.json --dry-run", "files that would be read again"),
    ("retake a.json --group shop --dry-run", "a.json"),
    ("reset shop/hourly --dry-run", "shop/hourly, shop/busiest: would get new checkpoints"),
    ("reset --group reports --dry-run", "shop/busiest: would get"),
    ("accept --group shop --dry-run", "its next start would take the state"),
    ("accept-loss --group shop --dry-run", "shop/orders: nothing is gone"),
    ("erase order_id=2 --dry-run", "shop/orders"),
    ("upkeep --group shop --dry-run", "dry run, every version"),
    ("fsck --repair --dry-run", "0 faults"),
]


def files_of(home: Path) -> dict[Path, bytes]:
    """Every file with its content, but for locks, which are empty and stay."""
    files = (path for path in sorted(home.rglob("*")) if path.is_file() and path.suffix != ".lock")
    return {path: path.read_bytes() for path in files}


def test_a_dry_run_changes_nothing(
    rivermark: Run, shop: Topology, settings: Settings, put: Put
) -> None:
    for n in range(3):
        put(ORDERS.admitted, {"order_id": n, "at": NOON, "_file": "a.json", "_ingest_batch": 0})
    counts = {"rows": 3, "admitted": 3, "late": 0, "quarantined": 0, "ingest_batch": 0}
    put(INGEST_FILES, {"stream": "shop/orders", "file": "a.json", "path": "/a.json", **counts})
    open_generation(settings.lake(), HOURLY, 2)
    DesiredStore(settings.state).set("shop", "run", by="ada", reason="opening day")
    before = files_of(settings.home)

    for command, text in COMMANDS:
        result = rivermark(*command.split())
        assert result.exit_code == 0, (command, result.output)
        assert text in result.stdout, command
        document = rivermark(*command.split(), "--json")
        assert document.exit_code == 0, (command, document.output)
        assert isinstance(json.loads(document.stdout), dict), command
        assert files_of(settings.home) == before, command

    assert rivermark("reset", "shop/hourly", "--yes", "--json").exit_code == 0
    generation = read_generation(settings.lake(), HOURLY)
    assert generation is not None
    assert generation.number == 1
    assert rivermark("pause", "--group", "shop").exit_code == 0
    assert DesiredStore(settings.state).get("shop").state == "paused"


def an_ingest(stream: AnyStream) -> str:
    if isinstance(stream, Ingest):
        return stream.name
    raise RivermarkError(f"{stream.name} is none")


def test_a_group_goes_without_what_does_not_fit_and_a_name_does_not() -> None:
    assert suited(SHOP, None, ["shop"], an_ingest) == ["shop/orders"]
    assert suited(SHOP, ["shop/orders"], ["shop", "reports"], an_ingest) == ["shop/orders"]
    with pytest.raises(RivermarkError, match="shop/hourly is none"):
        suited(SHOP, ["shop/hourly"], ["shop"], an_ingest)
    with pytest.raises(RivermarkError, match="shop/busiest is none"):
        suited(SHOP, None, ["reports"], an_ingest)
    with pytest.raises(UnknownStream, match="kitchen"):
        suited(SHOP, None, ["kitchen"], an_ingest)
    with pytest.raises(WrongUse, match="no stream was named"):
        suited(SHOP, [], None, an_ingest)


def test_the_error_of_one_of_several_keeps_none_of_the_others() -> None:
    results, errors = attempted(SHOP.streams, an_ingest)

    assert results == ["shop/orders"]
    assert [str(error) for error in errors] == ["shop/hourly is none", "shop/busiest is none"]
    with pytest.raises(RivermarkError, match="shop/busiest is none"):
        attempted(SHOP.streams[1:], an_ingest)
