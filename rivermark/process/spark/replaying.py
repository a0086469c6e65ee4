"""Dead letters on their way back into the process that could not handle them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import (
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from rivermark.model.table import Table
from rivermark.model.time import moment_of_micros
from rivermark.process.api.declaration import Declaration
from rivermark.process.api.inputs import Arrivals, key_getter
from rivermark.process.engine.engine import Timer
from rivermark.process.engine.keying import arrivals_of
from rivermark.process.errors import DeadLetter, Misuse, ProcessError
from rivermark.process.event_json import of_json
from rivermark.process.evolution.storable import Storable
from rivermark.process.spark.buckets import bucket_of
from rivermark.process.spark.reading import InputReader
from rivermark.process.spark.wire import fields_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

REPLAYED: Final = 1 << 10
"""Added to an input's rank in packets whose payload is an event of a dead letter, in JSON."""

TIMERS: Final = REPLAYED << 1
"""In place of an input's rank: the payload is a timer of a dead letter."""

REPLAY_SCHEMA: Final = StructType(
    [
        StructField("generation", LongType()),
        StructField("replayed_at", TimestampType()),
        StructField("input", StringType()),
        StructField("key_json", StringType()),
        StructField("event_time", TimestampType()),
        StructField("event_json", StringType()),
    ]
)


def replays_of(stream: str) -> Table:
    """The table from which a stream takes dead letters once more; it marks them as replayed."""
    return Table(
        name=f"{stream}_replays",
        schema=REPLAY_SCHEMA,
        description=f"Events of dead letters that {stream} was given again, by its generation.",
    )


def again(reader: InputReader, payloads: Iterable[bytes]) -> tuple[Arrivals, list[DeadLetter]]:
    """Events of JSON payloads; what is no event of the present class is a dead letter again."""
    spec = reader.spec
    events: list[Any] = []
    dead = []
    for payload in payloads:
        try:
            events.append(of_json(payload, spec.event.of))
        except msgspec.DecodeError as error:
            problem = Misuse(f"it is no event of input '{spec.name}': {error}")
            failure = ProcessError(reader.process, None, msgspec.Raw(payload), 0, problem)
            dead.append(DeadLetter.of(failure, problem, spec.name))
    arrivals, unkeyed = arrivals_of(reader.process, spec, events, dead_letter=reader.dead_letter)
    return arrivals, dead + unkeyed


class SetAgain(msgspec.Struct):
    """A timer of a dead letter: its key in JSON, its instant (ms) and its kind of time."""

    key_json: str
    at: int
    kind: Literal["event", "processing"]


def set_again(
    declared: Declaration, payloads: Iterable[bytes]
) -> tuple[list[Timer], list[DeadLetter]]:
    """Timers of payloads; one whose key is none of the process any more is a dead letter again."""
    timers: list[Timer] = []
    dead = []
    for payload in payloads:
        timer = msgspec.json.decode(payload, type=SetAgain)
        try:
            key = of_json(timer.key_json, declared.key.of)
        except msgspec.DecodeError as error:
            problem = Misuse(f"{timer.key_json} is no key of the process: {error}")
            failure = ProcessError(declared.name, timer.key_json, None, timer.at, problem)
            if not declared.dead_letter:
                raise failure from error
            dead.append(DeadLetter.of(failure, problem, None, timer.kind))
            continue
        timers.append((key, timer.at, timer.kind))
    return timers, dead


@dataclass(frozen=True)
class _KeyByPython:
    """The bucket of a key in JSON; one that is none goes to 0, where it is reported."""

    key: Storable
    buckets: int

    def __call__(self, text: str) -> int:
        try:
            return bucket_of(of_json(text, self.key.of), self.buckets)
        except msgspec.DecodeError:
            return 0


