"""docs/concepts/micro-batches.md states the figures that docs/performance.md and its pages hold."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[3] / "docs"


def test_every_latency_and_cost_of_the_page_is_a_measured_one() -> None:
    page = (DOCS / "concepts" / "micro-batches.md").read_text()
    measured = "\n".join(
        each.read_text() for each in [DOCS / "performance.md", *(DOCS / "performance").glob("*.md")]
    )
    figures = set(re.findall(r"\d+\.\d+(?: s)? / \d+\.\d+ s|\b\d+\.\d+\b", page))

    assert len(figures) > 12
    assert [figure for figure in sorted(figures) if figure not in measured] == []
