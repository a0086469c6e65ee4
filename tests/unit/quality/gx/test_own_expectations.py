"""What Great Expectations alone evaluates: its results read back, and drawn as text."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pandas as pd
import pyarrow as pa
import pytest

from rivermark.model.rule import SuiteRule
from rivermark.model.suite import Suite
from rivermark.quality.errors import CheckCrashed, SuiteDoesNotFit
from rivermark.quality.gx.main_module import main_module_with_a_file
from rivermark.quality.gx.own_expectations import WITHHELD, evaluated, without_values
from rivermark.quality.gx.results import stored
from rivermark.quality.imported_suite import from_great_expectations
from rivermark.quality.result import SuiteResult, result_of_row_count

if TYPE_CHECKING:
    from great_expectations.datasource.fluent.interfaces import Batch

HOSTILE: Final = (
    "<b>Ada</b><script>alert(1)</script>",
    "<!-- swallowed",
    "</td></tr></table><h1 id=fake>All rules hold</h1>",
    "<meta http-equiv=refresh content='0;url=http://x/'>",
    "<style>body{display:none}</style>",
    "<iframe src='javascript:alert(1)'>",
    "$x ${y}",
)
MARKUP: Final = ("<b>Ada", "<script", "<!-- swallowed", "<h1 id=fake", "<meta http-equiv=refresh")


@pytest.fixture(scope="module")
def batch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Batch]:
    """Rows as a batch of its engine for pandas, which needs no JVM."""
    root: Path = tmp_path_factory.mktemp("quality")
    with main_module_with_a_file():
        from rivermark.quality.gx.data_docs import data_context

        source = data_context(root).data_sources.add_pandas("rows")
        asset = source.add_dataframe_asset("people")
        miles = [1.5, 2.5, *[2.0] * (len(HOSTILE) - 1)]
        rows = pd.DataFrame({"name": [*HOSTILE, "Bob"], "miles": miles})
        whole = asset.add_batch_definition_whole_dataframe("whole")
        yield whole.get_batch(batch_parameters={"dataframe": rows})


def rule(kind: str, **kwargs: Any) -> SuiteRule:
    """The rule of an expectation that has no equal here."""
    suite = {"name": "theirs", "expectations": [{"type": kind, "kwargs": kwargs}]}
    [[only]] = from_great_expectations(suite)
    return only


def test_numbers_and_values_are_read(batch: Batch) -> None:
    regex = rule("expect_column_values_to_match_regex", column="name", regex="^B")
    mean = rule("expect_column_mean_to_be_between", column="miles", max_value=1)

    check, result = evaluated(batch, regex, personal=())
    assert (check.passed, check.unexpected_count, check.evaluated_count) == (False, 7, 8)
    assert result.success is False
    assert evaluated(batch, mean, personal=())[0].observed == "2.0"


def test_what_may_be_personal_is_withheld(batch: Batch) -> None:
    values = rule("expect_column_most_common_value_to_be_in_set", column="name", value_set=["E"])

    check, result = evaluated(batch, values, personal=("name",))

    assert check.observed == WITHHELD
    assert "Ada" not in str(result.to_json_dict()["result"])
    assert "Ada" in evaluated(batch, values, personal=("miles",))[0].observed
    assert without_values({"observed_value": "x", "element_count": 2, "details": {}}) == {
        "observed_value": WITHHELD,
        "element_count": 2,
    }


def test_what_cannot_be_evaluated_says_why(batch: Batch) -> None:
    with pytest.raises(SuiteDoesNotFit, match="knows no 'expect_nobody'"):
        evaluated(batch, rule("expect_nobody", column="name"), personal=())
    with pytest.raises(SuiteDoesNotFit, match="does not take"):
        evaluated(batch, rule("expect_column_mean_to_be_between", floor=1), personal=())
    missing = rule("expect_column_mean_to_be_between", column="nowhere", max_value=1)
    with pytest.raises(CheckCrashed, match="nowhere"):
        evaluated(batch, missing, personal=())
    with pytest.raises(CheckCrashed, match=WITHHELD):
        evaluated(batch, missing, personal=("name",))


def test_m037_what_it_observes_stands_on_a_page_as_text(batch: Batch, tmp_path: Path) -> None:
    from rivermark.quality.gx.data_docs import publish

    values = rule("expect_column_most_common_value_to_be_in_set", column="name", value_set=["E"])
    check, result = evaluated(batch, values, personal=())
    suite = Suite("test/people", ((values,),))
    [counted, _] = suite.rules
    evaluation = SuiteResult(
        suite=suite.name,
        table="test/people",
        version=0,
        rows=8,
        results=(result_of_row_count(counted, 8, passed=True), check),
        docs_path=None,
        elapsed=timedelta(0),
    )

    drawn = stored(suite, evaluation, pa.schema([("name", pa.string())]), {values.name: result})
    path = publish(tmp_path, drawn, version=0, keep=2)

    assert path is not None
    page = path.read_text()
    assert "&lt;b&gt;Ada" in page
    assert "$x ${y}" in page
    assert "body{display:none}&lt;/style&gt;" in page
    assert not any(markup in page for markup in (*MARKUP, "<style>body{", "<iframe"))
