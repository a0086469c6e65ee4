"""What an error of the engine means: in a sentence, and whether starting again can help."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from py4j.protocol import Py4JError, Py4JJavaError

from rivermark.errors import (
    CheckpointIncompatible,
    DeclarationError,
    ReplayUnprovable,
    TableSchemaMismatch,
)

MEANINGS: Final = (
    (
        ("STREAMING_CHECKPOINT_MISSING_METADATA_FILE",),
        "its checkpoint has lost the file that names the query; put it back, or reset the stream",
    ),
    (
        ("STATE_STORE_KEY_SCHEMA", "STATE_STORE_VALUE_SCHEMA", "StateSchemaNotCompatible",
         "STATE_STORE_STATE_SCHEMA", "STREAMING_STATEFUL_OPERATOR", "INVALID_STATEFUL_OPERATOR",
         "STATE_STORE_INVALID_CONFIG", "STATE_STORE_PROVIDER"),
        "its state was made by another declaration; undo the change, or start a new checkpoint "
        "with `rivermark reset` and fill the past by recompute",
    ),
    (
        ("CANNOT_LOAD_STATE_STORE", "CANNOT_READ_DELTA_FILE", "CANNOT_READ_SNAPSHOT",
         "FAILED_READ_STATE", "Error reading delta file", "checksum", "Checksum"),
        "a state file of its checkpoint is missing or damaged; rebuild: `rivermark reset`, then "
        "recompute the days",
    ),
    (
        ("DELTA_DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE", "differentDeltaTable",
         "incompatible with table", "DELTA_INVALID_SOURCE_VERSION"),
        "an input is not the table that this checkpoint belongs to (it was made anew under the "
        "same path); reset the stream, or put the old table back",
    ),
    (
        ("DELTA_VERSIONS_NOT_CONTIGUOUS", "failOnDataLoss", "DELTA_FILE_NOT_FOUND",
         "DELTA_LOG_FILE_NOT_FOUND"),
        "input that it had not read yet is gone (vacuumed or cleaned up); nothing was skipped. "
        "Recompute the days concerned, then reset the stream",
    ),
    (
        ("DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE", "DELTA_SCHEMA_CHANGED",
         "DELTA_STREAMING_METADATA_EVOLUTION"),
        "the schema of an input changed; a column that was added is taken up by the next start",
    ),
)  # fmt: skip
RESTARTABLE_MEANINGS: Final = (MEANINGS[5][1],)

REFUSALS: Final = (CheckpointIncompatible, DeclarationError, ReplayUnprovable, TableSchemaMismatch)


@dataclass(frozen=True)
class Fault:
    """An error in words. `restartable` is false where a restart would only meet it again."""

    message: str
    restartable: bool


def explain(error: BaseException) -> Fault:
    """The fault behind an exception of a query, of Spark's bridge, or of our own."""
    text = str(error)
    if isinstance(error, REFUSALS):
        return Fault(text, False)
    # Names of the stack's classes are no signs: many speak of checksums.
    told = "\n".join(lines_of(text))
    for signs, meaning in MEANINGS:
        if any(sign in told for sign in signs):
            return Fault(f"{meaning}. [{shorten(text)}]", meaning in RESTARTABLE_MEANINGS)
    bridge = isinstance(error, Py4JError) and not isinstance(error, Py4JJavaError)
    if bridge or isinstance(error, ConnectionError | EOFError):
        return Fault(f"the engine process (JVM) is gone. [{shorten(text)}]", True)
    return Fault(shorten(text) or type(error).__name__, True)


def lines_of(text: str) -> list[str]:
    """The lines of an engine's message, without its stack."""
    lines = [line.strip() for line in text.splitlines()]
    return [line for line in lines if line and not line.startswith(("at ", "...", "===", "File "))]


def shorten(text: str) -> str:
    """The lines of an engine's message that tell something."""
    told = lines_of(text)
    causes = [line for line in told if line.startswith("Caused by")]
    return " | ".join(dict.fromkeys([*told[:3], *causes[-1:]]))[:600]
