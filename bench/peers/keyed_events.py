"""The events that process functions are measured with: readings and fares of 200,000 keys.

A size of N gives N readings and N fares, of N/5 sensors and drivers each and of 200,000 at most.
What holds by construction, beside what holds of the other events (events.py):

- readings come a million a day, from each sensor in turn: two of one sensor are minutes apart, so
  they arrive in the order of their time although all arrive up to 60 s late;
- fares come a million an hour, about five an hour from each driver, so that all drivers have state
  and a timer at a time; the first hour is half over when they begin;
- the two files that Flink reads are dealt by key, as a log's partitions are: a key's events keep
  their order.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

import numpy as np

from bench.peers import events
from bench.peers.events import (
    Columns,
    arrived,
    deal,
    end_of,
    lay_log,
    typed,
    write_once,
    write_parts,
)
from bench.peers.workloads import BEGIN, DAY, HOUR, MINUTE

KEYS: Final = 200_000
EVENTS_A_KEY: Final = 5
STEP: Final = DAY // events.EVENTS_A_DAY
"""Milliseconds from one reading to the next, of whatever sensor."""
FARES_AN_HOUR: Final = 1_000_000
KEY_OF: Final = {"wide_readings": "sensor_id", "wide_fares": "driver_id"}


def prepare_keyed(folder: Path, size: int, seed: int = 11) -> dict[str, int]:
    """Write the events of that size unless they exist; returns the rows of each stream."""
    return write_once(folder, lambda made: write_streams(made, size, seed))


def keyed_generation() -> str:
    """Changes whenever these events may."""
    text = Path(__file__).read_bytes() + events.generation().encode()
    return hashlib.sha256(text).hexdigest()[:8]


def write_streams(folder: Path, size: int, seed: int) -> dict[str, int]:
    """All layouts; returns the rows of each stream."""
    rows = {}
    draw = np.random.Generator(np.random.PCG64(seed))
    apart = STEP * keys_of(size)
    for name, columns, latest in (
        ("wide_readings", readings(draw, size), min(MINUTE, apart - 1)),
        ("wide_fares", fares(draw, size), MINUTE),
    ):
        key = KEY_OF[name]
        rows_in_order = arrived(draw, columns, key, latest=latest, end=end_of(size) + DAY)
        table = typed(name, rows_in_order)
        rows[name] = table.num_rows
        write_parts(folder / "parquet" / name, table)
        deal(folder / "split" / name, table, 1, table[key].to_numpy()[:-1])
        lay_log(folder, name)
    return rows


def keys_of(size: int) -> int:
    """How many sensors and drivers there are."""
    return max(min(KEYS, size // EVENTS_A_KEY), 1)


def readings(draw: np.random.Generator, size: int) -> Columns:
    """Each sensor in turn, in another order than that of their ids."""
    sensor = draw.permutation(keys_of(size))[np.arange(size) % keys_of(size)]
    return {
        "sensor_id": sensor,
        "event_ms": BEGIN + np.arange(size) * STEP,
        "temperature": np.round((65 + (sensor % 20) + draw.normal(0, 5, size)) * 64) / 64,
    }


def fares(draw: np.random.Generator, size: int) -> Columns:
    """Any driver at any time."""
    span = HOUR * size // min(FARES_AN_HOUR, keys_of(size) * EVENTS_A_KEY)
    return {
        "driver_id": draw.integers(0, keys_of(size), size),
        "event_ms": BEGIN + HOUR // 2 + np.sort(draw.integers(0, span, size)),
        "tip": draw.integers(0, 60, size) * 0.25,
    }
