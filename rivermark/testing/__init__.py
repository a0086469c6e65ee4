"""Tools for tests of streams and process functions; ships with the package."""

from rivermark.testing.batch_invariance import (
    InputEvent,
    SplitDifference,
    all_cuts,
    split_invariant,
)
from rivermark.testing.process_harness import ProcessHarness
from rivermark.testing.row_comparison import assert_rows_equal
from rivermark.testing.waiting import wait_until

__all__ = [
    "InputEvent",
    "ProcessHarness",
    "SplitDifference",
    "all_cuts",
    "assert_rows_equal",
    "split_invariant",
    "wait_until",
]
