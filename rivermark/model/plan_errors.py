"""Refusals of a plan by Spark, in a sentence with the nearest columns."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rivermark.model.nearest import did_you_mean
from rivermark.model.place import Place, is_of_user, raised_at

if TYPE_CHECKING:
    from pyspark.errors import PySparkException

QUOTED: Final = re.compile(r"`([^`]+)`")
NEAREST: Final = 3
CALL_SITE: Final = re.compile(r"(.+):(\d+)")
BEHIND: Final = re.compile(r"\s*(SQLSTATE: \w+|; line \d+ pos \d+|;?\n).*", re.DOTALL)
"""What follows the sentence in a message: a code, a place in SQL, the plan."""
ON_STREAM: Final = "CALL_ON_STREAMING_DATASET_UNSUPPORTED"
START: Final = "writeStream.start"
"""Spark's advice to who runs the rows of a stream as if they were a table."""
RUNS: Final = (
    "it runs its input, as count(), collect(), toPandas(), show() and write do: return a DataFrame "
    "that is made of the inputs, and leave it to the stream to run that"
)


def plan_fault(error: PySparkException) -> str:
    """The fault of a plan; of a column that does not exist, the nearest ones."""
    condition, parameters = error.getCondition() or "", error.getMessageParameters() or {}
    if condition.startswith(("UNRESOLVED_COLUMN", "UNRESOLVED_FIELD")):
        name = ".".join(QUOTED.findall(parameters.get("objectName", ""))) or "?"
        near = QUOTED.findall(parameters.get("proposal", ""))
        known = f" near it are {', '.join(near[:NEAREST])}" if near else ""
        return f"there is no column '{name}'{did_you_mean(name, near) or ';'}{known}".rstrip(";")
    if condition == ON_STREAM or START in str(error):
        return RUNS
    message = BEHIND.sub("", str(error).strip().removeprefix(f"[{condition}] "))
    return message.rstrip(". ") or condition


def plan_place(error: PySparkException) -> Place | None:
    """The line of a user's code that made the expression at fault, or through which it failed."""
    for context in error.getQueryContext() or []:
        if context.contextType().name == "DataFrame":
            site = CALL_SITE.fullmatch(context.callSite())
            if site is not None and is_of_user(site[1]):
                return Place(site[1], int(site[2]))
    return raised_at(error)
