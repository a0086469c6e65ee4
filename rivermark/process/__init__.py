"""Keyed process functions: rules with state, timers and side outputs, in plain Python.

A rule is a subclass of `KeyedProcess`; `rivermark.testing.ProcessHarness` feeds it events in a
test. Nothing here needs a JVM.
"""

from rivermark.model.column_type import ColumnType, Record
from rivermark.process.api.broadcast import BroadcastState
from rivermark.process.api.context import Context
from rivermark.process.api.inputs import Broadcast, Input, on
from rivermark.process.api.side_outputs import SideOutput
from rivermark.process.api.state import TTL, ListState, MapState, ValueState
from rivermark.process.engine.state_size import Limits
from rivermark.process.errors import Misuse, ProcessError
from rivermark.process.instants import BEGINNING, END_OF_TIME, Millis, instant, moment
from rivermark.process.keyed import KeyedProcess

__all__ = [
    "BEGINNING",
    "END_OF_TIME",
    "TTL",
    "Broadcast",
    "BroadcastState",
    "ColumnType",
    "Context",
    "Input",
    "KeyedProcess",
    "Limits",
    "ListState",
    "MapState",
    "Millis",
    "Misuse",
    "ProcessError",
    "Record",
    "SideOutput",
    "ValueState",
    "instant",
    "moment",
    "on",
]
