"""Saying that the state of a stream means what is declared now."""

from __future__ import annotations

import json
from pathlib import Path

from rivermark.model.topology import Topology
from rivermark.runtime.checkpoint.generation import open_generation
from rivermark.runtime.checkpoint.identity import Identity, check_identity, read_identity
from rivermark.runtime.supervision.lease import Lease
from rivermark.settings import Settings
from tests.unit.cli.conftest import HOURLY, TYPED, Run


def test_b018_the_record_of_what_made_the_state_is_dropped_when_a_person_says_so(
    rivermark: Run, shop: Topology, settings: Settings
) -> None:
    lake = settings.lake()
    open_generation(lake, HOURLY, 2)
    checkpoint = lake.checkpoint(HOURLY.name, 0)
    Path(checkpoint).mkdir(parents=True)
    check_identity(HOURLY.name, checkpoint, Identity({"plan": "Aggregate"}))

    assert rivermark("accept", HOURLY.name, input="n\n").exit_code == 1
    assert read_identity(checkpoint, HOURLY.name) is not None
    with Lease(settings.state, HOURLY.name).acquire("live"):
        assert "already run by run live" in rivermark("accept", HOURLY.name, "--yes").stderr
    accepted = rivermark("accept", HOURLY.name, "--json", input="y\n")
    assert accepted.exit_code == 0, accepted.stderr
    document = json.loads(accepted.stdout.removeprefix(TYPED))
    assert document == {"streams": [{"stream": HOURLY.name, "accepted": True}]}
    assert "Does the state of shop/hourly mean" in accepted.stderr
    assert read_identity(checkpoint, HOURLY.name) is None
    assert "no record" in rivermark("accept", HOURLY.name, "--yes").stdout
