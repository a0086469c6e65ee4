"""Great Expectations suites as code, run on pinned table versions, with the pages they draw."""

from rivermark.quality.imported_suite import from_great_expectations
from rivermark.quality.time_expectations import no_overlap, not_ahead, usual_rows

__all__ = ["from_great_expectations", "no_overlap", "not_ahead", "usual_rows"]
