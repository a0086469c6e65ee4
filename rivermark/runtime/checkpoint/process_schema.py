"""Dependencies of a process function's state, written down beside it in the checkpoint."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rivermark.model.errors import CheckpointIncompatible
from rivermark.process.api.declaration import Declaration
from rivermark.process.evolution.compatibility import check_compatible
from rivermark.process.evolution.schema import StateSchema
from rivermark.process.spark.build import Placing
from rivermark.runtime.checkpoint import records

FILE = "process.json"


@dataclass(frozen=True)
class ProcessRecord:
    """The number of buckets, and every schema in which state of the checkpoint may be written.

    A bucket keeps the schema that wrote it until it is written again, so older ones stay listed.
    `replays` says that dead letters are a source of the query: Spark wants the sources of the first
    start ever after. `placing` is who gave the keys their buckets (Spark, or Python for all inputs
    where one has a key that only Python knows), None before the query was built.
    """

    buckets: int
    schemas: tuple[StateSchema, ...]
    replays: bool = False
    placing: Placing | None = None
    labelled_for: int | None = None
    """The number of partitions by which the buckets were labelled, where it was changed since."""


def read_record(checkpoint: str, stream: str) -> ProcessRecord | None:
    """The record of a checkpoint; None before the first start.

    Raises CheckpointIncompatible where it is damaged.
    """
    return records.read(f"{checkpoint}/{FILE}", ProcessRecord, stream)


def write_record(checkpoint: str, record: ProcessRecord) -> None:
    """Write a record down, whole or not at all."""
    records.write(f"{checkpoint}/{FILE}", record)


def unreadable(record: ProcessRecord, declared: Declaration) -> list[str]:
    """Reasons why a process cannot read state of a checkpoint, each with what to do."""
    reasons = (
        str(each)
        for old in record.schemas
        for each in check_compatible(
            old, declared.schema, migrated=declared.migrations, forgotten=declared.forgets
        )
    )
    return [*dict.fromkeys(reasons)]


def admit(stream: str, checkpoint: str, declared: Declaration, buckets: int) -> ProcessRecord:
    """The record that a start goes by; the first one makes it, later ones add a changed schema.

    Raises CheckpointIncompatible, before anything runs, with each reason why the process as it is
    declared now cannot read the stored state.
    """
    schema = declared.schema
    record = read_record(checkpoint, stream)
    if record is None:
        record = ProcessRecord(buckets, (schema,), declared.dead_letter)
        write_record(checkpoint, record)
        return record
    if reasons := unreadable(record, declared):
        raise CheckpointIncompatible(
            f"stream '{stream}': process '{declared.name}' cannot read the state of its "
            f"checkpoint {checkpoint}. {'. '.join(reasons)}. Or start over, with "
            f"tables filled again from their inputs: rivermark reset {stream}"
        )
    if record.schemas[-1] != schema:
        kept = tuple(each for each in record.schemas if each != schema)
        record = replace(record, schemas=(*kept, schema))
        write_record(checkpoint, record)
    return record
