"""The check that targets outside the lake hold the rows of their table."""

from __future__ import annotations

import time
from typing import Final

from rivermark.model.check import CheckResult
from rivermark.model.errors import RivermarkError
from rivermark.model.sink import Origin, Sink
from rivermark.model.stream import Output, Stream
from rivermark.runtime.checkpoint.generation import read_generation
from rivermark.settings import Settings
from rivermark.sinks.comparison import compared
from rivermark.sinks.output import sinks_of

TARGETS_HOLD: Final = "targets_hold_their_rows"
TRIES: Final = 3
"""A batch or a recompute that comes between the two counts makes them differ for a moment."""
PAUSE_SECONDS: Final = 1.0


def tells_holding(output: Output) -> bool:
    """True if any target of an output beside its table says what it holds."""
    return any(type(sink).holding is not Sink.holding for sink in sinks_of(output)[1:])


def targets_hold(settings: Settings, stream: Stream, output: Output) -> CheckResult:
    """True if each target that says what it holds has the rows of the table, but undelivered ones.

    One that cannot be asked has failed, as a warning.
    """
    generation = read_generation(settings.lake(), stream, unfinished=True)
    if generation is None:
        return CheckResult(
            name=TARGETS_HOLD, severity="critical", passed=True, observed="it has not run yet"
        )
    origin = generation.origin(stream, "checks")
    said: list[str] = []
    wrong = unanswered = False
    for sink in sinks_of(output)[1:]:
        if type(sink).holding is Sink.holding:
            continue
        try:
            is_right, sentence = _compared(settings, output, sink, origin)
        except RivermarkError as error:
            unanswered = True
            said.append(f"{sink.target} could not be asked: {error}")
            continue
        wrong |= not is_right
        said.append(sentence)
    return CheckResult(
        name=TARGETS_HOLD,
        severity="critical" if wrong else "warning",
        passed=not (wrong or unanswered),
        observed="; ".join(said)
        + (f". To write every row again: rivermark reset {stream.name}" if wrong else ""),
    )


def _compared(settings: Settings, output: Output, sink: Sink, origin: Origin) -> tuple[bool, str]:
    for _ in range(TRIES - 1):
        is_right, sentence = compared(settings.lake(), output, sink, origin)
        if is_right:
            return is_right, sentence
        time.sleep(PAUSE_SECONDS)
    return compared(settings.lake(), output, sink, origin)
