"""Records of a split: their payloads, and the columns of those that were typed before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from pyspark.sql import Row

from rivermark.model.json_text import json_text
from rivermark.model.source import Columns, Piece, PlannedSplit, Records, placed


@dataclass(frozen=True)
class TypedRecords:
    """Rows as JSON objects, with the columns that they were where those are known."""

    payloads: pa.StringArray
    columns: tuple[Columns, ...] = ()

    def __len__(self) -> int:
        return len(self.payloads)

    @property
    def nbytes(self) -> int:
        """Bytes of the payloads and of the columns."""
        return int(self.payloads.nbytes + sum(each.rows.nbytes for each in self.columns))


Payloads: TypeAlias = "Sequence[str] | pa.StringArray | TypedRecords"
"""The records of a split, in their order."""


def joined(parts: Sequence[TypedRecords]) -> TypedRecords:
    """Records one behind the other."""
    payloads = [part.payloads for part in parts]
    whole = pa.concat_arrays(payloads) if parts else pa.array([], pa.string())
    return TypedRecords(whole, placed([(len(part), part.columns) for part in parts]))


def numbered(split: str, payloads: Payloads, first: int) -> Records:
    """Records of one split that stand behind `first` others."""
    count = len(payloads)
    rows = pa.table(
        {
            "_split": pa.array(np.zeros(count, np.int32)),
            "_row": pa.array(np.arange(first + 1, first + count + 1, dtype=np.int64)),
            "payload": _texts(payloads),
        }
    )
    return Records((split,), rows, payloads.columns if isinstance(payloads, TypedRecords) else ())


@dataclass(frozen=True, kw_only=True)
class HeldPiece(Piece):
    """A split whose records the driver had to read itself; they travel with the piece."""

    payloads: Payloads = field(repr=False)

    def read(self) -> Iterator[Records]:
        """The records, all at once."""
        yield numbered(self.splits[0], self.payloads, 0)


def held(splits: Sequence[PlannedSplit], payloads: Sequence[Payloads]) -> list[Piece]:
    """The records of splits that the driver has read."""
    return [
        HeldPiece(splits=(split.name,), weight=_weight(own), payloads=own)
        for split, own in zip(splits, payloads, strict=True)
    ]


def _weight(payloads: Payloads) -> int:
    return payloads.nbytes if hasattr(payloads, "nbytes") else sum(map(len, payloads))


def _texts(payloads: Payloads) -> pa.StringArray:
    if isinstance(payloads, TypedRecords):
        return payloads.payloads
    return payloads if isinstance(payloads, pa.Array) else pa.array(payloads, pa.string())


def json_payload(record: Mapping[str, Any]) -> str:
    """A record as one JSON object, with the texts of `rivermark.model.json_text`."""
    return json_text(Row(record=record).asDict(recursive=True)["record"]).decode()
