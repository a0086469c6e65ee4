"""Plots are checked when they are declared, and show nothing that is personal."""

from __future__ import annotations

from typing import Any

import pytest

from rivermark import Marks, Plot, Table, Topology
from rivermark.model.errors import DeclarationError
from tests.unit.model.declared import stream

HOURS = Table(
    name="test/hours",
    schema="driver long, zone string, at timestamp, day date, tips decimal(12,2)",
    description="Hours.",
    personal=("driver",),
)
TIPS: dict[str, Any] = {"title": "Tips", "table": HOURS, "x": "at", "y": "tips"}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"y": "tip"}, "has no column 'tip'; did you mean 'tips'?"),
        ({"x": "driver"}, "'driver' of 'test/hours' is personal"),
        ({"by": "driver", "kind": "line"}, "'driver' of 'test/hours' is personal"),
        ({"y": "zone"}, "'zone' of 'test/hours' is not a numeric column"),
        (
            {"x": "zone", "kind": "line"},
            "a line needs a timestamp or date as `x`, and 'zone' is neither",
        ),
        ({"by": "zone"}, "only a line has `by` and `marks`"),
        ({"kind": "pie"}, "kind"),
        ({"combine": "median"}, "combine"),
    ],
)
def test_what_cannot_be_drawn_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(DeclarationError, match=r"^plot 'Tips': ") as refused:
        Plot(**(TIPS | wrong))
    assert message in str(refused.value)


def test_marks_need_instants() -> None:
    with pytest.raises(DeclarationError, match=r"marks 'gap': 'tips' of .* not a timestamp column"):
        Marks(name="gap", table=HOURS, start="at", end="tips")


def test_dates_are_times_and_names_are_not() -> None:
    assert Plot(**(TIPS | {"x": "day"})).over_time
    assert not Plot(**(TIPS | {"x": "zone"})).over_time


def test_a_topology_knows_the_tables_of_its_plots() -> None:
    hours = stream("test/hours", writes=HOURS)
    other = Table(name="test/hour", schema="at timestamp", description="Another.")

    assert Topology([hours], plots=[Plot(**TIPS)]).plots == (Plot(**TIPS),)
    with pytest.raises(DeclarationError, match="no stream writes 'test/hour'; did you mean"):
        Topology([hours], plots=[Plot(title="Other", table=other, x="at")])
