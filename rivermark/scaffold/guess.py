"""Guesses of a contract from a sample: types, times, keys, and what each guess rests on.

What a text can be is asked of the readers that admission has: a guess is a type that reads every
text of the sample. Where a wrong guess would lose something a text stays a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import Any, Final

from rivermark.model.contract import RESERVED, UNRESOLVABLE
from rivermark.model.ddl import data_type
from rivermark.model.field_readers import reader_for
from rivermark.model.reader import ValueReader
from rivermark.model.time import EPOCH
from rivermark.model.time_readers import epoch_millis, local_timestamp, names_instant
from rivermark.scaffold.sample import Sample, SampleColumn

MONEY: Final = re.compile(
    r"price|amount|total|cost|fee|fare|tip|tax|toll|revenue|sales|balance|paid|payment|charge"
    r"|(^|_)(eur|usd|gbp|chf)($|_)",
    re.IGNORECASE,
)
TIME: Final = re.compile(r"(^|_)(at|on|ts|when)$|time|date|stamp|epoch|created|millis", re.I)
AFTERWARDS: Final = re.compile(r"updated|modified|loaded|ingested|processed|received", re.I)
"""Times that say when a row was handled, and not when its event was."""
IDENTITY: Final = re.compile(r"(^|_)(id|key|uuid|guid|nr|no|number|code)$|[a-z]I[Dd]$", re.I)
NULL_WORDS: Final = ("NA", "N/A", "NULL", "null", "None", "-", "\\N", "NaN", "nan")
TRUTHS: Final = frozenset({"true", "false", "yes", "no"})
WHOLE: Final = re.compile(r"[+-]?[0-9]+")
DECIMAL: Final = re.compile(r"[+-]?[0-9]*[.,]?[0-9]+")
LONGEST_NUMBER: Final = 18
"""Digits of a number that may be counted with: longer ones are names."""
LAST_YEAR: Final = datetime(2100, 1, 1, tzinfo=UTC)
PATTERNS: Final = (
    *("yyyy-MM-dd", "yyyy/MM/dd", "yyyy/MM/dd HH:mm:ss", "yyyy/MM/dd HH:mm"),
    *("dd.MM.yyyy HH:mm:ss", "dd.MM.yyyy HH:mm", "dd.MM.yyyy"),
    *("d/M/yyyy H:mm:ss", "d/M/yyyy H:mm", "d/M/yyyy"),
    *("M/d/yyyy H:mm:ss", "M/d/yyyy H:mm", "M/d/yyyy"),
    *("M/d/yyyy h:mm:ss a", "M/d/yyyy h:mm a"),
)
"""Ways to write times beside ISO-8601; those of which several read a sample are told apart by none
of its rows."""
LEAST_LATENESS: Final = timedelta(minutes=5)


@dataclass(frozen=True)
class FieldGuess:
    """A field as it is proposed; `note` says what it rests on, where it is a guess."""

    name: str
    type: str
    required: bool
    names: tuple[str, ...] = ()
    nulls: tuple[str, ...] = ()
    read: str = ""
    note: str = ""
    values: list[Any] = field(default_factory=list, compare=False)


@dataclass(frozen=True)
class ContractGuess:
    """A contract as it is proposed, with how far times go back and forth in the sample."""

    fields: list[FieldGuess]
    rows: int
    event_time: str = ""
    other_times: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    first: datetime | None = None
    lateness: timedelta = LEAST_LATENESS

    @property
    def by_name(self) -> dict[str, FieldGuess]:
        """The fields by their names."""
        return {each.name: each for each in self.fields}


def guess_contract(sample: Sample) -> ContractGuess:
    """The contract that admits each row of a sample."""
    names = field_names(each.name for each in sample.columns)
    fields = [guess_field(c, n) for c, n in zip(sample.columns, names, strict=True)]
    times = [f for f in fields if f.type == "timestamp" and f.required]
    # Spark's watermarks begin in 1970: nothing older can be an event of a stream.
    times = [f for f in times if min(f.values) >= 0]
    times.sort(key=lambda f: (AFTERWARDS.search(f.name) is not None, not TIME.search(f.name)))
    time = times[0] if times else None
    guess = ContractGuess(fields, sample.rows, keys=_keys(fields, time))
    if time is None:
        return guess
    newest = accumulate(time.values, max)
    behind = max(new - at for new, at in zip(newest, time.values, strict=True))
    minutes = -(-behind // 60_000_000)
    return ContractGuess(
        fields,
        sample.rows,
        time.name,
        tuple(f.name for f in times[1:]),
        guess.keys,
        EPOCH + timedelta(microseconds=min(time.values)),
        max(LEAST_LATENESS, timedelta(minutes=minutes)),
    )


def guess_field(column: SampleColumn, name: str) -> FieldGuess:
    """The narrowest type that reads each text, unless a wider one is more prudent."""
    present = column.present
    nulls: tuple[str, ...] = ()
    read = _Reading("string", note="empty in all rows" if not present else "")
    if present:
        read = _typed(column, present)
        words = tuple(word for word in NULL_WORDS if word in present)
        rest = [text for text in present if text not in words]
        if read.type == "string" and words and rest:
            without = _typed(column, rest)
            if without.type != "string":
                read, nulls, present = without, words, rest
    missing = len(column.texts) - len(present)
    empty = f"{missing} of {len(column.texts)} are empty" if missing and present else ""
    return FieldGuess(
        name,
        read.type,
        required=not missing,
        names=() if name == column.name else (column.name,),
        nulls=nulls,
        read=read.read,
        note="; ".join(filter(None, (read.note, empty))),
        values=[read.reader.value(text) for text in present],
    )


@dataclass(frozen=True)
class _Reading:
    """A type, the reader of its texts, and how a declaration spells that reader."""

    type: str
    read: str = ""
    note: str = ""
    own: ValueReader | None = None

    @property
    def reader(self) -> ValueReader:
        return self.own or reader_for(data_type(self.type))

    def reads(self, texts: Iterable[str]) -> bool:
        return all(self.reader.value(text) is not None for text in texts)


def _typed(column: SampleColumn, texts: Sequence[str]) -> _Reading:
    text = _Reading("string")
    if column.type == "double" and MONEY.search(column.name):
        return _Reading("decimal(12,2)", note="money, which is no double")
    if column.type is not None:
        typed = _Reading(column.type)
        return typed if typed.reads(texts) else text
    for guess in (_truth, _whole, _number, _time):
        reading = guess(column, texts)
        if reading is not None and reading.reads(texts):
            return reading
    if not column.quoted and all(each[:1] in "[{" for each in texts):
        return _Reading("string", note="a list or an object: its JSON as a text")
    return text


def _truth(column: SampleColumn, texts: Sequence[str]) -> _Reading | None:
    fits = not column.quoted and all(each.lower() in TRUTHS for each in texts)
    return _Reading("boolean") if fits else None


def _whole(column: SampleColumn, texts: Sequence[str]) -> _Reading | None:
    if not all(map(WHOLE.fullmatch, texts)):
        return None
    if any(re.match(r"[+-]?0[0-9]", each) for each in texts):
        return _Reading("string", note="leading zeros: not a number")
    if column.quoted:
        return _Reading("string", note="digits that are written as texts")
    if any(len(each.lstrip("+-")) > LONGEST_NUMBER for each in texts):
        return _Reading("string", note="too long to be counted with: not a number")
    if TIME.search(column.name):
        millis = _Reading("timestamp", "readers.epoch_millis()", "milliseconds", epoch_millis())
        if millis.reads(texts) and all(_is_recent(millis.reader.value(each)) for each in texts):
            return millis
    return _Reading("long")


def _is_recent(micros: int) -> bool:
    return EPOCH <= EPOCH + timedelta(microseconds=micros) < LAST_YEAR


def _number(column: SampleColumn, texts: Sequence[str]) -> _Reading | None:
    """Money is a decimal, as is what has two places in each row; other numbers are doubles."""
    if column.quoted and not MONEY.search(column.name):
        return None
    comma = not any("." in each for each in texts) and any("," in each for each in texts)
    point = "," if comma else "."
    plain = all(DECIMAL.fullmatch(each) for each in texts)
    places = [len(each.partition(point)[2]) for each in texts]
    digits = max(len(each.partition(point)[0].lstrip("+-")) for each in texts)
    cents = {*places} == {2}
    if plain and max(places) <= 6 and (cents or MONEY.search(column.name)):
        scale = max(2, *places)
        precision = min(38, max(12, digits + scale + 2))
        note = "" if MONEY.search(column.name) else "two places in each row: money?"
        read = f"readers.decimal({precision}, {scale}, decimal_comma=True)" if comma else ""
        return _reading(f"decimal({precision},{scale})", read, note)
    return _reading("double", "readers.number(decimal_comma=True)" if comma else "", "")


def _reading(kind: str, read: str, note: str) -> _Reading:
    """A reading of numbers, with decimal commas where `read` names a reader."""
    reader: Any = reader_for(data_type(kind))
    own = type(reader)(reader.type, decimal_comma=True) if read else None
    return _Reading(kind, read, note, own)


def _time(column: SampleColumn, texts: Sequence[str]) -> _Reading | None:
    iso = _Reading("timestamp")
    if iso.reads(texts):
        zoned = all(map(names_instant, texts))
        local = 'no zone: taken as UTC; if it is local, readers.local_timestamp("Europe/Berlin")'
        return iso if zoned else _Reading("timestamp", note=local)
    fits = [
        _Reading(
            "timestamp",
            f'readers.local_timestamp("UTC", "{pattern}")',
            "taken as UTC; if it is local, name its zone",
            local_timestamp("UTC", pattern),
        )
        for pattern in PATTERNS
    ]
    fits = [each for each in fits if each.reads(texts)]
    if len(fits) > 1:
        ways = " or ".join(each.read.split('"')[3] for each in fits)
        return _Reading("string", note=f"a time, as {ways}: no row of the sample tells which")
    return fits[0] if fits else None


def _keys(fields: Sequence[FieldGuess], time: FieldGuess | None) -> tuple[str, ...]:
    """The columns that name a row: one that is unique in the sample, or one with the time."""
    named = [f for f in fields if f.required and f.type in ("long", "string")]
    named = [f for f in named if IDENTITY.search(f.name)]
    for each in named:
        if len({*each.values}) == len(each.values):
            return (each.name,)
    if time is not None:
        for each in named:
            pairs = {*zip(each.values, time.values, strict=True)}
            if len(pairs) == len(each.values):
                return (each.name, time.name)
    return ()


def field_names(names: Iterable[str]) -> Iterator[str]:
    """Names that columns can have, each once, for those of a source."""
    taken: set[str] = set()
    for number, name in enumerate(names, 1):
        plain = name
        if UNRESOLVABLE & set(name) or not re.fullmatch(r"[A-Za-z]\w*", name):
            plain = re.sub(r"\W+", "_", name).strip("_").lower() or f"column_{number}"
            plain = plain if plain[0].isalpha() else f"column_{plain}"
        if plain.lower() in RESERVED:
            plain = f"source_{plain}"
        while plain.lower() in taken:
            plain += "_2"
        taken.add(plain.lower())
        yield plain
