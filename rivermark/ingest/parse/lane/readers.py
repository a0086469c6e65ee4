"""The readers of plain values, by the names of the readers that fields declare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rivermark.ingest.parse.cast import Target
from rivermark.ingest.parse.cutter import Spelled
from rivermark.ingest.parse.lane.column import Column, Read
from rivermark.ingest.parse.lane.lane import Lane
from rivermark.ingest.parse.lane.lines import Lines, Mask, Places
from rivermark.ingest.parse.lane.numbers import decimals, doubles, integers
from rivermark.ingest.parse.lane.times import SECOND, instants, times
from rivermark.ingest.parse.lane.values import Values
from rivermark.ingest.parse.lane.words import booleans, texts
from rivermark.ingest.parse.lane.zones import Zone
from rivermark.lake.schema import arrow_type
from rivermark.model.contract import Contract, Field
from rivermark.model.field_readers import NamedReader, reader_for
from rivermark.model.time_readers import FEWEST_MILLIS, FIRST_MILLIS, LAST_MILLIS


def reader_of(field: Field, zones: Mapping[str, Zone]) -> Read | None:
    """What reads the field's plain values; None where its reader is known to Spark alone."""
    named = field.read or reader_for(field.type)
    if not isinstance(named, NamedReader):
        return None
    if named.type != field.type:
        return None
    kind = arrow_type(field.type)
    match named.kind:
        case "text":
            return texts
        case "integer":
            return partial(integers, kind=kind, comma=named.decimal_comma)
        case "decimal":
            return partial(decimals, kind=kind, comma=named.decimal_comma)
        case "number":
            return partial(doubles, kind=kind, comma=named.decimal_comma)
        case "boolean":
            return booleans
        case "instant":
            return utc_times
        case "wall":
            return partial(local_times, zone=zones[named.zone]) if named.zone in zones else None
        case "millis":
            return epoch_millis


def lane_of(
    contract: Contract, spelled: Sequence[Spelled], delimiter: str, zones: Mapping[str, Zone]
) -> Lane:
    """The lane of a contract; `zones` are those of `zones_of` that are known."""
    return Lane(
        [
            Column(field.name, own.keys, own.nulls, field.required, reader_of(field, zones))
            for field, own in zip(contract.fields, spelled, strict=True)
        ],
        delimiter,
        contract.max_row_bytes,
        [_target(field, own, zones) for field, own in zip(contract.fields, spelled, strict=True)],
    )


def _target(field: Field, spelled: Spelled, zones: Mapping[str, Zone]) -> Target:
    """The field as columns are cast to it."""
    read = reader_of(field, zones)
    named = field.read or reader_for(field.type)
    reader = named if read is not None and isinstance(named, NamedReader) else None

    def of_texts(column: pa.StringArray) -> tuple[pa.Array, Mask]:
        lines = Lines(pc.fill_null(column, ""))
        absent = column.is_null().to_numpy(zero_copy_only=False)
        return (read or texts)(Values(lines, lines.starts, lines.ends, absent))

    wall = None
    if reader is not None and reader.kind == "wall":
        wall = partial(_of_wall_clock, zone=zones[reader.zone])
    return Target(spelled, field.required, arrow_type(field.type), reader, of_texts, wall)


def _of_wall_clock(micros: Places, zone: Zone) -> tuple[Places, Mask]:
    offsets, clear = zone.offsets(micros // SECOND)
    return micros - offsets * SECOND, clear


def zones_of(contract: Contract) -> set[str]:
    """The zones whose wall-clock times the contract reads."""
    return {
        field.read.zone
        for field in contract.fields
        if isinstance(field.read, NamedReader) and field.read.kind == "wall"
    }


def utc_times(values: Values) -> tuple[pa.Array, Mask]:
    """Instants; those without a zone are in UTC."""
    read = times(values)
    return instants(read.micros, read.plain), read.plain


def local_times(values: Values, zone: Zone) -> tuple[pa.Array, Mask]:
    """Instants of wall-clock times that are not beside a change of the clock."""
    read = times(values)
    offsets, clear = zone.offsets(read.micros // SECOND)
    good = read.plain & (read.zoned | clear)
    return instants(read.micros - np.where(read.zoned, 0, offsets) * SECOND, good), good


def epoch_millis(values: Values) -> tuple[pa.Array, Mask]:
    """Instants of plain whole numbers of milliseconds."""
    column, good = integers(values, pa.int64())
    millis = column.fill_null(0).to_numpy()
    good = good & (np.abs(millis) >= FEWEST_MILLIS)
    good &= (millis >= FIRST_MILLIS) & (millis <= LAST_MILLIS)
    return instants(np.where(good, millis, 0) * 1000, good), good
