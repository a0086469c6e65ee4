"""A process function as the `build` of a stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, Literal

from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from rivermark.model.errors import CheckpointIncompatible, DeclarationError
from rivermark.model.parameters import with_parameters
from rivermark.model.stream import BindableBuild, Stream, table_of
from rivermark.model.type_check import fault_of, fitting
from rivermark.process.api.declaration import Declaration
from rivermark.process.engine.state_size import Limits
from rivermark.process.keyed import KeyedProcess
from rivermark.process.spark.buckets import DEFAULT_BUCKETS, ROWS, bucket_labels
from rivermark.process.spark.core import BucketRun, Core
from rivermark.process.spark.meter import Meter
from rivermark.process.spark.packing import PACKED, Packer, ticks
from rivermark.process.spark.reading import InputReader, reader_for, travelling
from rivermark.process.spark.replaying import replay_packets
from rivermark.process.spark.stateful import BucketProcessor
from rivermark.process.spark.writing import (
    DEAD,
    MAIN,
    Tagged,
    WireWriter,
    unpacked,
    writer_for,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from rivermark.model.table import Table

Prepare = Callable[..., "DataFrame"]
Placing = Literal["spark", "python"]
"""Whose hash of a key decides its bucket."""


@dataclass(frozen=True)
class ProcessBuild(BindableBuild):
    """The `build` of a stream that runs a process: made by `run_process`, bound by the Stream.

    `inputs` are the process's inputs in the order of the stream's `reads`. `buckets` is how many
    parts the keys fall into: fixed by the first start, whatever is declared since. `meter` takes
    the process's own numbers, where somebody listens; `replays` are dead letters to handle again.
    `placing` is how the checkpoint's keys were given their buckets, None before its first start;
    `labelled_for` the number of partitions of that start, where it is another one now.
    """

    make: Callable[[], KeyedProcess[Any, Any]]
    declared: Declaration
    inputs: tuple[str, ...]
    prepare: Mapping[str, Prepare]
    buckets: int
    limits: Limits
    clock: bool
    idle: tuple[str, ...]
    meter: Meter | None = field(default=None, repr=False)
    placing: Placing | None = None
    labelled_for: int | None = None
    replays: DataFrame | None = field(default=None, repr=False)
    _writer: WireWriter | None = field(default=None, repr=False)
    _built: StructType | None = field(default=None, repr=False)

    def bound(self, stream: Stream) -> ProcessBuild:
        """The same for a stream's tables; raises DeclarationError where they do not fit."""
        if len(stream.reads) != len(self.inputs):
            raise DeclarationError(
                f"process '{self.declared.name}' has the inputs {', '.join(self.inputs)}, and the "
                f"stream reads {len(stream.reads)}"
            )
        for name, read in zip(self.inputs, stream.reads, strict=True):
            if name not in self.prepare:
                self._reader(name, table_of(read).schema)
        writer, built = writer_for(self.declared, self.tables(stream))
        return replace(self, _writer=writer, _built=built)

    def tables(self, stream: Stream) -> dict[str, Table]:
        """The table of each tag."""
        declared = self.declared
        tags = [MAIN] * (declared.out is not None) + [*declared.sides]
        tags += [DEAD] * declared.dead_letter
        by_tag: dict[str, Table] = {}
        for output in stream.outputs:
            if isinstance(output.where, Tagged):
                by_tag[output.where.tag] = output.table
            elif len(stream.outputs) == 1 == len(tags):
                by_tag[tags[0]] = output.table
            else:
                raise DeclarationError(
                    f"process '{declared.name}' writes {', '.join(tags)}: say of each table which "
                    "rows it takes, as in Output(table, main_rows), Output(other, side_rows('tag'))"
                )
        for tag in by_tag:
            if tag not in tags:
                raise DeclarationError(
                    f"process '{declared.name}' has no output '{tag}'; it writes {', '.join(tags)}"
                )
        for tag in tags:
            if tag not in by_tag:
                raise DeclarationError(
                    f"process '{declared.name}': its output '{tag}' goes to no table of the stream"
                )
        return {tag: by_tag[tag] for tag in tags}

    def with_parameters(self, values: Mapping[str, Any]) -> ProcessBuild:
        """The same for a process that is made with these values."""
        return replace(self, make=with_parameters(self.make, values))

    def leads(self, place: int) -> bool:
        """True if the input at that place of the reads moves the watermark, and holds it back."""
        timed = {each.name for each in self.declared.inputs if each.time is not None}
        leading = [each for each in self.inputs if each in timed and each not in self.idle]
        return self.inputs[place] in (leading or self.inputs)

    def __call__(self, *frames: DataFrame) -> DataFrame:
        """The rows of all outputs with their tag: of streams as they come, of tables to the end."""
        if self._writer is None or self._built is None:
            raise DeclarationError(
                f"process '{self.declared.name}' is not bound to tables: declare it as the build "
                "of a Stream"
            )
        streaming = any(each.isStreaming for each in frames)
        session = frames[0].sparkSession
        partitions = self.labelled_for
        partitions = partitions or int(session.conf.get("spark.sql.shuffle.partitions") or 1)
        labels = tuple(bucket_labels(self.buckets, partitions))
        events, readers_of_inputs = self._prepared(frames)
        placed = self._placed(readers_of_inputs)
        readers: dict[int, InputReader] = {}
        packets = []
        for rows, reader in zip(events, placed, strict=True):
            readers[reader.rank] = reader
            sent = travelling(reader, rows, self.buckets)
            packets.append(sent.mapInArrow(Packer(reader, labels), PACKED))
        if self.replays is not None:
            again = replay_packets(self.replays, placed, self.declared.key, labels)
            packets.append(again)
        together = reduce(lambda one, other: one.union(other), packets)
        by_rank = tuple(readers[rank] for rank in sorted(readers))
        core = Core(self.make, self.limits, by_rank, self._writer, self.meter, labels)
        if streaming:
            if self.clock:
                together = together.union(ticks(session, labels))
            rows = (
                together.groupBy("bucket")
                .transformWithState(
                    BucketProcessor(core, clock=self.clock),
                    self._writer.packed,
                    "Append",
                    "EventTime",
                )
                .select(F.inline(ROWS))
            )
        else:
            run = BucketRun(core)
            rows = together.groupBy("bucket").applyInArrow(
                lambda key, table: run(key, table), self._writer.schema
            )
        return unpacked(rows, self._built)

    def placing_of(self, *frames: DataFrame) -> Placing:
        """Who gives the keys of these inputs their buckets: Spark where it can for all of them."""
        readers = self._prepared(frames)[1]
        by_spark = all(each.bucketed for each in readers if not each.spec.broadcast)
        return "spark" if by_spark else "python"

    def _prepared(self, frames: Sequence[DataFrame]) -> tuple[list[DataFrame], list[InputReader]]:
        """The events of each input and its reader, in the order of the reads."""
        lookups = frames[len(self.inputs) :]
        framed = zip(self.inputs, frames, strict=False)
        events = [
            self.prepare[name](rows, *lookups) if name in self.prepare else rows
            for name, rows in framed
        ]
        pairs = zip(self.inputs, events, strict=False)
        return events, [self._reader(name, rows.schema) for name, rows in pairs]

    def _placed(self, readers: Sequence[InputReader]) -> list[InputReader]:
        """Readers that place keys in one way: equal keys of two inputs have one bucket.

        It is that of the first start: state lies where it was put then.
        """
        by_python = [each for each in readers if not (each.bucketed or each.spec.broadcast)]
        if by_python and self.placing == "spark":
            names = ", ".join(f"'{each.spec.name}'" for each in by_python)
            raise CheckpointIncompatible(
                f"process '{self.declared.name}': the key of input {names} is computed in Python, "
                "and the state of the checkpoint lies where Spark put it by fields; keep the "
                "fields as key, or start over with rivermark reset"
            )
        if by_python or self.placing == "python":
            return [replace(each, bucketed=False) for each in readers]
        return list(readers)

    def _reader(self, name: str, columns: StructType) -> InputReader:
        inputs = self.declared.inputs
        rank = next(n for n, each in enumerate(inputs) if each.name == name)
        return reader_for(
            self.declared.name, inputs[rank], rank, columns, dead_letter=self.declared.dead_letter
        )


