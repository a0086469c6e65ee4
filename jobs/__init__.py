"""Jobs of this project's own, beside those that `rivermark.dagster` makes of its streams."""

from __future__ import annotations

from typing import Final

from assets.topology import TOPOLOGY
from rivermark.dagster.jobs.rehearsal import rehearsal_job

JOBS: Final = (rehearsal_job(TOPOLOGY),)
"""A rehearsal runs everything once over the samples of the domains, for continuous integration."""
