"""A parsed batch in memory, column by column: of the driver, or a part of one in a task."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rivermark.ingest.batch.base import (
    AHEAD,
    Kind,
    Marked,
    ParsedBatch,
    RowShape,
    SplitStatistics,
    may_exceed,
)
from rivermark.ingest.parse.problems import DETAILS, PROBLEMS
from rivermark.ingest.watermark import Bounds
from rivermark.lake.batch_writer import TableWriter
from rivermark.lake.dictionary_texts import as_dictionary
from rivermark.model.contract import META, RAW_SCHEMA
from rivermark.model.time import micros_of, moment_of_micros
from rivermark.model.watermark import WATERMARK_AFTER

Mask = npt.NDArray[np.bool_]
Micros = npt.NDArray[np.int64]
NEVER: Final = np.iinfo(np.int64).min
ALWAYS: Final = np.iinfo(np.int64).max
RAW_COLUMNS: Final = tuple(RAW_SCHEMA.fieldNames())
META_COLUMNS: Final = tuple(f.name for f in META)


class ArrowBatch(ParsedBatch):
    """Holds the rows as one Arrow table, and marks them with numpy."""

    def __init__(self, rows: pa.Table, shape: RowShape) -> None:
        """Take the parsed lines, and count along each split; what is no event is left out."""
        self._shape = shape
        self._after: Mapping[str, datetime] = {}
        self._take(rows)
        record = _bools(rows["_record"])
        self._statistics = {
            name: self._figures(self._code == code, record)
            for code, name in enumerate(self._splits)
        }
        if not record.all():
            self._take(_where(rows, record))

    def _take(self, rows: pa.Table) -> None:
        self._rows = rows
        names = as_dictionary(rows["_file"])
        codes = names.indices.to_numpy()
        used = np.bincount(codes, minlength=len(names.dictionary)) > 0
        self._splits: list[str] = names.dictionary.filter(pa.array(used)).to_pylist()
        self._code = (np.cumsum(used) - 1)[codes]
        self._good: Mask = _bools(pc.equal(pc.list_value_length(rows[PROBLEMS]), 0))
        self._micros: Micros = _micros_of(rows[self._shape.time], 0)
        self._marks: Micros | None = (
            _micros_of(rows[self._shape.mark], NEVER) if self._shape.mark else None
        )
        none: Mask = np.zeros(rows.num_rows, np.bool_)
        self._late, self._ahead = none, none
        self._watermark: Micros = np.full(rows.num_rows, NEVER)

    def _figures(self, own: Mask, record: Mask) -> SplitStatistics:
        good = own & record & self._good
        times = self._micros[good]
        rows = int((own & record).sum())
        return SplitStatistics(
            rows=rows,
            quarantined=rows - int(good.sum()),
            skipped=int(own.sum()) - rows,
            oldest=moment_of_micros(int(times.min())) if times.size else None,
            newest=moment_of_micros(int(times.max())) if times.size else None,
            mark=self._latest_mark(good),
        )

    def statistics(self) -> Mapping[str, SplitStatistics]:
        """As they were counted."""
        return self._statistics

    def newest_until(self, split: str, ceiling: datetime) -> datetime | None:
        """The largest of the split's good times that the ceiling allows."""
        own = self._code == self._splits.index(split)
        times = self._micros[own & self._good & (self._micros <= micros_of(ceiling))]
        return moment_of_micros(int(times.max())) if times.size else None

    def mark_until(self, split: str, ceiling: datetime) -> datetime | None:
        """The latest mark of the split's good rows that the ceiling allows."""
        own = self._code == self._splits.index(split)
        return self._latest_mark(own & self._good & (self._micros <= micros_of(ceiling)))

    def _latest_mark(self, rows: Mask) -> datetime | None:
        latest = NEVER if self._marks is None else self._marks[rows].max(initial=NEVER)
        return moment_of_micros(int(latest)) if latest > NEVER else None

    def mark(self, bounds: Mapping[str, Bounds]) -> Marked:
        """Compare each row's time with the bounds of its split."""
        self._after = {name: own.after for name, own in bounds.items() if own.after}
        bounds = {n: b for n, b in bounds.items() if may_exceed(self._statistics.get(n), b)}
        if not bounds:
            return {}
        by_code = [bounds.get(name, Bounds()) for name in self._splits]
        low = np.array([micros_of(b.watermark) if b.watermark else NEVER for b in by_code])
        high = np.array([micros_of(b.ceiling) if b.ceiling else ALWAYS for b in by_code])
        self._watermark = low[self._code]
        self._ahead = self._good & (self._micros > high[self._code])
        self._late = self._good & ~self._ahead & (self._micros <= self._watermark)
        return {
            name: (int(self._late[self._code == c].sum()), int(self._ahead[self._code == c].sum()))
            for c, name in enumerate(self._splits)
            if name in bounds
        }

    def rows(self, kind: Kind) -> pa.Table:
        """The rows of a kind, by the columns of its table."""
        match kind:
            case "raw":
                return self._rows.select(list(RAW_COLUMNS))
            case "admitted":
                return self._selected(self._good & ~self._late & ~self._ahead)
            case "late":
                return self._late_rows()
            case "quarantined":
                return self._quarantined()

    def write(
        self, kind: Kind, writer: TableWriter, batch: int, metadata: dict[str, Any] | None = None
    ) -> None:
        """Commit the rows of a kind as one file."""
        if not writer.has(batch):
            writer.append_once(self.rows(kind), batch, metadata=metadata)

    def _late_rows(self) -> pa.Table:
        """Late, with the watermark they missed."""
        mask = self._late
        watermark = self._watermark[mask]
        by = watermark // 1000 - self._micros[mask] // 1000
        rows = self._selected(mask)
        times = pa.array(watermark, pa.int64()).cast(pa.timestamp("us", "UTC"))
        return rows.append_column("_watermark", times).append_column("_late_by_ms", pa.array(by))

    def _selected(self, mask: Mask) -> pa.Table:
        """These rows by the columns of the admitted table."""
        rows = _where(self._rows.select(list(self._shape.columns)), mask)
        if not self._shape.carries:
            return rows
        left = [self._after.get(name) for name in self._splits]
        after = pa.array(left, pa.timestamp("us", "UTC")).take(pa.array(self._code[mask]))
        return rows.append_column(WATERMARK_AFTER.name, after)

    def _quarantined(self) -> pa.Table:
        """With a problem, or ahead."""
        mask = ~self._good | self._ahead
        rows = _where(self._rows, mask)
        ahead = self._ahead[mask]
        problems = rows[PROBLEMS].to_pylist()
        reasons = [[AHEAD] if a else p for a, p in zip(ahead, problems, strict=True)]
        columns = {
            **{name: rows[name] for name in META_COLUMNS},
            "reasons": pa.array(reasons, pa.list_(pa.string())),
            "details": rows[DETAILS],
            "event_time": rows[self._shape.time],
            "payload": rows["payload"],
        }
        return pa.table(columns)


def _where(rows: pa.Table, mask: Mask) -> pa.Table:
    """The rows of a mask; not copied where they follow each other, as all behind a header do."""
    places = np.flatnonzero(mask)
    if not len(places):
        return rows.slice(0, 0)
    first, last = int(places[0]), int(places[-1])
    if len(places) == last - first + 1:
        return rows.slice(first, len(places))
    return rows.filter(pa.array(mask))


def _bools(values: Any) -> Mask:
    mask: Mask = pc.fill_null(values, False).to_numpy(zero_copy_only=False).astype(np.bool_)
    return mask


def _micros_of(times: pa.ChunkedArray, missing: int) -> Micros:
    micros: Micros = pc.fill_null(
        times.cast(pa.timestamp("us", "UTC")).cast(pa.int64()), missing
    ).to_numpy()
    return micros