def run_process(
    make: Callable[[], KeyedProcess[Any, Any]],
    *,
    inputs: tuple[str, ...] = (),
    prepare: Prepare | Mapping[str, Prepare] | None = None,
    buckets: int = DEFAULT_BUCKETS,
    limits: Limits | None = None,
    clock: bool = False,
    idle: tuple[str, ...] = (),
) -> ProcessBuild:
    """The `build` of a stream that runs a process function.

        Stream(name="taxi/long_rides", reads=(CLEAN_RIDES,), build=run_process(LongRides), ...)

    `make` is the class, or a function that gives the process, such as `partial(Jumps, 1.7)`; it
    must be importable by Spark's workers. `inputs` names the process's inputs in the order of the
    stream's `reads`, where there are several. Fields of events are filled from columns of their
    name; `prepare` (for the only input, or by input) turns a DataFrame into one that has them.
    Tables of the stream take rows by `main_rows`, `side_rows(tag)` and `dead_letters`. With `clock`
    timers in processing time fire without input: in a live run within about a second of their
    moment, and those past due with the first batch of a run. The watermark waits
    for every input that has a time, but for those named in `idle`.
    """
    declared = _made_by(make).declaration
    for name, value, hint in (
        ("inputs", inputs, tuple[str, ...]),
        ("buckets", buckets, int),
        ("limits", limits, Limits | None),
        ("clock", clock, bool),
        ("idle", idle, tuple[str, ...]),
    ):
        if not fitting(hint)(value):
            raise DeclarationError(f"process '{declared.name}': {fault_of(name, value, hint)}")
    known = tuple(each.name for each in declared.inputs)
    if not inputs and len(known) == 1:
        inputs = known
    if sorted(inputs) != sorted(known):
        raise DeclarationError(
            f"process '{declared.name}' has the inputs {', '.join(known)}: name each once, in the "
            f"order of the stream's reads, not {', '.join(inputs) or 'none'}"
        )
    if not 0 < buckets < 1 << 15:
        raise DeclarationError(f"process '{declared.name}': buckets are from 1 to 32767")
    by_input = prepare if isinstance(prepare, Mapping) else {}
    if prepare is not None and not isinstance(prepare, Mapping):
        if len(known) != 1:
            raise DeclarationError(
                f"process '{declared.name}': say which of its inputs to prepare: {{'rides': ...}}"
            )
        by_input = {known[0]: prepare}
    for name in (*by_input, *idle):
        if name not in known:
            raise DeclarationError(f"process '{declared.name}' has no input '{name}'")
    for each in by_input.values():
        if not callable(each):
            raise DeclarationError(
                f"process '{declared.name}': `prepare` takes functions, not {each!r}"
            )
    return ProcessBuild(make, declared, inputs, by_input, buckets, limits or Limits(), clock, idle)


def _made_by(make: Any) -> KeyedProcess[Any, Any]:
    """The process that a class or a function makes."""
    if isinstance(make, KeyedProcess):
        name = type(make).__name__
        raise DeclarationError(
            f"run_process takes a process class, and not an object of it: run_process({name})"
        )
    if not callable(make):
        raise DeclarationError(
            f"run_process takes a process class, or a function that returns a process, not {make!r}"
        )
    name = getattr(make, "__name__", repr(make))
    try:
        process = make()
    except TypeError as error:
        raise DeclarationError(
            f"run_process cannot make a process by {name}(): {error}; give its arguments by "
            "partial(...), or default values and `parameters` of the stream"
        ) from error
    if not isinstance(process, KeyedProcess):
        raise DeclarationError(
            f"run_process: {name}() makes a {type(process).__name__} and not a process"
        )
    return process
