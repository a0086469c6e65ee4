"""A reprocessing as people order it, from the console or from Dagster, with all that follows."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import partial
from importlib import import_module
from typing import Any, Final, Literal

from pyspark.sql import SparkSession

from rivermark.backfill import recompute
from rivermark.backfill.as_of import check_tables
from rivermark.backfill.context import BackfillContext
from rivermark.backfill.follow_ups import follow_up, pending_downstream, streams_behind
from rivermark.backfill.recompute import Order, rehearse
from rivermark.backfill.result import Reprocessing
from rivermark.backfill.undo import undo
from rivermark.model.errors import PartitionStillOpen, WrongUse
from rivermark.model.parameters import parsed, shown, takes
from rivermark.model.stream import AnyStream, Ingest, Stream, inputs_of
from rivermark.runtime.code_version import underlying
from rivermark.runtime.query.recompute import AsOf, check_closed
from rivermark.settings import Settings

BUILD: Final = "build"
FUNCTION: Final = re.compile(r"([a-z]\w*(?:\.[a-z]\w*)*):([A-Za-z]\w*)")


def what_if(
    spark: SparkSession, settings: Settings, order: Order, changes: Mapping[str, str]
) -> Reprocessing:
    """Compute the days with the changes into side tables and compare with what is published.

    `changes` are declared parameters by name, or `build`: a function of the repository as
    `module:name`. Pin the inputs (`as_of`) to compare the change alone.
    """
    changed = replace(
        order, stream=altered(order.stream, changes), parameters=dict(sorted(changes.items()))
    )
    return rehearse(spark, settings, changed, kind="what-if")


def altered(stream: Stream, changes: Mapping[str, str]) -> Stream:
    """The stream with other parameters or another build; texts are parsed, nothing is evaluated."""
    if not changes:
        raise WrongUse(f"nothing to compare: give {_choices(stream)}")
    values = dict(stream.parameters)
    build = stream.build
    for name, text in changes.items():
        if name == BUILD:
            build = build_named(stream, text)
        elif name in values:
            values[name] = parsed(name, text, stream.parameters[name])
        else:
            raise WrongUse(f"'{stream.name}' has no parameter {name!r}: give {_choices(stream)}")
    if BUILD in changes:
        # Other code need not take what the declared build takes, but what is tried with it.
        for name in changes:
            if name != BUILD and not takes(build, name):
                raise WrongUse(f"build {changes[BUILD]!r} takes no parameter {name!r}")
        values = {name: value for name, value in values.items() if takes(build, name)}
    return replace(stream, build=build, parameters=values)


def build_named(stream: Stream, text: str) -> Any:
    """A function of the very package in which the stream's own build is; RivermarkError else."""
    home = str(getattr(underlying(stream.build), "__module__", "")).partition(".")[0]
    named = FUNCTION.fullmatch(text)
    if named is None or named[1].partition(".")[0] != home:
        raise WrongUse(
            f"build {text!r}: expected a function of '{home}', such as {home}.taxi.tips:other_tips"
        )
    try:
        build = getattr(import_module(named[1]), named[2])
    except (ImportError, AttributeError) as error:
        raise WrongUse(f"build {text!r}: {error}") from error
    owner = str(getattr(underlying(build), "__module__", ""))
    if not callable(build) or owner.partition(".")[0] != home:
        raise WrongUse(f"build {text!r} is not a function that '{home}' defines")
    return build


def _choices(stream: Stream) -> str:
    known = [f"{name}={shown(value)}" for name, value in stream.parameters.items()]
    if not known:
        return "build=MODULE:FUNCTION for other code, since it declares no parameters"
    return f"its parameters ({', '.join(known)}), or build=MODULE:FUNCTION for other code"


CHECK_EVERY: Final = timedelta(seconds=5)
"""A check reads the newest entry of the stream's checkpoint, a file of a few lines."""


Way = Literal["rehearse", "replace", "undo", "what_if"]

