"""Whose state a checkpoint holds: what made it, and whether that is what is declared now.

Spark and the schema of a process check that stored state has the right shape. A sum under the name
of another, a window of another size, minimum and maximum swapped have the same one. So the first
start writes down what made the state, in the same words in every process and on every machine, and
later ones compare.
"""

from __future__ import annotations

import difflib
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyarrow import fs
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from rivermark.lake.filesystem import filesystem
from rivermark.lake.lake import Lake
from rivermark.model.errors import CheckpointIncompatible
from rivermark.model.stream import AnyStream, Stream, inputs_of
from rivermark.operators.finished import FIXED
from rivermark.process.evolution.meaning import meaning_of, meaning_of_function
from rivermark.process.spark import ProcessBuild
from rivermark.runtime.checkpoint import records
from rivermark.runtime.checkpoint.generation import newest_entry, read_generation
from rivermark.runtime.spark.python_functions import functions_used

LOG = logging.getLogger("rivermark")

FILE = "identity.json"
PLAN = "plan"
EDITION = 4
"""Of the facts that are collected: those of another edition cannot be compared. 4: the source of
the class and of its module (docs/decisions/0033-state-knows-its-class.md)."""
IDS = re.compile(r"#\d+L?")
"""Expression ids in a plan, which count up within a session."""

SEEDED = re.compile(r"\b(rand|randn|uuid|shuffle)\([^()]*\)")
"""What has another seed in each plan."""
LAMBDAS = re.compile(r"\b([a-z]+)_\d+#")
"""Variables of lambda functions, which are numbered through the life of a JVM."""


@dataclass(frozen=True)
class Identity:
    """The maker of a checkpoint's state, as facts by name.

    `schema` is the fingerprint of a process's state. A plan can be compared only with one that the
    same version of Spark made (`spark`), of the same `columns` of each input; facts only with those
    that were collected by the same rules (`edition`, 1 where a record has none).
    """

    facts: dict[str, str]
    schema: str | None = None
    spark: str | None = None
    columns: dict[str, list[str]] | None = None
    edition: int = 1


def process_identity(build: ProcessBuild) -> Identity:
    """The identity of a process's state: its class, order, inputs and parameters."""
    declared = build.declared
    facts = meaning_of(type(build.make()), build.make)
    for name, prepare in build.prepare.items():
        facts |= _named(f"prepare {name}: ", meaning_of_function(prepare))
    facts |= {"order": declared.order + (", held" if declared.hold else "")}
    facts["inputs"] = ", ".join(build.inputs)
    for state in (*declared.states, *declared.broadcasts):
        if state.ttl is not None:
            facts[f"life of {state.name}"] = f"{state.ttl.after} of {state.ttl.clock} time"
    return Identity(facts, declared.schema.fingerprint(), edition=EDITION)


def _named(of: str, facts: Mapping[str, str]) -> dict[str, str]:
    """Facts, with what they are of before each."""
    return {f"{of}{fact}": text for fact, text in facts.items()}


def plan_identity(spark: SparkSession, stream: Stream, recorded: Identity | None) -> Identity:
    """The identity of a build's state: the plan that Spark makes of it.

    Of the columns that the inputs had when the state was made, where it still can be made of them:
    a column that came later changes nothing that the state was made of.
    """
    declared = {t.name: t.schema.fieldNames() for t in inputs_of(stream)}
    known = recorded.columns if recorded is not None else None
    if known is not None and all(set(known.get(n, ())) <= set(declared[n]) for n in declared):
        earlier = {name: known[name] for name in declared if name in known}
        try:
            return _planned(spark, stream, declared | earlier)
        except AnalysisException:
            pass  # It needs a column that came later.
    return _planned(spark, stream, declared)


def _planned(spark: SparkSession, stream: Stream, columns: dict[str, list[str]]) -> Identity:
    frames = [
        spark.createDataFrame([], StructType([table.schema[c] for c in columns[table.name]]))
        for table in inputs_of(stream)
    ]
    with functions_used() as functions:
        plan = canonical_plan(stream.build(*frames))
    # A plan has the names of Python functions, and nothing of what they do.
    facts = {PLAN: plan}
    for i, (name, function) in enumerate(functions, 1):
        facts |= _named(f"function {i} '{name}': ", meaning_of_function(function))
    return Identity(facts, None, spark.version, columns, EDITION)


def canonical_plan(built: DataFrame) -> str:
    """The analyzed plan with its ids numbered in the order in which they occur."""
    session = built.sparkSession
    name, numbers = "spark.sql.debug.maxToStringFields", dict[str, int]()
    before = session.conf.get(name)
    session.conf.set(name, str(2**31 - 1))
    try:
        text = str(built._jdf.queryExecution().analyzed().toString())
    finally:
        session.conf.set(name, str(before))
    # What keeps a filter out of a computation is no part of what its state means.
    text = LAMBDAS.sub(r"\1#", SEEDED.sub(r"\1()", FIXED.sub(r"\1", text)))
    return IDS.sub(lambda m: f"#{numbers.setdefault(m[0].rstrip('L'), len(numbers))}", text)


