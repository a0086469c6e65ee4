"""Meanings of a query's errors: in a sentence, and whether starting again can help."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from pyspark.errors import AnalysisException

from rivermark.lake.full_disk import device_of, full_path, is_disk_full
from rivermark.model.errors import (
    CheckpointIncompatible,
    DeclarationError,
    LeaseLost,
    RecordsLost,
    ReplayUnprovable,
    ServiceFailed,
    TableDamaged,
    TableSchemaMismatch,
)
from rivermark.model.plan_errors import plan_fault, plan_place
from rivermark.quality.errors import PublicationBlocked
from rivermark.runtime.spark.append_mode import NEVER_FINAL, never_final
from rivermark.runtime.spark.engine_lost import engine_error


@dataclass(frozen=True)
class Meaning:
    """The meaning of an error of Spark, by the names of error classes and words in it.

    `{checkpoint}` and `{stream}` in the text stand for the place and the name it is about.
    """

    signs: tuple[str, ...]
    text: str
    restartable: bool = False
    needs_new_run: bool = False


SLOW_WORKER: Final = "failed to connect back"
"""What Spark says where a Python process of a query was not there within ten seconds."""

SESSION_STOPPED: Final = ("stopped SparkContext", "SparkContext was shut down")

MEANINGS: Final = (
    Meaning(
        ("STREAMING_CHECKPOINT_MISSING_METADATA_FILE",),
        "checkpoint {checkpoint} has lost the file that names the query; put it back, or start "
        "over: rivermark reset {stream}",
    ),
    Meaning(
        ("STATE_STORE_KEY_SCHEMA", "STATE_STORE_VALUE_SCHEMA", "StateSchemaNotCompatible",
         "STATE_STORE_STATE_SCHEMA", "STREAMING_STATEFUL_OPERATOR", "INVALID_STATEFUL_OPERATOR",
         "STATE_STORE_INVALID_CONFIG", "STATE_STORE_PROVIDER"),
        "its state in checkpoint {checkpoint} was made by another declaration; undo the change, "
        "or start over, with tables filled again from their inputs: rivermark reset {stream}",
    ),
    Meaning(
        ("Incomplete log file", "Failed to read log file", "Invalid UUID string"),
        "a file of checkpoint {checkpoint} is damaged; rivermark fsck says which. Put it back, or "
        "start over: rivermark reset {stream}",
    ),
    Meaning(
        ("is not a Parquet file", "Parquet magic bytes not found", "CRC checksum verification",
         "Kernel error: Json error", "DELTA_STATE_RECOVER_ERROR"),
        "a file of a table or of its log is damaged; rivermark fsck says which, and what to do",
    ),
    Meaning(
        ("CANNOT_LOAD_STATE_STORE", "CANNOT_READ_DELTA_FILE", "CANNOT_READ_SNAPSHOT",
         "FAILED_READ_STATE", "Error reading delta file", "checksum", "Checksum"),
        "a file of its state in {checkpoint}/state is missing or damaged, and nothing was built "
        "on what is left; start over: rivermark reset {stream}, then recompute the days that its "
        "inputs no longer hold",
    ),
    Meaning(
        ("DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE", "differentDeltaTable",
         "incompatible with table", "DELTA_INVALID_SOURCE_VERSION"),
        "an input is not the table that this checkpoint belongs to (it was created again under the "
        "same path): put the old table back, or start over: rivermark reset {stream}",
    ),
    Meaning(
        ("VERSIONS_NOT_CONTIGUOUS", "failOnDataLoss", "DELTA_FILE_NOT_FOUND",
         "DELTA_LOG_FILE_NOT_FOUND", "FILE_NOT_EXIST"),
        "input that it had not read yet is gone (vacuumed or cleaned up); nothing was skipped. "
        "Start over from what is there: rivermark reset {stream}, then recompute the days",
    ),
    Meaning(
        ("STREAMING_INCOMPATIBLE_SCHEMA_CHANGE", "SCHEMA_CHANGED", "STREAMING_METADATA_EVOLUTION"),
        "the schema of an input changed; a column that was added is taken up by the next start",
        restartable=True,
        needs_new_run=True,
    ),
    Meaning(
        ("STREAMING_REAL_TIME_MODE",),
        "Spark's real-time mode cannot run its build, which must be made of Spark's own "
        "expressions and keep no state: take its RealTimeSink out, or use a KafkaSink",
    ),
    Meaning(
        (SLOW_WORKER,),
        "its Python process did not answer in the ten seconds that Spark gives it, in several "
        "starts: this machine is too busy. Run fewer things beside it, or give it more cores",
        restartable=True,
    ),
)  # fmt: skip

MISSING: Final = ("NOT_FOUND", "NOT_EXIST", "doesn't exist", "is not a Delta table")
"""What Spark says of a plan whose tables or files are gone: they may come back."""

DATA: Final = re.compile(
    r"(/[^\s:'\",\[\]()]+(?:\.(?:parquet|json|delta|snapshot|zip|changelog|crc)|/(?:offsets|commits)/\d+))"
)
"""A file of ours that an error names, perhaps deep in its causes."""

OURS: Final = re.compile(r"^rivermark\.[a-z_.]+\.(\w+): (.+)$", re.MULTILINE)
"""How Python's own stack ends, in a worker, with an error of a process function or a lookup."""

