"""From raw rows to typed ones: what each payload says, and everything that is wrong with it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from rivermark.ingest.spark_internals import CachedColumns
from rivermark.model.contract import FLAGS, Contract, Field
from rivermark.model.field_readers import reader_for

PROBLEMS: Final = "_problems"
DETAILS: Final = "_details"
PLACE: Final = "_place"
"""Where a line stood among those that were sent to be parsed alone."""
END: Final = "\u0002"
"""Put behind a CSV line: it must come out as the value after the last column, or the line has too
few values, too many, or a quote that never closes. Spark alone fills up and cuts in silence."""

MOST_VALUES: Final = 20_000
"""No CSV line has more values than this."""
EARLIEST: Final = datetime(10, 1, 1, tzinfo=UTC)
"""Rows with event times before it are quarantined: near year 1 a zone leads out of what Python can
hold."""


@dataclass(frozen=True)
class Head:
    """The shape that payloads of one kind of file have: format, and column names where known."""

    format: str
    columns: str | None

    @property
    def names(self) -> list[str]:
        """The column names in the file's own order and spelling."""
        return list(json.loads(self.columns)) if self.columns else []


class Parser:
    """Parses raw rows against one contract.

    The expressions are built once for each set of heads and used again for every batch: building
    them takes thousands of calls into the JVM, which cost more than parsing a small batch.
    """

    def __init__(self, contract: Contract, delimiter: str) -> None:
        self._contract = contract
        self._delimiter = delimiter
        self._steps: dict[tuple[frozenset[Head], tuple[str, ...]], list[CachedColumns]] = {}
        self._shapes: dict[frozenset[Head], tuple[list[Column], Column]] = {}
        self._typed: list[Column] | None = None
        self._checked: list[Column] | None = None
        self._alone: CachedColumns | None = None

    def parse(
        self, raw: DataFrame, heads: Iterable[Head], columns: Sequence[str] | None = None
    ) -> DataFrame:
        """Add the typed fields, `flags`, `_problems` (why a row is quarantined) and `_details`.

        `raw` has `payload`, `_format`, `_columns`, `_landed_at` and `_file`; `columns` names all it
        has, where that is known. Nothing is dropped and nothing raises: a row's problems are named
        in the order malformed, fields, time, rules.
        """
        names = tuple(raw.columns if columns is None else columns)
        which = (frozenset(heads), names)
        if which not in self._steps:
            kept = [F.col(name) for name in names]
            cuts, cells = self._cuts_and_cells(which[0])
            # Cut first, then pick: in one projection Spark gives each picked field a parse of its
            # own (64,215 Parquet rows of 30 fields: 42 CPU-s against 5).
            self._steps[which] = [
                CachedColumns([*kept, *cuts]),
                CachedColumns([*kept, cells]),
                CachedColumns([*kept, F.col("_cells"), *self._typed_columns()]),
                CachedColumns([*kept, *self._checked_columns()]),
            ]
        rows = raw
        for step in self._steps[which]:
            rows = step.of(rows)
        return rows

    def parse_alone(
        self, raw: DataFrame, heads: Iterable[Head], columns: Sequence[str]
    ) -> DataFrame:
        """`_place`, the columns that parsing adds, and whether a line is an event (`_record`)."""
        if self._alone is None:
            names = [*(f.name for f in self._contract.fields), FLAGS, PROBLEMS, DETAILS]
            self._alone = CachedColumns(
                [F.col(PLACE), *(F.col(name) for name in names), is_record().alias("_record")]
            )
        return self._alone.of(self.parse(raw, heads, columns))

    def _cuts_and_cells(self, heads: frozenset[Head]) -> tuple[list[Column], Column]:
        if heads not in self._shapes:
            cuts, cells = [], F.lit(None)
            for n, head in enumerate(sorted(heads, key=lambda h: (h.format, h.columns or ""))):
                same = F.col("_columns").eqNullSafe(F.lit(head.columns))
                own = (F.col("_format") == head.format) & same
                row = cut_of(head, self._contract.fields, self._delimiter)
                cuts.append(F.when(own, row).alias(f"_cut{n}"))
                picked = cells_of(head, self._contract.fields, F.col(f"_cut{n}"))
                cells = F.when(own, picked).otherwise(cells)
            self._shapes[heads] = cuts, cells.alias("_cells")
        return self._shapes[heads]

    def _typed_columns(self) -> list[Column]:
        if self._typed is None:
            self._typed = [value_of(f).alias(f.name) for f in self._contract.fields]
        return self._typed

    def _checked_columns(self) -> list[Column]:
        if self._checked is None:
            rules = [r for r in self._contract.rules if r.action == "flag"]
            self._checked = [
                *[F.col(f.name) for f in self._contract.fields],
                named((r.name, r.broken()) for r in rules).alias(FLAGS),
                named(problems(self._contract)).alias(PROBLEMS),
                unreadable_details(self._contract.fields).alias(DETAILS),
            ]
        return self._checked


def is_record() -> Column:
    """Whether a line is an event, and neither empty nor its file's header line (`_head`)."""
    bare = F.regexp_replace("payload", "^\ufeff", "")
    return (F.trim("payload") != "") & ~F.coalesce(bare == F.col("_head"), F.lit(False))


def cut_of(head: Head, fields: Sequence[Field], delimiter: str) -> Column:
    """A payload of this shape as a struct of texts."""
    payload = F.col("payload")
    if head.format == "text":
        return F.struct(payload.alias("text"))
    if head.format == "csv":
        schema = ", ".join([*(f"c{i} string" for i in range(len(head.names))), "_end string"])
        options = {"sep": delimiter, "quote": '"', "escape": '"'}
        # The parser holds 20,480 values and raises on more; a line that long is counted first.
        values = F.length(payload) - F.length(F.replace(payload, F.lit(delimiter), F.lit("")))
        sane = (F.length(payload) < MOST_VALUES) | (values < MOST_VALUES)
        return F.from_csv(F.when(sane, F.concat(payload, F.lit(delimiter + END))), schema, options)
    names = spelled(head, fields).values()
    schema = ", ".join([*(f"`{name}` string" for name in names), "`_bad` string"])
    return F.from_json(payload, schema, {"columnNameOfCorruptRecord": "_bad"})


