"""The trip tables, computed in plain Python from the trip files themselves."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

from tests.oracles.trip_records import (
    FARE,
    HOUR,
    NEW_YORK,
    TIP,
    TOTAL,
    Record,
    flags,
    is_set_aside,
    read_file,
)


def read_trips(folder: Path) -> list[Record]:
    """Every record below a folder that belongs to a table, flagged, twins marked."""
    records = [
        record
        for path in sorted(p for p in folder.rglob("*") if p.is_file())
        for record in read_file(path, path.relative_to(folder).as_posix())
        if not is_set_aside(record)
    ]
    for record in records:
        record.flags = flags(record)
    mark_twins(records)
    return records


def mark_twins(records: Iterable[Record]) -> None:
    """Say of each record whether it repeats, is surplus, refunds or is refunded."""
    trips: dict[tuple[object, ...], list[Record]] = defaultdict(list)
    seen: set[tuple[object, ...]] = set()
    for record in sorted(records, key=lambda r: (r.file, r.row)):
        record.repeat = record.said in seen
        seen.add(record.said)
        trips[record.trip].append(record)
    for twins in trips.values():
        fares = [r.money[FARE] or Decimal(0) for r in twins]
        for place, record in enumerate(sorted(twins, key=dearest)):
            fare = record.money[FARE] or Decimal(0)
            record.surplus = place > 0
            record.refund = given_back(record) and max(fares) > 0
            record.refunded = any(map(given_back, twins)) and fare > 0


def given_back(record: Record) -> bool:
    """Whether fare and total both are below zero."""
    fare, total = record.money[FARE], record.money[TOTAL]
    return fare is not None and total is not None and fare < 0 and total < 0


def dearest(record: Record) -> tuple[object, ...]:
    least = Decimal("-Infinity")
    fare, total = record.money[FARE], record.money[TOTAL]
    return (
        -(least if fare is None else fare),
        -(least if total is None else total),
        record.file,
        record.row,
    )


def added(amounts: Iterable[Decimal | None]) -> Decimal | None:
    """The sum of the amounts that are there; None where none is."""
    there = [a for a in amounts if a is not None]
    return sum(there, Decimal("0.00")) if there else None


def average(amounts: Iterable[Decimal | None]) -> Decimal | None:
    """The average of the amounts that are there, to six decimals."""
    there = [a for a in amounts if a is not None]
    if not there:
        return None
    return (sum(there) / Decimal(len(there))).quantize(Decimal("0.000001"), ROUND_HALF_UP)


def by(records: Iterable[Record], *keys: str) -> dict[tuple[Any, ...], list[Record]]:
    """Records in groups of equal keys: 'hour', 'day' or an attribute."""
    groups: dict[tuple[Any, ...], list[Record]] = defaultdict(list)
    for record in records:
        groups[tuple(key_of(record, key) for key in keys)].append(record)
    return groups


def key_of(record: Record, key: str) -> Any:
    match key:
        case "hour":
            return record.pickup.replace(minute=0, second=0, microsecond=0) + HOUR
        case "pickup_zone":
            return record.zones[0]
        case _:
            return getattr(record, key)


def summary(group: list[Record]) -> dict[str, Any]:
    """Trips and money of a group."""
    trips = [r for r in group if not r.surplus]
    counted = [r for r in group if not r.repeat]
    return {
        "trips": len(trips),
        "surplus": len(group) - len(trips),
        "flagged": sum(bool(r.flags) for r in trips),
        "unpriced": sum(r.money[TOTAL] is None for r in trips),
        "fare": added(r.money[FARE] for r in counted),
        "revenue": added(r.money[TOTAL] for r in counted),
    }


def zone_hours(records: Iterable[Record]) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Summaries by service, pickup zone and end of the hour."""
    return {k: summary(g) for k, g in by(records, "service", "pickup_zone", "hour").items()}


def payment_days(records: Iterable[Record]) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Summaries and tips by service, payment and local day."""
    return {
        key: {**summary(group), "tips": added(r.money[TIP] for r in group if not r.repeat)}
        for key, group in by(records, "service", "payment", "day").items()
    }


def tip_hours(records: Iterable[Record]) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Tips by service and end of the hour."""
    found = {}
    for key, group in by(records, "service", "hour").items():
        trips = [r for r in group if not r.surplus]
        counted = [r for r in group if not r.repeat]
        found[key] = {
            "trips": len(trips),
            "card_trips": sum(r.payment == 1 for r in trips),
            "tipped_trips": sum(r.payment == 1 and (r.money[TIP] or 0) > 0 for r in trips),
            "card_fare": added(r.money[FARE] for r in counted if r.payment == 1),
            "tips": added(r.money[TIP] for r in counted if r.payment == 1),
            "other_tips": added(r.money[TIP] for r in counted if r.payment != 1),
        }
    return found


def local_days(records: Iterable[Record]) -> dict[tuple[Any, ...], dict[str, Any]]:
    """What each service did on each local day, and how long the day was."""
    found = {}
    for key, group in by(records, "service", "day").items():
        trips = [r for r in group if not r.surplus]
        counted = [r for r in group if not r.repeat]
        believed = [r.miles for r in counted if "absurd_distance" not in r.flags]
        driven = [r.miles for r in counted]
        start, end = (midnight(key[1] + timedelta(days=n)) for n in (0, 1))
        found[key] = {
            "hours_in_day": (end - start) // HOUR,
            "records": len(group),
            "repeats": sum(r.repeat for r in group),
            "refunds": sum(r.refund for r in counted),
            **summary(group),
            "average_miles": average(believed),
            "average_miles_all": average(driven),
            "miles": added(believed),
            "miles_all": added(driven),
            "measured": sum(m is not None for m in believed),
            "measured_all": sum(m is not None for m in driven),
            "long_trips": sum("long_trip" in r.flags for r in trips),
            "meters_left_on": sum("meter_left_on" in r.flags for r in trips),
            "ambiguous": sum("ambiguous_local_time" in r.flags for r in trips),
        }
    return found


def midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=NEW_YORK).astimezone(UTC)


def broken_rules(records: Iterable[Record]) -> Counter[tuple[str, str]]:
    """How many records of each file break each rule."""
    return Counter((r.file, name) for r in records for name in r.flags)
