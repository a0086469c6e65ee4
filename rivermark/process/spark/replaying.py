"""Dead letters on their way back into the process that could not handle them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

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

from rivermark.lake.table import Table
from rivermark.process.failures import DeadLetter, Misuse, ProcessError
from rivermark.process.inputs import Arrivals, key_getter
from rivermark.process.keying import arrivals_of
from rivermark.process.spark.buckets import bucket_of
from rivermark.process.spark.reading import Reader
from rivermark.process.spark.wire import fields_of, moment_of_micros

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

REPLAYED: Final = 1 << 10
"""Added to an input's rank in packets whose payload is an event of a dead letter, in JSON."""

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


def again(reader: Reader, payloads: Iterable[bytes]) -> tuple[Arrivals, list[DeadLetter]]:
    """Events of JSON payloads; what is no event of the present class is a dead letter again."""
    spec = reader.spec
    events: list[Any] = []
    dead = []
    for payload in payloads:
        try:
            events.append(msgspec.json.decode(payload, type=spec.event.of))
        except msgspec.DecodeError as error:
            problem = Misuse(f"it is no event of input '{spec.name}': {error}")
            failure = ProcessError(reader.process, None, msgspec.Raw(payload), 0, problem)
            dead.append(DeadLetter.of(failure, problem, spec.name))
    found, aside = arrivals_of(reader.process, spec, events, dead_letter=reader.dead_letter)
    return found, dead + aside


def replay_packets(
    replays: DataFrame, readers: Sequence[Reader], labels: Sequence[int]
) -> DataFrame:
    """A packet for each event that is to be handled again, to the bucket of its key."""
    keyed = [reader for reader in readers if not reader.spec.broadcast]
    places = [
        F.when(F.col("input") == reader.spec.name, _place(reader, len(labels))) for reader in keyed
    ]
    ranks = [F.when(F.col("input") == reader.spec.name, F.lit(reader.rank)) for reader in keyed]
    place = F.coalesce(*places)
    return replays.where(place.isNotNull()).select(
        F.element_at(F.lit([*labels]), place.cast("int") + 1).cast("int").alias("bucket"),
        (F.coalesce(*ranks) + REPLAYED).cast("smallint").alias("input"),
        F.unix_micros("replayed_at").alias("place"),
        F.encode("event_json", "UTF-8").alias("payload"),
    )


def _place(reader: Reader, buckets: int) -> Column:
    """The bucket of an event in JSON, by the same hash as that of the rows that were read."""
    spec = reader.spec
    if not reader.bucketed:
        return F.udf(_ByPython(reader, buckets), IntegerType())("event_json")
    keys = (spec.key,) if isinstance(spec.key, str) else spec.key
    assert isinstance(keys, tuple)  # noqa: S101  # asked by `bucketed`
    return F.pmod(F.xxhash64(*(_key(reader, each) for each in keys)), F.lit(buckets))


def _key(reader: Reader, name: str) -> Column:
    """A field of the key in the form in which its column travels."""
    names = [each.name for each in fields_of(reader.spec.event.of)]
    config = getattr(reader.spec.event.of, "__struct_config__", None)
    path = f"$[{names.index(name)}]" if config is not None and config.array_like else f"$.{name}"
    text = F.get_json_object("event_json", path)
    travels = from_arrow_type(reader.schema.field(name).type)
    place = [each.name for each in reader.fields].index(name)
    if reader.turns[place] is moment_of_micros:
        return F.unix_micros(text.cast("timestamp"))
    return F.unbase64(text) if isinstance(travels, BinaryType) else text.cast(travels)


@dataclass(frozen=True)
class _ByPython:
    """The bucket of an event whose key Spark cannot evaluate; one without goes to 0."""

    reader: Reader
    buckets: int

    def __call__(self, text: str) -> int:
        spec = self.reader.spec
        assert spec.key is not None  # noqa: S101  # keyed inputs only
        try:
            event = msgspec.json.decode(text, type=spec.event.of)
            return bucket_of(key_getter(spec.key)(event), self.buckets)
        except Exception:  # no event, or user code; told where it is handled
            return 0