def check_plan(spark: SparkSession, stream: Stream, checkpoint: str) -> None:
    """Compare a `build` with what made the checkpoint's state; a first start records it.

    A stream whose finished batches left no state has nothing to compare. Raises as
    `check_identity`.
    """
    name, recorded = stream.name, read_identity(checkpoint, stream.name)
    if recorded is not None and _leaves_no_state(checkpoint):
        return
    identity = stable_plan(spark, stream, recorded)
    if identity is None:
        return
    check_identity(name, checkpoint, identity)


def stable_plan(spark: SparkSession, stream: Stream, recorded: Identity | None) -> Identity | None:
    """The identity of a build's state; None, and a line in the log, where it cannot be told."""
    try:
        identity = plan_identity(spark, stream, recorded)
        changed = recorded is not None and identity != recorded
        if changed and plan_identity(spark, stream, recorded) != identity:
            LOG.warning("stream '%s': its build makes another plan each time", stream.name)
            return None
    except Exception as error:
        # It has run over its inputs just now; that nothing can be compared stops no stream.
        LOG.warning("stream '%s': its plan over empty inputs is not known: %s", stream.name, error)
        return None
    return identity


def meaning_changes(recorded: Identity | None, declared: Identity) -> list[str]:
    """The changes of what the state means, in words; none where the two cannot be compared."""
    if recorded is None or not _comparable(recorded, declared):
        return []
    return changes_between(recorded.facts, declared.facts)


def check_identity(stream: str, checkpoint: str, declared: Identity) -> None:
    """Compare what is declared with what made the checkpoint's state; a first start records it.

    So does the first start of a checkpoint that an earlier release made, or recorded by other
    rules, which is logged, one whose state schema was evolved (`version`, `migrations`, added
    states: that is said in the class), and one by another version of Spark.

    Raises:
        CheckpointIncompatible: The state was made by another declaration: with what changed, and
            the ways out.
    """
    recorded = read_identity(checkpoint, stream)
    if recorded == declared:
        return
    if recorded is None or not has_state(checkpoint) or not _comparable(recorded, declared):
        if recorded is not None and recorded.edition != declared.edition:
            LOG.info(
                "stream '%s': what made its state was recorded by an earlier release; it is taken "
                "to be what is declared now, and compared from now on",
                stream,
            )
        records.write(f"{checkpoint}/{FILE}", declared)
        return
    changes = meaning_changes(recorded, declared)
    if not changes:
        return
    raise CheckpointIncompatible(
        f"stream '{stream}': its state in checkpoint {checkpoint} was made by another declaration; "
        f"{decision(stream)}. What changed: {'; '.join(changes)}"
    )


def decision(stream: str) -> str:
    """The ways on from a change of what the state means."""
    return (
        f"undo the change, or start over, with tables filled again from their inputs: rivermark "
        f"reset {stream}. Where the stored state means what the new declaration means by it, say "
        f"so: rivermark accept {stream}"
    )


def read_identity(checkpoint: str, stream: str) -> Identity | None:
    """The identity of a checkpoint's state; None where none was recorded.

    Raises CheckpointIncompatible where the record is damaged.
    """
    return records.read(f"{checkpoint}/{FILE}", Identity, stream)


def forget_identity(lake: Lake, stream: AnyStream) -> bool:
    """Let the next start record what is declared then; False where nothing was recorded.

    The caller holds the stream's lease.
    """
    generation = read_generation(lake, stream)
    if generation is None:
        return False
    store, path = filesystem(f"{lake.checkpoint(stream.name, generation.number)}/{FILE}")
    try:
        store.delete_file(path)
    except FileNotFoundError:
        return False
    return True


def has_state(checkpoint: str) -> bool:
    """Returns True if a batch was begun with operators that keep state."""
    store, path = filesystem(checkpoint)
    started = newest_entry(store, f"{path}/offsets") is not None
    return started and bool(store.get_file_info(f"{path}/state").type == fs.FileType.Directory)


def _leaves_no_state(checkpoint: str) -> bool:
    store, path = filesystem(checkpoint)
    finished = newest_entry(store, f"{path}/commits") is not None
    return finished and not has_state(checkpoint)


def changes_between(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """The differences, in words."""
    changes = []
    for name in sorted(before.keys() | after.keys()):
        was, now = before.get(name), after.get(name)
        if was == now:
            continue
        if name == PLAN:
            changes.append(_plan_change((was or "").splitlines(), (now or "").splitlines()))
        elif name.startswith("code of ") or ": code of " in name:
            word = "is new" if was is None else "is gone" if now is None else "changed"
            changes.append(f"{name} {word}")
        else:
            changes.append(f"{name} was {was or 'not there'} and is {now or 'gone'}")
    return changes


def _plan_change(was: Sequence[str], now: Sequence[str]) -> str:
    differing = [
        line for line in difflib.ndiff(was, now) if line.startswith(("- ", "+ ")) and line.strip()
    ]
    lost = next((line[2:].strip(" :+-") for line in differing if line[0] == "-"), "nothing")
    came = next((line[2:].strip(" :+-") for line in differing if line[0] == "+"), "nothing")
    return f"its plan had '{lost[:200]}' and has '{came[:200]}'"


def _comparable(recorded: Identity, declared: Identity) -> bool:
    made_by = [(each.schema, each.spark, each.edition) for each in (recorded, declared)]
    return made_by[0] == made_by[1]
