"""The start guard without a start: may a stream continue with the state that it has?

By the rules of a start (`identity.py`, `process_schema.py`, `lake/schema.py`), of a manifest in the
place of a checkpoint: of a running deployment in a pull request, or of a stream before an upgrade.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec
from pyspark.sql.types import StructType

from rivermark.lake.schema import new_columns
from rivermark.model.errors import RivermarkError, TableSchemaMismatch
from rivermark.model.stream import AnyStream, Stream
from rivermark.process.spark import ProcessBuild
from rivermark.runtime.checkpoint.identity import (
    decision,
    meaning_changes,
    process_identity,
    stable_plan,
)
from rivermark.runtime.checkpoint.process_schema import unreadable
from rivermark.runtime.savepoint.manifest import Manifest, NotRun, manifest_of
from rivermark.runtime.savepoint.store import written_by
from rivermark.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Kind: TypeAlias = Literal["compatible", "decision", "incompatible"]


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """The streams of a deployment that have finished a batch, by name; `at` is UTC."""

    at: datetime
    release: str
    streams: dict[str, Manifest]


@dataclass(frozen=True, kw_only=True)
class StateFit:
    """The fit of state and declaration: what is declared otherwise, and what to do about it.

    `decision` is a change of what the state may mean, `incompatible` one that no start would take.
    """

    stream: str
    kind: Kind
    changes: tuple[str, ...] = ()
    advice: str = ""

    def __str__(self) -> str:
        """One sentence."""
        if self.kind == "compatible":
            return f"stream '{self.stream}': compatible"
        kind = "needs a decision" if self.kind == "decision" else "is incompatible"
        changes = ". ".join(change.rstrip(".") for change in self.changes)
        return f"stream '{self.stream}' {kind}: {changes}. What to do: {self.advice}"


def deployment_of(settings: Settings, streams: Iterable[AnyStream]) -> Deployment:
    """The state of streams, also while they run; starts no Spark."""
    made = {}
    for stream in streams:
        try:
            made[stream.name] = manifest_of(settings, stream, written_by(stream))
        except NotRun:
            continue
    return Deployment(at=datetime.now(UTC), release=version("rivermark"), streams=made)


def read_deployment(path: Path) -> Deployment:
    """A manifest from a file; RivermarkError where it is none."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Deployment)
    except (OSError, ValueError) as error:
        raise RivermarkError(
            f"{path} is no manifest of a deployment ({error}); where the streams run, write one: "
            f"rivermark manifest --output {path}"
        ) from error


def fits_of(
    spark: SparkSession, streams: Iterable[AnyStream], deployed: Deployment
) -> Iterator[StateFit]:
    """The fit of each declared stream that the deployment has state of, and of renamed ones."""
    declared = {stream.name: stream for stream in streams}
    for name, made in deployed.streams.items():
        if name in declared:
            yield fit_of(spark, declared[name], made)
            continue
        for other in declared.values():
            taken = sorted({table.name for table in other.tables} & made.tables.keys())
            if taken and other.name not in deployed.streams:
                yield StateFit(
                    stream=other.name,
                    kind="incompatible",
                    changes=(f"it writes '{taken[0]}', which holds the rows of stream '{name}'",),
                    advice=f"keep the name '{name}', with which the state belongs to the stream, "
                    "or give the table a new name, which is filled from the inputs",
                )


def fit_of(spark: SparkSession, stream: AnyStream, made: Manifest) -> StateFit:
    """The fit of a stream as it is declared and the state of a manifest."""
    changes = [*_unfit(stream, made)]
    if changes:
        advice = (
            f"undo the change, or start over, with tables filled again from their inputs: "
            f"rivermark reset {stream.name}"
        )
        return StateFit(
            stream=stream.name, kind="incompatible", changes=tuple(changes), advice=advice
        )
    if isinstance(stream, Stream) and made.has_state and stream.kind == "append":
        build = stream.build
        declared = (
            process_identity(build)
            if isinstance(build, ProcessBuild)
            else stable_plan(spark, stream, made.identity)
        )
        changes = [] if declared is None else meaning_changes(made.identity, declared)
    if not changes:
        return StateFit(stream=stream.name, kind="compatible")
    return StateFit(
        stream=stream.name, kind="decision", changes=tuple(changes), advice=decision(stream.name)
    )


def _unfit(stream: AnyStream, made: Manifest) -> Iterator[str]:
    """Reasons why no start would take what there is."""
    for table in written_by(stream):
        written = made.tables.get(table.name)
        if written is not None and written.schema:
            try:
                new_columns(table, StructType.fromJson(json.loads(written.schema)))
            except TableSchemaMismatch as error:
                yield str(error)
    if not isinstance(stream, Stream) or not made.has_state:
        return
    build = stream.build
    if isinstance(build, ProcessBuild) != (made.process is not None):
        was, now = ("a process function", "a build of Spark's operators")
        yield f"its state is of {was if made.process else now}, and it is declared as the other"
    elif isinstance(build, ProcessBuild) and made.process is not None:
        yield from unreadable(made.process, build.declared)
