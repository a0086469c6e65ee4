"""Pages of Great Expectations that load nothing, and an index that needs no script."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from rivermark.quality.gx.offline_docs import (
    StoredRun,
    make_self_contained,
    self_contained,
    stored_runs,
    write_index,
)
from tests.oracles.stored_runs import store_run

DRAWN = """<html><head>
<link rel="stylesheet" href="https://maxcdn.bootstrapcdn.com/bootstrap.min.css"/>
<style>a{background: url('https://assets.example/logo.png') 0 0 no-repeat; color:red}</style>
<script src="https://code.jquery.com/jquery-3.7.1.min.js"></script></head>
<body><nav><a href="../../index.html"><img src="https://assets.example/logo.png"
 alt="Great Expectations"/></a></nav>
<script>alert(1)</script><label onclick="go()">Show All</label>
<a href="../../expectations/test/rows.html">test.rows</a> <td>there are rows</td>
<footer>news <a href="https://greatexpectations.io/newsletter">here</a></footer></body></html>"""


def test_a_page_loads_and_runs_nothing_and_keeps_what_it_says() -> None:
    text = self_contained(DRAWN)

    assert "http" not in text.replace("http-equiv", "")
    assert "<script" not in text
    assert "onclick" not in text
    assert "default-src 'none'" in text
    assert "<td>there are rows</td>" in text
    assert "color:red" in text
    assert '<a href="../../index.html">All suites</a>' in text
    assert text.startswith('<html lang="en">')
    assert "expectations/test/rows.html" not in text


ICON = '<i class="fas fa-times text-danger" ></i>'
STATUS = '<i class="fas fa-times text-danger" aria-hidden="true"></i> Failed'


def row_of(text: str) -> str:
    return f"<tr><td>{ICON}</td><td>{text}</td></tr>"


def test_a_warning_is_not_red() -> None:
    mild = row_of("rows are usual (at least 5; warning)")
    hard = row_of("keys are unique (all; critical)")

    both = self_contained(f"{STATUS}<table><tr></tr>{hard}{mild}{hard}</table>")
    only_mild = self_contained(f"{STATUS}<table><tr></tr>{mild}</table>")

    assert both.count("text-danger") == 3
    assert both.count("text-warned") == 1
    assert both.index("text-warned") < both.index("rows are usual")
    assert "text-danger" not in only_mild
    assert "</i> nothing critical" in only_mild


def test_a_page_with_a_rule_that_was_not_evaluated_has_failed() -> None:
    broken = '<tr><td><i class="fas fa-exclamation-triangle text-warning"></i></td></tr>'
    page = f"{STATUS}{row_of('rows are usual (at least 5; warning)')}{broken}"

    assert "</i> Failed" in self_contained(f"<head></head>{page}")


@pytest.mark.parametrize(
    ("failed", "critical", "result"), [(0, 0, "held"), (1, 0, "warn"), (2, 1, "error")]
)
def test_a_run_in_which_only_warnings_failed_warns(failed: int, critical: int, result: str) -> None:
    at = datetime(2026, 3, 4, tzinfo=UTC)
    run = StoredRun("test/rows", "version-4", at, not failed, 9, failed, "a.html", critical)

    assert run.result == result


def test_a_page_is_rewritten_once(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(DRAWN)

    make_self_contained(page)
    once = page.read_text()
    make_self_contained(page)

    assert page.read_text() == once


@pytest.fixture
def site(tmp_path: Path) -> Path:
    for version, failed in ((3, 0), (4, 2)):
        store_run(tmp_path, "test/rows", version, failed, DRAWN)
    return tmp_path


def test_the_index_lists_the_newest_run_of_a_suite_and_all_that_are_kept(site: Path) -> None:
    pages = site / "pages"
    runs = stored_runs(site / "results", pages)

    write_index(pages, runs)

    assert [(r.suite, r.version, r.failed) for r in runs] == [
        ("test/rows", "version-4", 2),
        ("test/rows", "version-3", 0),
    ]
    text = (pages / "index.html").read_text()
    assert "2 failed" in text
    assert text.count("version-4") == 4, "newest and kept, each with its link"
    assert all((pages / run.page).is_file() for run in runs)
    assert text.count("<script") == 1, "the one that its policy lets run"
    assert "script-src 'sha256-" in text


def test_a_result_whose_page_is_gone_is_not_listed(site: Path) -> None:
    pages = site / "pages"
    next((pages / "validations").rglob("version-4/*.html")).unlink()

    assert [r.version for r in stored_runs(site / "results", pages)] == ["version-3"]
