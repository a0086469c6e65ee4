"""A step that looks each row up in an outside service."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final, Literal

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import StringType, StructField, StructType

from rivermark.model.errors import DeclarationError
from rivermark.operators.enrichment.lookup import (
    Key,
    Lookup,
    LookupFailed,
    ServiceUnavailable,
)
from rivermark.operators.enrichment.pool import Outcome, Terms, pool_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

STATUS: Final = "lookup_status"
ERROR: Final = "lookup_error"


def enrich(
    rows: DataFrame,
    lookup: Lookup,
    on: Sequence[str],
    *,
    in_flight: int = 100,
    timeout: timedelta = timedelta(seconds=5),
    attempts: int = 3,
    ordered: bool = True,
    on_failure: Literal["mark", "fail"] = "mark",
    cache_for: timedelta = timedelta(minutes=1),
    cache_rows: int = 10_000,
) -> DataFrame:
    """Each row with the columns of the `lookup` for its key, the values of the columns `on`.

        def with_campaigns(clicks):
            return enrich(clicks, CAMPAIGNS, on=("ad_id",))

        Stream(
            reads=(CLICKS,), build=with_campaigns,
            writes=(Output(ENRICHED, where=looked_up), Output(FAILED, where=not_looked_up)), ...)

    `lookup_status` is the outcome: `found`, `absent` (also if the key is null), `failed` or `timed
    out`; the last two have null columns and the reason as `lookup_error`. With `on_failure="fail"`
    the batch ends with an error instead, and the next start repeats it. If the error may be
    temporary (the service is down, too slow, or asks for patience), the stream's restart strategy
    starts it again; otherwise a person must.

    Each Python worker has up to `in_flight` requests at a time, over connections that it keeps from
    batch to batch, each within `timeout` and made up to `attempts` times, with growing pauses.
    Equal keys are looked up once, and outcomes are kept for `cache_for`, of up to `cache_rows` keys
    a worker. Rows keep their order; unless `ordered`, those whose outcome is known first leave
    first. The watermark overtakes no row, since a batch ends when its last row has left. A repeated
    batch and a recompute look up again and may find other values.

    Raises:
        DeclarationError: a column is not there, is there twice, or a limit is not above 0.
    """
    names = lookup.schema.fieldNames()
    missing = [name for name in on if name not in rows.columns]
    twice = [name for name in (*names, STATUS, ERROR) if name in rows.columns]
    fault = ""
    if not on:
        fault = "`on` names no column"
    elif missing:
        fault = f"the rows have no column '{missing[0]}'"
    elif twice:
        fault = f"the rows have a column '{twice[0]}' already"
    elif min(in_flight, attempts, lookup.keys_at_once) < 1 or timeout <= timedelta(0):
        fault = "`in_flight`, `attempts`, `timeout` and `keys_at_once` must be above 0"
    if fault:
        raise DeclarationError(f"enrich with {lookup.name}: {fault}")
    added = [StructField(f.name, f.dataType) for f in lookup.schema.fields]
    added += [StructField(STATUS, StringType()), StructField(ERROR, StringType())]
    schema = StructType([*rows.schema.fields, *added])
    terms = Terms(tuple(on), in_flight, timeout, attempts, cache_for, cache_rows)
    step = Enrichment(lookup, terms, ordered, on_failure == "fail", tuple(added))
    return rows.mapInArrow(step, schema)


def looked_up() -> Column:
    """Rows whose key was found, or found to be absent: the condition of an output."""
    return F.col(ERROR).isNull()


def not_looked_up() -> Column:
    """Rows that the service failed for: the condition of an output."""
    return F.col(ERROR).isNotNull()


@dataclass(frozen=True)
class Enrichment:
    """Adds the columns of a lookup to Arrow batches; what an executor runs."""

    lookup: Lookup
    terms: Terms
    ordered: bool
    fails: bool
    added: tuple[StructField, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Each batch enriched, in one piece or in as many as its outcomes come in."""
        pool = pool_of(self.lookup, self.terms)
        for batch in batches:
            columns = [batch.column(name).to_pylist() for name in self.terms.on]
            keys: list[Key] = list(zip(*columns, strict=True))
            places: dict[Key, list[int]] = {}
            for place, key in enumerate(keys):
                places.setdefault(key, []).append(place)
            known: dict[Key, Outcome] = {}
            for outcomes in pool.outcomes(places):
                self._check(outcomes)
                if self.ordered:
                    known |= outcomes
                else:
                    chosen = [place for key in outcomes for place in places[key]]
                    part = batch.take(pa.array(chosen, pa.int64()))
                    yield self._enriched(part, [outcomes[keys[place]] for place in chosen])
            if self.ordered:
                yield self._enriched(batch, [known[key] for key in keys])

    def _check(self, outcomes: dict[Key, Outcome]) -> None:
        """End the batch at a failure, where it was declared so."""
        if self.fails:
            for key, outcome in outcomes.items():
                if outcome.error is not None:
                    shown = ", ".join(
                        f"{name}={value!r}" for name, value in zip(self.terms.on, key, strict=True)
                    )
                    kind = ServiceUnavailable if outcome.passes else LookupFailed
                    raise kind(
                        f"{self.lookup.name}, looked up for {shown}: {outcome.error}",
                        passes=outcome.passes,
                    )

    def _enriched(self, batch: pa.RecordBatch, outcomes: Sequence[Outcome]) -> pa.RecordBatch:
        values: list[list[object]] = [
            [None if o.values is None else o.values[place] for o in outcomes]
            for place in range(len(self.added) - 2)
        ]
        values += [[o.status for o in outcomes], [o.error for o in outcomes]]
        arrays = [
            pa.array(column, to_arrow_type(field.dataType, timezone="UTC"))
            for column, field in zip(values, self.added, strict=True)
        ]
        names = [*batch.schema.names, *(field.name for field in self.added)]
        return pa.RecordBatch.from_arrays([*batch.columns, *arrays], names)
