"""Restart strategies of streams that fail."""

from rivermark.model.restart_strategy import FixedDelay, GrowingDelay, NoRestart

__all__ = [
    "FixedDelay",
    "GrowingDelay",
    "NoRestart",
]
