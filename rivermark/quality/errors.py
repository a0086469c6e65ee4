"""The errors of quality checks: only the last one is a fault of the data."""

from rivermark.model.errors import RivermarkError


class CheckCrashed(RivermarkError):
    """A rule could not be evaluated, so nothing is known about the data."""


class SuiteDoesNotFit(RivermarkError):
    """A suite needs columns that the table does not have, or for limits of another type."""


class PublicationBlocked(RivermarkError):
    """Rows of a bounded run break critical rules: nothing is published, they are kept apart."""
