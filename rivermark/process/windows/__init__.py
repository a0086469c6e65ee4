"""Windows with triggers, evictors and allowed lateness, on keyed processes.

For plain windows Spark's own are faster; these are for what it lacks: early and repeated results,
merging sessions that fire again, count windows, triggers and evictors of one's own.
"""

from rivermark.process.windows.assigners import (
    Assigner,
    Counting,
    Global,
    Sessions,
    Sliding,
    Tumbling,
)
from rivermark.process.windows.evictors import Evictor, LastCount, LastSpan
from rivermark.process.windows.trigger import (
    AnyOf,
    Purging,
    Trigger,
    TriggerContext,
    TriggerResult,
)
from rivermark.process.windows.triggers import AtEnd, Every, EveryCount, Never, OnValue
from rivermark.process.windows.window import GLOBAL, Window
from rivermark.process.windows.window_process import WindowAggregate, WindowContext, WindowProcess

__all__ = [
    "GLOBAL",
    "AnyOf",
    "Assigner",
    "AtEnd",
    "Counting",
    "Every",
    "EveryCount",
    "Evictor",
    "Global",
    "LastCount",
    "LastSpan",
    "Never",
    "OnValue",
    "Purging",
    "Sessions",
    "Sliding",
    "Trigger",
    "TriggerContext",
    "TriggerResult",
    "Tumbling",
    "Window",
    "WindowAggregate",
    "WindowContext",
    "WindowProcess",
]