def replay_packets(
    replays: DataFrame, readers: Sequence[InputReader], key: Storable, labels: Sequence[int]
) -> DataFrame:
    """A packet for each event or timer that is to be handled again, to the bucket of its key."""
    keyed = [reader for reader in readers if not reader.spec.broadcast]
    of_timer = F.col("input").isNull()
    places = [F.when(of_timer, _place_of_key(keyed[0], key, len(labels)))]
    ranks = [F.when(of_timer, F.lit(TIMERS))]
    for reader in keyed:
        of_input = F.col("input") == reader.spec.name
        places.append(F.when(of_input, _place(reader, len(labels))))
        ranks.append(F.when(of_input, F.lit(reader.rank + REPLAYED)))
    timer = F.struct(
        "key_json",
        F.unix_millis("event_time").alias("at"),
        F.get_json_object("event_json", "$.timer").alias("kind"),
    )
    payload = F.when(of_timer, F.to_json(timer)).otherwise(F.col("event_json"))
    place = F.coalesce(*places)
    return replays.where(place.isNotNull()).select(
        F.element_at(F.lit([*labels]), place.cast("int") + 1).cast("int").alias("bucket"),
        F.coalesce(*ranks).cast("smallint").alias("input"),
        F.unix_micros("replayed_at").alias("place"),
        F.encode(payload, "UTF-8").alias("payload"),
    )


def _place_of_key(reader: InputReader, key: Storable, buckets: int) -> Column:
    """The bucket of a key in JSON, by the same hash as that of the rows that were read."""
    if not reader.bucketed:
        return F.udf(_KeyByPython(key, buckets), IntegerType())("key_json")
    names = (reader.spec.key,) if isinstance(reader.spec.key, str) else reader.spec.key
    assert isinstance(names, tuple)  # noqa: S101  # asked by `bucketed`
    whole = F.col("key_json")
    parts = F.concat(F.lit("["), whole, F.lit("]")) if isinstance(reader.spec.key, str) else whole
    texts = F.from_json(parts, "array<string>")
    keys = [_typed(reader, name, texts[n]) for n, name in enumerate(names)]
    return F.pmod(F.xxhash64(*keys), F.lit(buckets))


def _place(reader: InputReader, buckets: int) -> Column:
    """The bucket of an event in JSON, by the same hash as that of the rows that were read."""
    spec = reader.spec
    if not reader.bucketed:
        return F.udf(_ByPython(reader, buckets), IntegerType())("event_json")
    keys = (spec.key,) if isinstance(spec.key, str) else spec.key
    assert isinstance(keys, tuple)  # noqa: S101  # asked by `bucketed`
    return F.pmod(F.xxhash64(*(_key(reader, each) for each in keys)), F.lit(buckets))


def _key(reader: InputReader, name: str) -> Column:
    """A field of the key in the form in which its column travels."""
    names = [each.name for each in fields_of(reader.spec.event.of)]
    config = getattr(reader.spec.event.of, "__struct_config__", None)
    path = f"$[{names.index(name)}]" if config is not None and config.array_like else f"$.{name}"
    return _typed(reader, name, F.get_json_object("event_json", path))


def _typed(reader: InputReader, name: str, text: Column) -> Column:
    """A part of the key, given as text, in the form in which its column travels."""
    travels = from_arrow_type(reader.schema.field(name).type)
    place = [each.name for each in reader.fields].index(name)
    if reader.converters[place] is moment_of_micros:
        return F.unix_micros(text.cast("timestamp"))
    return F.unbase64(text) if isinstance(travels, BinaryType) else text.cast(travels)


@dataclass(frozen=True)
class _ByPython:
    """The bucket of an event whose key Spark cannot evaluate; one without goes to 0."""

    reader: InputReader
    buckets: int

    def __call__(self, text: str) -> int:
        spec = self.reader.spec
        assert spec.key is not None  # noqa: S101  # keyed inputs only
        try:
            event = of_json(text, spec.event.of)
            return bucket_of(key_getter(spec.key)(event), self.buckets)
        except Exception:  # no event, or user code; reported where it is handled
            return 0
