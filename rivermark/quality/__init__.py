"""Great Expectations suites as code, run on pinned table versions, with the pages they draw."""

from rivermark.quality.time_expectations import no_overlap, not_ahead, usual_rows

__all__ = ["no_overlap", "not_ahead", "usual_rows"]
