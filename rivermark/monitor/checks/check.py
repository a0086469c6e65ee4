"""Checks of streams and their tables, evaluated from logs and tables without a JVM."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from rivermark.model.check import Check, CheckResult
from rivermark.model.table import Table
from rivermark.settings import Settings


@dataclass(frozen=True, kw_only=True)
class StreamCheck(Check):
    """A check that belongs to a table of a stream.

    A failure of severity `critical` is wrong data or a dead stream, a `warning` is something to
    inspect; a result may state another severity than the check. `evaluate` takes the current time
    (UTC).
    """

    table: Table
    stream: str
    description: str
    evaluate: Callable[[Settings, datetime], CheckResult]
