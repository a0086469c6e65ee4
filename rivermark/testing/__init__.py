"""What tests of streams and process functions use; ships with the package."""

from rivermark.testing.batch_invariance import (
    Arrival,
    SplitDifference,
    all_cuts,
    split_invariant,
)
from rivermark.testing.process_harness import ProcessHarness

__all__ = ["Arrival", "ProcessHarness", "SplitDifference", "all_cuts", "split_invariant"]
