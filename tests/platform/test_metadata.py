"""The numbers of a stream's events."""

import dagster as dg
import pytest

from rivermark.dagster.jobs.metadata import markdown, of_numbers, of_pending

pytestmark = pytest.mark.platform


def test_numbers_of_a_process_follow_those_of_every_stream() -> None:
    told = of_numbers({"metrics/open": 2.5, "rows_in": 3, "metrics/dropped": 7, "unknown": 1})

    assert list(told) == ["rows_in", "metrics/dropped", "metrics/open"]
    assert told["metrics/dropped"] == dg.MetadataValue.int(7)
    assert told["metrics/open"] == dg.MetadataValue.float(2.5)


HOSTILE = "a\n- <img src=x onerror=alert(1)>|[click](javascript:x) ![i](//e) `code` **b**.json"


def test_a_file_name_is_text_in_metadata_whatever_it_holds() -> None:
    shown = of_pending((HOSTILE,))["pending"].value
    table = markdown(["file"], [[HOSTILE]])

    for text in (shown, table.splitlines()[-1]):
        assert "\n" not in str(text)
        assert "<" not in str(text)
        for mark in ("[click]", "![i]", "`code`", "**b**"):
            assert mark not in str(text)
    assert len(table.splitlines()) == 3
