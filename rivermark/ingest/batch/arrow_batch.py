"""A parsed batch in the driver's memory, column by column. For batches of everyday size.

Each further Spark job over a small batch costs tens of milliseconds warm and seconds cold, whatever
its size; counting, numbering and dividing 200,000 rows in Arrow costs less than one of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rivermark.ingest.batch.base import AHEAD, META_COLUMNS, RAW_COLUMNS, ParsedBatch
from rivermark.ingest.parse.problems import DETAILS, PROBLEMS
from rivermark.ingest.split_statistics import SplitStatistics
from rivermark.ingest.watermark import Bounds
from rivermark.model.stream import Ingest
from rivermark.model.watermark import WATERMARK_AFTER

Mask = npt.NDArray[np.bool_]
Micros = npt.NDArray[np.int64]
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MICRO: Final = timedelta(microseconds=1)
NEVER: Final = np.iinfo(np.int64).min
ALWAYS: Final = np.iinfo(np.int64).max


class ArrowBatch(ParsedBatch):
    """Holds the rows as one Arrow table, and marks them with numpy."""

    def __init__(self, rows: pa.Table, ingest: Ingest) -> None:
        """Take the parsed rows, in the order of their lines where `_row` numbers them already."""
        super().__init__(ingest)
        self._take(rows)

    def _take(self, rows: pa.Table) -> None:
        self._rows = rows
        names = rows["_file"].combine_chunks().dictionary_encode()
        self._splits: list[str] = names.dictionary.to_pylist()
        self._code = names.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        self._good: Mask = _bools(pc.equal(pc.list_value_length(rows[PROBLEMS]), 0))
        self._micros: Micros = _micros_of(rows[self.time], 0)
        self._marks: Micros | None = (
            _micros_of(rows[self.mark_field], NEVER) if self.mark_field else None
        )
        none: Mask = np.zeros(rows.num_rows, np.bool_)
        self._late, self._ahead = none, none
        self._watermark: Micros = np.full(rows.num_rows, NEVER)

    def statistics(self) -> dict[str, SplitStatistics]:
        """Count along each split, number its records, and leave out what is no event."""
        record = _bools(self._rows["_record"])
        statistics = {}
        for code, name in enumerate(self._splits):
            own = self._code == code
            good = own & record & self._good
            times = self._micros[good]
            rows = int((own & record).sum())
            statistics[name] = SplitStatistics(
                rows=rows,
                quarantined=rows - int(good.sum()),
                skipped=int(own.sum()) - rows,
                oldest=_moment(times.min()) if times.size else None,
                newest=_moment(times.max()) if times.size else None,
                mark=self._latest_mark(good),
            )
        if "_row" not in self._rows.column_names:
            self._rows = self._rows.append_column("_row", pa.array(self._line_numbers()))
        if not record.all():
            self._take(_where(self._rows, record))
        return statistics

    def _line_numbers(self) -> npt.NDArray[np.int64]:
        """Places from 1: parts of a split follow each other in the order of their `_mid`."""
        mid: Micros = self._rows["_mid"].to_numpy()
        order = np.lexsort((mid, self._code))
        codes = self._code[order]
        starts = np.searchsorted(codes, codes, side="left")
        numbers = np.empty_like(mid)
        numbers[order] = np.arange(len(mid)) - starts + 1
        return numbers

    def newest_until(self, split: str, ceiling: datetime) -> datetime | None:
        """The largest of the split's good times that the ceiling allows."""
        own = self._code == self._splits.index(split)
        times = self._micros[own & self._good & (self._micros <= _micros(ceiling))]
        return _moment(times.max()) if times.size else None

    def mark_until(self, split: str, ceiling: datetime) -> datetime | None:
        """The latest mark of the split's good rows that the ceiling allows."""
        own = self._code == self._splits.index(split)
        return self._latest_mark(own & self._good & (self._micros <= _micros(ceiling)))

    def _latest_mark(self, rows: Mask) -> datetime | None:
        latest = NEVER if self._marks is None else self._marks[rows].max(initial=NEVER)
        return _moment(latest) if latest > NEVER else None

    def mark(self, bounds: Mapping[str, Bounds]) -> dict[str, tuple[int, int]]:
        """Compare each row's time with the bounds of its split."""
        if not bounds:
            return {}
        by_code = [bounds.get(name, Bounds()) for name in self._splits]
        low = np.array([_micros(b.watermark) if b.watermark else NEVER for b in by_code])
        high = np.array([_micros(b.ceiling) if b.ceiling else ALWAYS for b in by_code])
        self._watermark = low[self._code]
        self._ahead = self._good & (self._micros > high[self._code])
        self._late = self._good & ~self._ahead & (self._micros <= self._watermark)
        return {
            name: (int(self._late[self._code == c].sum()), int(self._ahead[self._code == c].sum()))
            for c, name in enumerate(self._splits)
            if name in bounds
        }

    def raw(self) -> pa.Table:
        """Every event as it came."""
        return self._rows.select(list(RAW_COLUMNS))

    def admitted(self) -> pa.Table:
        """Good, and neither late nor ahead."""
        return self._selected(self._good & ~self._late & ~self._ahead)

    def late(self) -> pa.Table:
        """Late, with the watermark they missed."""
        mask = self._late
        watermark = self._watermark[mask]
        by = watermark // 1000 - self._micros[mask] // 1000
        rows = self._selected(mask)
        times = pa.array(watermark, pa.int64()).cast(pa.timestamp("us", "UTC"))
        return rows.append_column("_watermark", times).append_column("_late_by_ms", pa.array(by))

    def _selected(self, mask: Mask) -> pa.Table:
        """These rows by the columns of the admitted table."""
        rows = _where(self._rows.select(list(self.admitted_columns)), mask)
        if not self.carries:
            return rows
        left = [self.after.get(name) for name in self._splits]
        after = pa.array(left, pa.timestamp("us", "UTC")).take(pa.array(self._code[mask]))
        return rows.append_column(WATERMARK_AFTER.name, after)

    def quarantined(self) -> pa.Table:
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
            "event_time": rows[self.time],
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


def _micros(moment: datetime) -> int:
    return (moment - EPOCH) // MICRO


def _moment(micros: int | np.int64) -> datetime:
    return EPOCH + int(micros) * MICRO