def cells_of(head: Head, fields: Sequence[Field], row: Column) -> Column:
    """The text of each field in a payload cut by its shape, and `_malformed`."""
    match head.format:
        case "csv":
            return csv_cells(head, fields, row)
        case "text":
            return text_cells(fields, row)
        case _:
            return json_cells(head, fields, row)


def text_cells(fields: Sequence[Field], row: Column) -> Column:
    """Take the line for every field that is spelled `text`; no line is malformed."""
    cells = [
        cell(f, [row["text"] for n in spellings(f) if n.lower() == "text"][:1]) for f in fields
    ]
    return F.struct(*cells, F.lit(None).cast("string").alias("_malformed"))


def csv_cells(head: Head, fields: Sequence[Field], row: Column) -> Column:
    """Take a CSV line's values by the columns of its file's header."""
    by_name = {name.lower(): i for i, name in reversed(list(enumerate(head.names)))}
    cells = [
        cell(f, [row[f"c{by_name[n.lower()]}"] for n in spellings(f) if n.lower() in by_name])
        for f in fields
    ]
    whole = row["_end"].eqNullSafe(F.lit(END))
    return F.struct(*cells, F.when(~whole, "wrong_number_of_values").alias("_malformed"))


def spelled(head: Head, fields: Sequence[Field]) -> dict[str, str]:
    """Each name of a field, in lower case, as the file's first object spells it."""
    in_file = {name.lower(): name for name in reversed(head.names)}
    wanted: dict[str, str] = {}
    for field in fields:
        for name in spellings(field):
            wanted.setdefault(name.lower(), in_file.get(name.lower(), name))
    return wanted


def json_cells(head: Head, fields: Sequence[Field], row: Column) -> Column:
    """Take an object's values as text."""
    wanted = spelled(head, fields)
    cells = [cell(f, [row[wanted[n.lower()]] for n in spellings(f)]) for f in fields]
    # from_json reads the first of two objects on a line, and ignores what follows an object.
    broken = (
        row.isNull()
        | row["_bad"].isNotNull()
        | ~F.col("payload").rlike(r"\}\s*$")
        | several_objects(F.col("payload"))
    )
    return F.struct(*cells, F.when(broken, "unparsable_json").alias("_malformed"))


def several_objects(payload: Column) -> Column:
    """Whether an object follows another; braces within texts do not count.

    Texts are cut out only where braces meet at all, in two plain passes: one pattern for a text
    with escapes would recurse once per escape, and a long text would exhaust the stack.
    """
    meet = r"\}\s*\{"
    bare = F.regexp_replace(F.regexp_replace(payload, r"\\.", ""), '"[^"]*"', "")
    return payload.rlike(meet) & bare.rlike(meet)


def spellings(field: Field) -> list[str]:
    """The names of a field, its own first, each once."""
    return list(dict.fromkeys((field.name, *field.names)))


def cell(field: Field, values: list[Column]) -> Column:
    """The field's text: the first spelling that has one; null for its words for 'no value'."""
    if not values:
        return F.lit(None).cast("string").alias(field.name)
    text = F.coalesce(*values) if len(values) > 1 else values[0]
    return F.when(~F.trim(text).isin(*field.nulls), text).alias(field.name)


def value_of(field: Field) -> Column:
    """The field's typed value; null where it is missing or its text cannot be read."""
    read = field.read or reader_for(field.type)
    return read(F.col("_cells")[field.name]).cast(field.type)


def problems(contract: Contract) -> list[tuple[str, Column]]:
    """Each reason for which a row is quarantined, with its condition."""
    malformed = F.col("_cells")["_malformed"]
    reasons = [
        ("unparsable_json", malformed == "unparsable_json"),
        ("wrong_number_of_values", malformed == "wrong_number_of_values"),
        ("undecodable_text", F.contains("payload", F.lit("\ufffd"))),
    ]
    whole = malformed.isNull()
    for f in contract.fields:
        text = F.col("_cells")[f.name]
        reasons.append((f"unreadable_{f.name}", whole & text.isNotNull() & F.col(f.name).isNull()))
        if f.required:
            reasons.append((f"missing_{f.name}", whole & text.isNull()))
    time = F.col(contract.event_time)
    reasons.append(("event_time_impossible", time < F.lit(EARLIEST)))
    reasons.append(("event_time_ahead", time > F.col("_landed_at") + F.lit(contract.max_ahead)))
    reasons += [(r.name, whole & r.broken()) for r in contract.rules if r.action == "quarantine"]
    return reasons


def named(conditions: Iterable[tuple[str, Column]]) -> Column:
    """The names whose condition holds, in order."""
    names = [F.when(condition, F.lit(name)) for name, condition in conditions]
    return F.array_compact(F.array(*names)) if names else F.array().cast("array<string>")


def unreadable_details(fields: Sequence[Field]) -> Column:
    """The texts that could not be read, as 'field=text', for the quarantine table."""
    whole = F.col("_cells")["_malformed"].isNull()
    shown = [
        F.when(
            whole & F.col("_cells")[f.name].isNotNull() & F.col(f.name).isNull(),
            F.concat(F.lit(f"{f.name}="), F.substring(F.col("_cells")[f.name], 1, 200)),
        )
        for f in fields
    ]
    return F.concat_ws("; ", *shown)
