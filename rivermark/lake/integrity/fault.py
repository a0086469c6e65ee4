"""A finding of a walk over the files of a lake."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Repair = Literal[
    "rewrite checksum",
    "drop checksum",
    "drop checkpoint",
    "drop hint",
    "drop draft",
    "drop entry",
    "drop offsets",
    "correct paths",
]
"""What can be done about a fault without a guess."""
RESTORE: Final = "Put the file back from a copy of the lake"


@dataclass(frozen=True)
class Fault:
    """A file that is not as it was written: where, what is wrong, what to do.

    `repair` names what `--repair` does; None where somebody has to decide. A `note` alone is no
    fault: nothing is wrong with the table.
    """

    path: str
    problem: str
    remedy: str
    repair: Repair | None = None
    note: bool = False
