"""Threads, memory and folder of the queries that a process makes without Spark."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class QueryLimits:
    """Limits of this process's queries; `folder` takes what exceeds the memory.

    One thread by default: the streams on this machine have the better claim.
    """

    threads: int = 1
    memory: str = "1g"
    folder: str = ""


class _Limits:
    now = QueryLimits()


def query_limits() -> QueryLimits:
    """The limits of this process."""
    return _Limits.now


def limit_queries(limits: QueryLimits) -> None:
    """From here on queries of this process keep to these limits (RIVERMARK_QUERY_...)."""
    _Limits.now = limits