MAY_PASS: Final = ("ProcessError", "ServiceFailed", "ServiceUnavailable")
"""Those of them after which a start may succeed: new code may handle an event that fails, and a
service come back; none makes state fit that does not."""

NOISE: Final = ("at ", "...", "===", "File ", "An error occurred while calling")
REFUSALS: Final = (
    CheckpointIncompatible,
    DeclarationError,
    LeaseLost,
    PublicationBlocked,
    RecordsLost,
    ReplayUnprovable,
    TableDamaged,
    TableSchemaMismatch,
)


@dataclass(frozen=True)
class Fault:
    """The meaning of an error.

    `restartable` is False where another start would fail the same way. `slow_worker`: a Python
    process was only slow to start on a busy machine; nothing was written, the next start repeats
    the batch. `session_lost`: the Spark session is gone, and with it every query of the run.
    `needs_new_run`: another start helps in a new process only, which reads the declarations again.
    `cause` is what other streams fail by as well: a damaged file, a disk, a service.
    """

    message: str
    restartable: bool
    slow_worker: bool = False
    session_lost: bool = False
    needs_new_run: bool = False
    cause: str | None = None


def explain(
    error: BaseException,
    *,
    stream: str = "STREAM",
    checkpoint: str = "its checkpoint",
    engine_lives: bool = True,
) -> Fault:
    """The fault behind an exception of a query, of Spark's bridge, or of our own.

    `engine_lives` is False where the JVM of the session is known to be gone: whatever an error says
    then, it is of that.
    """
    text = str(error)
    bridge = engine_error(error)
    if bridge is not None or not (engine_lives or isinstance(error, REFUSALS)):
        message = f"the Spark session is gone: its JVM has ended. [{shorten(str(bridge or error))}]"
        return Fault(message, True, session_lost=True, cause="spark session")
    if isinstance(error, REFUSALS):
        damaged = error.path if isinstance(error, TableDamaged) else ""
        return Fault(text, False, cause=f"damaged:{damaged}" if damaged else None)
    if isinstance(error, ServiceFailed):
        return Fault(text, True, cause=f"service:{error.service}" if error.service else None)
    # Of a chain the cause comes first, and the last one names key and event.
    if ours := OURS.findall(text):
        name, message = next((each for each in ours if each[0] == "ProcessError"), ours[-1])
        return Fault(message, name in MAY_PASS)
    if is_disk_full(error):
        path = full_path(error, checkpoint)
        return Fault(
            f"the disk of {path} is full; what was not committed is repeated. Free space there: "
            "the restart strategy starts it again, and when that has given up, rivermark resume",
            True,
            cause=f"disk:{device_of(path)}",
        )
    # Names of the stack's classes are no signs: many speak of checksums.
    lines = "\n".join(lines_of(text))
    for meaning in MEANINGS:
        if any(sign in lines for sign in meaning.signs):
            words = meaning.text.format(stream=stream, checkpoint=checkpoint)
            slow = SLOW_WORKER in text
            said, named = f"{words}. [{shorten(text)}]", DATA.search(text)
            if named is not None and named[1] not in said:
                said = f"{words}: {named[1]}. [{shorten(text)}]"
            return Fault(
                said,
                meaning.restartable,
                slow_worker=slow,
                needs_new_run=meaning.needs_new_run,
                cause=f"damaged:{named[1]}" if named is not None else None,
            )
    if isinstance(error, AnalysisException) and not any(sign in lines for sign in MISSING):
        if (error.getCondition() or "").startswith(NEVER_FINAL):
            return Fault(never_final("the event time of an input"), False)
        place = plan_place(error)
        where = f" ({place})" if place is not None else ""
        return Fault(
            f"Spark cannot plan it, and could not at another start: {plan_fault(error)}{where}",
            False,
        )
    stopped = any(sign in text for sign in SESSION_STOPPED)
    return Fault(shorten(text) or type(error).__name__, True, session_lost=stopped)


def lines_of(text: str) -> list[str]:
    """The lines of a Spark error's message, without its stack."""
    lines = [line.strip() for line in text.splitlines()]
    return [line for line in lines if line and not line.startswith(NOISE)]


def shorten(text: str) -> str:
    """The first lines of a Spark error's message and its last cause."""
    lines = lines_of(text)
    causes = [line for line in lines if line.startswith("Caused by")]
    return " | ".join(dict.fromkeys([*lines[:3], *causes[-1:]]))[:600]