COMPUTES: Final = frozenset({"first", "last", "as_of", "wait"})
TAKES: Final[dict[Way, tuple[str, frozenset[str]]]] = {
    "rehearse": ("a rehearsal only compares what the declared build returns", COMPUTES),
    "replace": (
        "a replacement publishes what the declared build returns",
        COMPUTES | {"follow_ups"},
    ),
    "undo": ("an undo knows its days and versions", frozenset({"undo_id", "follow_ups"})),
    "what_if": ("a what-if only compares", COMPUTES | {"parameters"}),
}
"""What each way does, and the fields of a request that it heeds."""
CALLED: Final = {
    "undo_id": "undo (--undo)",
    "parameters": "what_if (--what-if)",
    "first": "first (--from)",
    "last": "last (--to)",
    "as_of": "as_of (--as-of)",
    "follow_ups": "follow_ups (--follow-ups)",
    "wait": "wait_minutes (--wait)",
}
"""The fields as a job's configuration and the console call them."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """The work to do with days (both included) of a stream.

    `rehearse` and `what_if` only compare, `replace` publishes, `undo` restores the days from before
    the reprocessing `undo_id`. `parameters` are those of a what-if as text. With `follow_ups` a
    replacement or undo goes on downstream. `wait` is how long to wait for the days to be closed.

    Raises:
        WrongUse: A field that the way does not heed, by the names that users know.
    """

    stream: Stream
    way: Way
    first: date | None = None
    last: date | None = None
    as_of: AsOf = None
    undo_id: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)
    follow_ups: bool = False
    wait: timedelta = timedelta(0)

    def __post_init__(self) -> None:
        does, takes = TAKES[self.way]
        foreign = [
            called
            for name, called in CALLED.items()
            if name not in takes and getattr(self, name) != getattr(Request, name, {})
        ]
        if foreign:
            raise WrongUse(f"{does}: leave out {', '.join(foreign)}")
        if self.way == "undo" and not self.undo_id:
            raise WrongUse(
                "no reprocessing was named: `rivermark reprocess --list` shows their ids"
            )


@dataclass
class Outcome:
    """The reprocessings that were done, the one that was asked for first.

    `left` are streams downstream that could not follow, with the reason; `behind` are those that
    were not asked to.
    """

    done: list[Reprocessing]
    left: dict[str, str] = field(default_factory=dict)
    behind: list[str] = field(default_factory=list)


def derived(stream: AnyStream) -> Stream:
    """The stream, if it can be recomputed from its inputs; WrongUse for an ingest."""
    if isinstance(stream, Ingest):
        raise WrongUse(
            f"'{stream.name}' admits rows from outside and has no inputs from which it could "
            f"be recomputed; to read its source again: rivermark reset {stream.name} "
            "--with-tables"
        )
    return stream


def reprocess(context: BackfillContext, request: Request) -> Outcome:
    """Do what was requested, and compute what follows from it.

    What can be refused is refused before Spark is asked for: PartitionStillOpen for days that the
    stream has not finished, RivermarkError for parameters that it does not declare. Raises
    VersionNotAvailable for inputs that are gone, PublicationBlocked for rows that break a critical
    rule.
    """
    if request.way == "undo":
        settings, name = context.settings, request.undo_id
        done = undo(settings, request.stream, name, run_id=context.run_id, spark=context.spark)
        return _followed(context, request, done)
    if request.first is None:
        raise WrongUse(
            "no day was given: give the first one, like 2020-01-01 (and, if you like, the last one)"
        )
    check_tables(request.as_of, inputs_of(request.stream))
    order = recompute.Order(
        stream=request.stream,
        first=request.first,
        last=request.last or request.first,
        as_of=request.as_of,
        run_id=context.run_id,
        on_step=context.on_step,
    )
    if request.way == "what_if":
        altered(request.stream, request.parameters)
    wait_until_closed(context, request.stream, order.last, at_most=request.wait)
    spark = partial(context.engine_for, request.stream, order.first, order.last)
    if request.way == "what_if":
        done = what_if(spark(), context.settings, order, request.parameters)
    elif request.way == "rehearse":
        done = recompute.rehearse(spark(), context.settings, order)
    elif request.follow_ups:
        with pending_downstream(context, request.stream, order.days):
            done = recompute.replace(spark(), context.settings, order)
            return _followed(context, request, done)
    else:
        done = recompute.replace(spark(), context.settings, order)
    return _followed(context, request, done)


def wait_until_closed(
    context: BackfillContext,
    stream: Stream,
    last: date,
    *,
    at_most: timedelta,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Return as soon as the stream has finished the day; PartitionStillOpen after `at_most`.

    The stream must be running meanwhile, and events of later days must come.
    """
    if stream.kind != "append":
        return None
    waited, reported = timedelta(0), ""
    while True:
        try:
            return check_closed(context.lake, stream, last)
        except PartitionStillOpen as error:
            if waited >= at_most:
                raise
            if reported != str(error):
                reported = str(error)
                context.on_step(f"waiting: {reported}")
            sleep(CHECK_EVERY.total_seconds())
            waited += CHECK_EVERY


def _followed(context: BackfillContext, request: Request, done: Reprocessing) -> Outcome:
    context.on_done(done)
    if done.kind not in ("replaced", "undone"):
        return Outcome([done])
    behind = streams_behind(context.topology, done)
    if not (behind and request.follow_ups):
        return Outcome([done], behind=behind)
    followed = follow_up(context, done)
    return Outcome([done, *followed.done], followed.left)
