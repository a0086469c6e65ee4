"""Records as the parser takes them: each with what is known of its split."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StringType, StructField, StructType

from rivermark.ingest.parse.contract_parser import ContractParser
from rivermark.lake.arrow_types import arrow_schema
from rivermark.lake.dictionary_texts import with_dictionaries
from rivermark.model.contract import RAW_SCHEMA
from rivermark.model.source import Piece, PlannedSplit, Records, placed

KNOWN: Final = StructType(
    [
        *(field for field in RAW_SCHEMA.fields if field.name not in ("_row", "payload")),
        StructField("_head", StringType()),
    ]
)
"""What is known of a split before its first row is read."""
COLUMNS: Final = StructType([*KNOWN, RAW_SCHEMA["_row"], RAW_SCHEMA["payload"]])
LINES: Final = with_dictionaries(arrow_schema(COLUMNS), KNOWN.fieldNames())
"""Lines in Arrow. Texts of their file are codes: its header may be longer than its lines."""
NO_LINES: Final = LINES.empty_table()


@dataclass(frozen=True)
class KnownSplits:
    """The known facts of some splits, a row each; `names` are their names, in order."""

    names: tuple[str, ...]
    rows: pa.Table

    @classmethod
    def of(
        cls, splits: Sequence[PlannedSplit], now: datetime, is_head: Callable[[PlannedSplit], bool]
    ) -> KnownSplits:
        """By the plan, as read `now`; `is_head` says whether a split's head is no record."""
        rows = [
            {
                "_file": s.name,
                "_ingest_batch": s.batch,
                "_arrival": s.batch,
                "_landed_at": s.landed_at,
                "_ingested_at": now,
                "_format": s.format,
                "_columns": s.columns,
                "_head": s.head if s.head and is_head(s) else None,
            }
            for s in splits
        ]
        known = pa.schema([LINES.field(name) for name in KNOWN.names])
        return cls(tuple(s.name for s in splits), pa.Table.from_pylist(rows, known))

    def only(self, names: Iterable[str]) -> KnownSplits:
        """Of these splits alone."""
        wanted = {*names}
        kept = [n for n, name in enumerate(self.names) if name in wanted]
        return KnownSplits(tuple(self.names[n] for n in kept), self.rows.take(pa.array(kept, "i4")))

    def lines(self, records: Records) -> pa.Table:
        """The records with what is known of their splits."""
        lines = self.rows.take(self._places(records))
        for name in ("_row", "payload"):
            lines = lines.append_column(name, records.rows[name])
        return lines

    def _places(self, records: Records) -> pa.ChunkedArray:
        own = {name: n for n, name in enumerate(self.names)}
        places = pa.array([own[name] for name in records.splits], pa.int32())
        return pc.take(places, records.rows["_split"])


def parsed_records(read: Sequence[Records], known: KnownSplits, parser: ContractParser) -> pa.Table:
    """Records that stand one behind the other, as lines with what the parser adds to them."""
    lines = pa.concat_tables([NO_LINES, *map(known.lines, read)])
    return parser.parse(lines, placed((r.rows.num_rows, r.columns) for r in read))


def slices_of(records: Records, most_bytes: int) -> Iterator[Records]:
    """Records in parts of up to so many bytes; those of columns as they came."""
    count = records.rows.num_rows
    parts = min(records.rows.nbytes // most_bytes + 1, max(count, 1))
    if records.columns or parts == 1:
        yield records
        return
    rows = -(-count // parts)
    for first in range(0, count, rows):
        yield replace(records, rows=records.rows.slice(first, rows))


def read_numbered(
    pieces: Iterable[Piece], read: Callable[[Piece], Iterable[Records]]
) -> Iterator[Records]:
    """The records of pieces that follow each other, each numbered behind the one before."""
    seen: dict[str, int] = {}
    for piece in pieces:
        behind = seen.get(piece.splits[0], 0)
        for records in read(piece if piece.first is not None else replace(piece, first=behind)):
            if records.rows.num_rows:
                seen[records.splits[-1]] = records.rows["_row"][-1].as_py()
            yield records
