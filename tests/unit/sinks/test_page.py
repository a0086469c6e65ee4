"""The sink of one's own that the page shows works as it stands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from rivermark import Output
from rivermark.lake.lake import Lake
from rivermark.lake.schema import create_table
from rivermark.sinks.output import OutputWriter
from tests.unit.sinks.conftest import FARES, context, fares

PAGE = Path(__file__).parents[3] / "docs" / "sinks" / "index.md"


@pytest.mark.filterwarnings("ignore")
def test_the_sink_of_the_page_sends_each_row(tmp_path: Path) -> None:
    sent: list[int] = []
    page: dict[str, Any] = {
        "__name__": __name__,
        "TABLE": FARES,
        "send": lambda _to, row: sent.append(row["ride"]),
    }
    for code in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        exec(compile(code, str(PAGE), "exec"), page)  # noqa: S102 - our own page
    lake = Lake(str(tmp_path))
    create_table(lake, FARES)
    output = Output(FARES, sinks=(page["MailSink"]("ops"),))
    OutputWriter(lake, output, context(lake).origin).write(fares((1, 1.0), (2, 2.0)), 0, {})

    assert sent == [1, 2]
    assert output.sinks[0].described() == (
        "mail to ops: at least once, sent again after a kill; a recompute skips"
    )
