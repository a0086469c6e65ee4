"""Lookups: what a declaration says, and what it refuses."""

from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest

from rivermark import Contract, Daily, DeclarationError, Field, Topology
from rivermark.model.ingest import Ingest
from tests.unit.model.declared import ingest, stream


def lookup(**changes: Any) -> Ingest:
    """The last known ride of each id."""
    declared = {"kind": "lookup", "keys": ("id",), "lateness": None}
    return ingest("test/lookup", **(declared | changes))


def test_a_lookup_has_one_row_a_key_its_versions_no_days_and_no_lateness() -> None:
    known = lookup()
    assert (known.admitted.keys, known.admitted.days, known.lateness) == (("id",), None, None)
    assert known.versions.name == "test/lookup_versions"
    assert (known.versions in known.tables, known.versions.keys) == (True, ())
    assert known.versions.schema == known.admitted.schema


def test_events_are_their_own_versions() -> None:
    assert ingest().versions == ingest().admitted
    assert len(ingest().tables) == 4


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"keys": ()}, "lookup 'test/lookup' needs `keys`"),
        ({"keys": ("name",)}, "lookup 'test/lookup': key 'name' must be a required field"),
        ({"keys": ("id", "id")}, "lookup 'test/lookup': a key occurs twice"),
        ({"keys": ("id", "at")}, "lookup 'test/lookup': 'at' is the event time"),
        (
            {"lateness": timedelta(minutes=1)},
            "lookup 'test/lookup': rows of a lookup are never late",
        ),
        (
            {"days": Daily("at", date(2024, 1, 1))},
            "lookup 'test/lookup': only ingests of events have `days`",
        ),
        ({"money": "id"}, "lookup 'test/lookup': only ingests of events have `money`"),
        ({"kind": "events"}, "stream 'test/lookup': only a lookup has `keys`"),
        (
            {"kind": "dump"},
            "stream 'test/lookup': `kind` is the text 'dump'; expected 'events' or 'lookup'",
        ),
    ],
)
def test_what_no_lookup_can_be_is_refused_by_its_name(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(DeclarationError, match=message):
        lookup(**changes)


def test_events_must_state_their_lateness() -> None:
    rides = ingest()
    with pytest.raises(DeclarationError, match="stream 'test/rides': give a lateness, or None"):
        Ingest(
            name=rides.name,
            source=rides.source,
            contract=rides.contract,
            description="Rides.",
            group="test",
        )


@pytest.mark.parametrize("kind", ["append", "refresh"])
def test_a_lookup_is_joined_and_not_followed(kind: str) -> None:
    with pytest.raises(DeclarationError, match=r"'test/lookup', which is a lookup.*static="):
        stream("test/hours", lookup(), kind=kind)
    assert stream("test/hours", static=(lookup(),)).static == (lookup(),)


def test_a_lookups_table_is_not_followed_under_its_own_name() -> None:
    followed = stream("test/hours", lookup().admitted, lateness=timedelta(minutes=1))
    with pytest.raises(DeclarationError, match="are updated by key"):
        Topology([lookup(), followed])


def test_only_a_lookup_may_do_without_an_event_time() -> None:
    zone = Contract(fields=(Field("id", "long", required=True),))

    known = lookup(contract=zone)
    assert known.contract.by_landing
    assert replace(known, owners=("team:us",)).admitted.event_time == "landed_at"
    assert known.admitted.schema["landed_at"].dataType.simpleString() == "timestamp"
    with pytest.raises(DeclarationError, match="its contract names no event time"):
        ingest(contract=zone)
