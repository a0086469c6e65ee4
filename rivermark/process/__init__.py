"""Keyed process functions: rules with state, timers and side outputs, in plain Python.

A rule is a subclass of `KeyedProcess`. The `Engine` runs it over the state of many keys at once;
`ProcessHarness` lets a test feed it events and move its clocks. Nothing here needs a JVM.
"""

from rivermark.process.broadcast import BroadcastState
from rivermark.process.compatibility import Incompatibility, check_compatible
from rivermark.process.context import Context
from rivermark.process.engine import Engine, Ran
from rivermark.process.failures import (
    DeadLetter,
    Misuse,
    ProcessError,
    StateTooLarge,
    StateUnreadable,
)
from rivermark.process.harness import ProcessHarness
from rivermark.process.inputs import Arrivals, Broadcast, Input, on
from rivermark.process.instants import BEGINNING, END_OF_TIME, Millis, instant, moment
from rivermark.process.keyed import KeyedProcess
from rivermark.process.sides import Outputs, SideOutput
from rivermark.process.sizes import Limits
from rivermark.process.splits import Arrival, SplitDifference, all_cuts, split_invariant
from rivermark.process.state import TTL, ListState, MapState, ValueState

__all__ = [
    "BEGINNING",
    "END_OF_TIME",
    "TTL",
    "Arrival",
    "Arrivals",
    "Broadcast",
    "BroadcastState",
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
    "ProcessHarness",
    "Ran",
    "SideOutput",
    "SplitDifference",
    "StateTooLarge",
    "StateUnreadable",
    "ValueState",
    "all_cuts",
    "check_compatible",
    "instant",
    "moment",
    "on",
    "split_invariant",
]
