"""`rivermark savepoint` and `rivermark fork` from the console: no engine is started."""

from __future__ import annotations

import json

from rivermark.model.topology import Topology
from rivermark.runtime.savepoint.fork import forks
from rivermark.runtime.savepoint.store import savepoints
from rivermark.settings import Settings
from tests.unit.cli.conftest import HOURLY, Run
from tests.unit.runtime.savepoint.test_going_back import numbers, ran

NAME = HOURLY.name


def test_a_stream_is_kept_looked_at_and_put_back(
    rivermark: Run, settings: Settings, shop: Topology
) -> None:
    ran(settings, 0, 1)
    planned = rivermark("savepoint", "take", NAME, "--dry-run")
    assert "would be kept, batch 1, 2 data files" in planned.stdout
    assert rivermark("savepoint", "list", NAME).stdout.startswith("there are none")

    made = json.loads(rivermark("savepoint", "take", NAME, "--json").stdout)["savepoints"]
    ran(settings, 2)
    (listed,) = json.loads(rivermark("savepoint", "list", "--json").stdout)["savepoints"]
    described = rivermark("savepoint", "describe", NAME, "latest")

    assert listed["id"] == made[0]["id"]
    assert "batch: 1" in described.stdout
    assert "inputs shop/orders" in described.stdout
    assert "whole" in rivermark("savepoint", "verify", NAME, "latest").stdout
    assert rivermark("savepoint", "delete", NAME, "latest").exit_code == 1
    assert rivermark("savepoint", "resume", NAME, "latest", input="n\n").exit_code == 1
    assert rivermark("savepoint", "resume", NAME, "latest", "--dry-run").exit_code == 0
    assert numbers(settings) == [0, 1, 2]
    done = rivermark("savepoint", "resume", NAME, "latest", "--yes")
    assert done.exit_code == 0, done.output
    assert numbers(settings) == [0, 1]


def test_a_fault_of_a_savepoint_is_exit_code_1(
    rivermark: Run, settings: Settings, shop: Topology
) -> None:
    ran(settings, 0)
    rivermark("savepoint", "take", NAME)
    (made,) = savepoints(settings.lake(), NAME)
    folder = f"{settings.lake().root}/savepoints/{NAME}/{made.id}"
    (settings.home / folder / "checkpoints" / NAME / "0000" / "commits" / "0").unlink()

    looked = rivermark("savepoint", "verify", NAME, made.id, "--json")

    assert looked.exit_code == 1
    assert "commits/0 is missing" in json.loads(looked.stdout)["faults"][0]


def test_a_fork_by_the_name_of_a_stream_is_promoted_or_dropped(
    rivermark: Run, settings: Settings, shop: Topology
) -> None:
    ran(settings, 0, 1)
    rivermark("savepoint", "take", NAME)
    ran(settings, 2)

    assert rivermark("fork", NAME, "latest", "--as", "twin", "--dry-run").exit_code == 0
    assert not forks(settings.lake())
    made = rivermark("fork", NAME, "latest", "--as", "twin")
    assert made.exit_code == 0, made.output
    assert "twin: of shop/hourly" in rivermark("fork", "list").stdout
    compared = rivermark("fork", "compare", "twin", "--from", "2026-03-02", "--json")
    table = json.loads(compared.stdout)["tables"]["shop/hourly"]
    assert (table["unchanged"], table["removed"]) == (2, 1)
    assert rivermark("fork", "make", NAME, "latest", "--as", "two").exit_code == 0
    assert rivermark("fork", "drop", "two", "--yes").exit_code == 0
    done = rivermark("fork", "promote", "twin", "--yes")
    assert done.exit_code == 0, done.output
    assert numbers(settings) == [0, 1]
    assert not forks(settings.lake())
