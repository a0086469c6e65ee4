"""The extremes of each type through a process function: read, kept as state, and written again."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql.types import StructField, StructType, TimestampType

from rivermark import Table
from rivermark.process import Context, KeyedProcess, Limits, ListState, MapState, ValueState
from rivermark.process.spark.core import Core
from rivermark.process.spark.packing import Packer
from rivermark.process.spark.reading import reader_for
from rivermark.process.spark.writing import DEAD, DEAD_LETTER_SCHEMA, MAIN, writer_for
from tests.unit.process.spark.test_packets import T0
from tests.unit.sinks.test_extremes import EVERY, plain, rows

Whole = int
Real = float


class Extreme(msgspec.Struct, frozen=True):
    """A field of each type of `EVERY`."""

    id: Whole
    time: Whole
    byte: Whole | None
    short: Whole | None
    int: Whole | None
    long: Whole | None
    float: Real | None
    double: Real | None
    money: Decimal | None
    large: Decimal | None
    flag: bool | None
    text: str | None
    raw: bytes | None
    day: date | None
    at: datetime | None


class Keeps(KeyedProcess[Extreme, Extreme]):
    """Gives back what it kept of the event before."""

    key = "id"
    time = "time"
    dead_letter = True
    one: ValueState[Extreme]
    many: ListState[Extreme]
    by_text: MapState[str, Extreme]

    def on_event(self, event: Extreme, ctx: Context[Extreme]) -> None:
        before = self.one.value
        if before is not None:
            texts = {before.text or "": before}
            assert repr([*self.many]) == repr([before])
            assert repr(dict(self.by_text.items())) == repr(texts)
            ctx.emit(before)
        self.one.value = event
        self.many.append(event)
        self.by_text[event.text or ""] = event


COLUMNS = StructType([StructField("time", TimestampType()), *EVERY.schema.fields])
TABLE = Table(name="test/kept", schema=COLUMNS, description="Extremes.", event_time="time")


def test_every_extreme_is_read_kept_as_state_and_written_as_it_was() -> None:
    declared = Keeps.declaration
    taken = reader_for(declared.name, declared.inputs[0], 0, COLUMNS, dead_letter=True)
    dead = Table(name="test/dead", schema=DEAD_LETTER_SCHEMA, description="Failed.")
    writer, _ = writer_for(declared, {MAIN: TABLE, DEAD: dead})
    core = Core(Keeps, Limits(), (taken,), writer, labels=(0,))
    sent = rows()
    packed = [
        (each["input"], each["place"], each["payload"])
        for batch in Packer(taken, (0,))(iter([as_sent(sent, taken.schema)]))
        for each in batch.to_pylist()
    ]
    state: bytes | None = None
    found: list[Any] = []
    for _ in range(2):
        arrivals, aside = core.taken(0, packed)
        ran = core.engine.run(state, arrivals, 0, 0)
        assert [letter.message for letter in (*aside, *ran.outputs.dead)] == []
        state = ran.state
        found += writer.rows(ran.outputs)
    kept = pa.Table.from_struct_array(pa.array(found, writer.arrow)).select(sent.column_names)
    # Amounts and moments go to Spark as texts and microseconds, and it casts them.
    assert plain(kept.cast(sent.schema)) == plain(sent)


def as_sent(sent: pa.Table, schema: pa.Schema) -> pa.RecordBatch:
    """The rows as Spark sends them to the packer: with their time, order and bucket."""
    count = sent.num_rows
    own = {"time": T0 * 1000, "_order": 0, "_bucket": 0}
    columns = {
        field.name: pa.array([own[field.name]] * count, field.type)
        if field.name in own
        else sent[field.name].combine_chunks().cast(field.type)
        for field in [*schema, pa.field("_bucket", pa.int16())]
    }
    return pa.RecordBatch.from_arrays([*columns.values()], [*columns])
