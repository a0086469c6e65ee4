"""Keyed process functions: rules with state, timers and side outputs, in plain Python.

A rule is a subclass of `KeyedProcess`. The `Engine` runs it over the state of many keys at once;
`rivermark.testing.ProcessHarness` feeds it events in a test. Nothing here needs a JVM.
"""

from rivermark.model.column_type import ColumnType
from rivermark.process.api.broadcast import BroadcastState
from rivermark.process.api.context import Context
from rivermark.process.api.inputs import Arrivals, Broadcast, Input, on
from rivermark.process.api.side_outputs import Outputs, SideOutput
from rivermark.process.api.state import TTL, ListState, MapState, ValueState
from rivermark.process.engine.engine import Engine, Ran
from rivermark.process.engine.state_size import Limits
from rivermark.process.errors import (
    DeadLetter,
    Misuse,
    ProcessError,
    StateTooLarge,
    StateUnreadable,
)
from rivermark.process.evolution.compatibility import Incompatibility, check_compatible
from rivermark.process.instants import BEGINNING, END_OF_TIME, Millis, instant, moment
from rivermark.process.keyed import KeyedProcess

__all__ = [
    "BEGINNING",
    "END_OF_TIME",
    "TTL",
    "Arrivals",
    "Broadcast",
    "BroadcastState",
    "ColumnType",
    "Context",
    "DeadLetter",
    "Engine",
    "Incompatibility",
    "Input",
    "KeyedProcess",
    "Limits",
    "ListState",
    "MapState",
    "Millis",
    "Misuse",
    "Outputs",
    "ProcessError",
    "Ran",
    "SideOutput",
    "StateTooLarge",
    "StateUnreadable",
    "ValueState",
    "check_compatible",
    "instant",
    "moment",
    "on",
]
