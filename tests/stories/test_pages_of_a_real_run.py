"""The pages that a real run leaves, in headless Chromium: at six looks, and every link followed.

Dagster drains files with late and broken rows, and a suite finds failing ones: so there are a
dashboard with plots, a page of failing rows, Data Docs and their index. `RIVERMARK_PICTURES` names
a folder that keeps a picture of each page and look.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from pyspark.sql import SparkSession

from rivermark import Plot, Suite, Topology, expect
from rivermark.monitor.dashboard.failing_rows import page_path as failing_rows_page
from rivermark.monitor.dashboard.refresh import refresh
from rivermark.settings import Settings
from tests.platform.conftest import definitions_in
from tests.platform.test_end_to_end import HOURLY, MONDAY, NOON, RIDES, land
from tests.stories.test_pages_in_a_browser import (
    AUDIT,
    AXE,
    CONTRASTS,
    CUT,
    LEAST_CONTRAST,
    LOOKS,
    OPEN_ALL,
    pytestmark,
)

__all__ = ["pytestmark"]

BUSY = replace(
    HOURLY,
    suite=Suite(
        name="taxi/hourly", expectations=(expect.between("rides", 1, 50, severity="warning"),)
    ),
)
"""Its first hour has 60 rides."""
PLOTTED = Topology(
    [RIDES, BUSY],
    plots=[
        Plot(title="Rides an hour", table=BUSY.tables[0], x="window_start", y="rides"),
        Plot(title="Rides a file", table=RIDES.admitted, x="_file"),
    ],
)
LINKS = "return [...document.querySelectorAll('a')].map(a => a.href)"
FOLLOW = """
const a = document.querySelectorAll('a')[arguments[0]];
for (let e = a; e; e = e.parentElement) if (e.tagName === 'DETAILS') e.open = true;
a.click();
"""
ARRIVED = """
const place = decodeURIComponent(location.hash.slice(1));
return document.readyState === 'complete' && document.body.innerText.trim() !== ''
  && (!place || document.getElementById(place)?.checkVisibility() === true);
"""


@dataclass(frozen=True)
class Pages:
    """The pages of a home: three that are drawn here, and those of Great Expectations."""

    dashboard: Path
    failing_rows: Path
    index: Path
    data_docs: tuple[Path, ...]

    @property
    def own(self) -> tuple[Path, ...]:
        return (self.dashboard, self.failing_rows, self.index)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Pages:
    """A home in which Dagster drained files, and a dashboard drawn of it."""
    home = tmp_path_factory.mktemp("real")
    settings = Settings(home=home)
    land(settings, "1.json", *[(n, MONDAY + NOON + timedelta(minutes=n)) for n in range(90)])
    next_day = MONDAY + timedelta(days=1) + NOON
    land(settings, "2.json", (100, next_day), (101, next_day + timedelta(hours=2)))
    land(settings, "3.json", (7, MONDAY + NOON), "not a ride")
    with dg.instance_for_test(temp_dir=str(tmp_path_factory.mktemp("dagster"))) as instance:
        job = definitions_in(PLOTTED, home).resolve_job_def("taxi_catch_up")
        assert job.execute_in_process(instance=instance).success
    session = SparkSession.getActiveSession()
    if session is not None:
        session.stop()
    quality = home / "quality" / "pages"
    data_docs = tuple(sorted((quality / "validations").rglob("*.html")))
    return Pages(
        refresh(settings, PLOTTED, datetime.now(UTC)).path,
        failing_rows_page(settings, BUSY.tables[0]),
        quality / "index.html",
        data_docs,
    )


@pytest.fixture(scope="module")
def browser(make_pictures: Any) -> Iterator[Any]:
    window = make_pictures.Browser()
    yield window
    window.close()


def keep_picture(browser: Any, page: Path, width: int, dark: bool, folder: Path) -> None:
    """Write a picture of the whole page that is shown."""
    height = browser.evaluate("return document.documentElement.scrollHeight")
    clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
    taken = browser.command("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
    name = f"{page.stem}_{width}_{'dark' if dark else 'light'}.png"
    (folder / name).write_bytes(base64.b64decode(taken["data"]))


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_the_pages_of_a_real_run_fit_are_read_and_are_accessible(
    browser: Any, pages: Pages, width: int, dark: bool, tmp_path: Path
) -> None:
    pictures = Path(os.environ.get("RIVERMARK_PICTURES", tmp_path))
    browser.look(width, 900, dark=dark)
    for page in pages.own:
        browser.open(page.as_uri())
        keep_picture(browser, page, width, dark, pictures)
        browser.evaluate(OPEN_ALL)

        assert browser.evaluate("return document.documentElement.scrollWidth") <= width, page
        assert browser.evaluate(CUT) == [], page
        contrasts = browser.evaluate(CONTRASTS)
        assert contrasts
        assert [c for c in contrasts if c[0] < LEAST_CONTRAST] == [], page
        if AXE.is_file():
            browser.evaluate(AXE.read_text(encoding="utf-8"))
            assert browser.evaluate(AUDIT) == [], page


@pytest.mark.parametrize("width", [1280, 390])
def test_each_link_of_a_real_run_arrives(browser: Any, pages: Pages, width: int) -> None:
    browser.look(width, 900, dark=False)
    followed = set()
    for page in pages.own:
        browser.open(page.as_uri())
        for n, link in enumerate(browser.evaluate(LINKS)):
            browser.open(page.as_uri())
            browser.evaluate(FOLLOW, n)
            assert browser.evaluate("return location.href") == link
            assert browser.evaluate(ARRIVED) is True, link
            followed.add(link.partition("#")[0])

    assert pages.data_docs
    assert {each.as_uri() for each in (*pages.own[:2], *pages.data_docs)} <= followed
