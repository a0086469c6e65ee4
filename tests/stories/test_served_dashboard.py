"""The served dashboard: it goes on by itself where the reader is, and any look becomes one file.

Served as in any project, by `rivermark dashboard --serve`, and looked at in headless Chromium.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from rivermark import Plot, Topology
from rivermark.monitor.dashboard.refresh import page_path
from rivermark.settings import Settings
from rivermark.testing import wait_until
from setup.local_server import free_port
from tests.oracles.shop import ORDERS, PAYMENTS, SHOP, START, append
from tests.stories.test_pages_in_a_browser import browser
from tests.stories.test_pages_in_a_browser import pytestmark as NEEDS
from tests.unit.monitor.dashboard.test_dashboard import home

__all__ = ["browser", "home"]
pytestmark = [pytest.mark.story, NEEDS]
ROOT = Path(__file__).parents[2]
SHOWN = Topology(
    SHOP.streams,
    plots=[
        Plot(title="Orders", table=ORDERS.admitted, x="at"),
        Plot(title="Payments by file", table=PAYMENTS.admitted, x="_file", y="amount", unit="EUR"),
    ],
)
"""What the project of this story declares."""
PROJECT = '[tool.rivermark]\ntopology = "tests.stories.test_served_dashboard:SHOWN"\n'
COMMAND = "from rivermark.cli.main import app; app()"
LOOK = (
    "return [document.querySelector('time').dateTime, window.stayed === true, "
    "[...document.querySelectorAll('main details')].filter(f => f.open).length, "
    "document.getElementById('find').value, document.activeElement.tagName, "
    "Math.round(scrollY), document.getElementById('live').textContent]"
)
ROWS = (
    "return [...document.querySelectorAll('main tbody tr')].filter(r => r.checkVisibility())"
    ".map(r => r.textContent)"
)


@pytest.fixture(scope="module")
def address(home: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address that the command prints, with its token."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "pyproject.toml").write_text(PROJECT)
    environment = {
        **os.environ,
        "RIVERMARK_HOME": str(home.home),
        "RIVERMARK_PAGES_PORT": str(free_port()),
        "PYTHONPATH": str(ROOT),
        "PYTHONUNBUFFERED": "1",
    }
    with subprocess.Popen(
        [sys.executable, "-c", COMMAND, "dashboard", "--serve", "--no-checks"],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdout is not None
        lines = iter(server.stdout.readline, "")
        yield next(line.split()[-1] for line in lines if "served" in line)
        server.terminate()


def results_of(address: str) -> str:
    return address.replace("/dashboard.html", "/results.html")


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_it_goes_on_by_itself_where_the_reader_is(
    browser: Any, address: str, home: Settings, width: int, dark: bool
) -> None:
    browser.look(width, 900, dark=dark)
    browser.open(address)
    browser.evaluate(
        "window.stayed = true;"
        "document.querySelectorAll('#tables details, #checks details').forEach(f => f.open = true);"
        "const box = document.getElementById('find'); box.value = 'shop';"
        "box.dispatchEvent(new Event('input')); box.focus(); scrollTo(0, 300)"
    )
    before = browser.evaluate(LOOK)
    rows = "return document.querySelector('main').textContent.includes('without_order')"
    assert browser.evaluate(rows)

    append(home, ORDERS.admitted, [{"order_id": width, "at": START + timedelta(days=3)}])
    long_ago = time.time() - 3600
    os.utime(page_path(home), (long_ago, long_ago))

    after = wait_until(
        lambda: (now := browser.evaluate(LOOK))[0] != before[0] and now,
        reason="a newer page is taken up",
    )
    assert after[1:6] == before[1:6], "no reload; folds, search, focus and place are as they were"
    assert after[1] is True
    wait_until(lambda: "Refreshes by itself; drawn" in browser.evaluate(LOOK)[6], 30)
    assert browser.evaluate("return document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("page", ["dashboard", "results"])
def test_a_look_is_saved_as_one_file_that_needs_nothing(
    browser: Any, address: str, tmp_path: Path, page: str
) -> None:
    browser.look(1280, 900, dark=False)
    browser.command(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)}
    )
    browser.open(address if page == "dashboard" else results_of(address))
    browser.evaluate(
        "const fold = document.querySelector('#tables details'); if (fold) fold.open = true;"
        "const box = document.getElementById('find');"
        "if (box) { box.value = 'payments'; box.dispatchEvent(new Event('input')); }"
    )
    rows = browser.evaluate(ROWS)
    browser.evaluate("document.getElementById('save').click()")
    file: Any = wait_until(lambda: next(tmp_path.glob("*.html"), None), 60, reason="it is saved")
    assert file.name.startswith(f"{page}-2")
    assert "token" not in file.read_text()

    browser.open(file.as_uri())

    assert browser.evaluate("return performance.getEntriesByType('resource').length") == 0
    assert browser.evaluate(ROWS) == rows
    if page == "dashboard":
        assert rows
        assert browser.evaluate("return document.getElementById('find').value") == "payments"
        assert browser.evaluate("return document.querySelector('#tables details').open")


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_results_are_shown_large_and_each_as_a_picture(
    browser: Any, address: str, tmp_path: Path, width: int, dark: bool
) -> None:
    browser.look(width, 900, dark=dark)
    browser.command(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)}
    )
    browser.open(results_of(address))

    titles = browser.evaluate(
        "return [...document.querySelectorAll('.chart b')].map(b => b.textContent)"
    )
    height = browser.evaluate("return document.querySelector('.plot').clientHeight")
    assert titles == ["Orders", "Payments by file"]
    assert height > 250
    assert browser.evaluate("return document.documentElement.scrollWidth") <= width

    browser.evaluate("document.querySelector('.picture a').click()")
    picture: Any = wait_until(lambda: next(tmp_path.glob("*.svg"), None), 60, reason="it is saved")
    assert picture.name == "orders.svg"
    assert picture.read_text().startswith("<svg")


def test_a_page_whose_server_ends_says_so(browser: Any, address: str) -> None:
    """The last test of the module: it makes the page ask where nobody answers."""
    browser.look(1280, 900, dark=False)
    browser.open(address)
    browser.evaluate("window.fetch = () => Promise.reject(new Error('nobody answers'))")

    wait_until(
        lambda: (
            browser.evaluate("return document.getElementById('live').textContent")
            == "Stands still: nobody answers"
        ),
        30,
    )
    assert browser.evaluate("return document.getElementById('live').className") == "dim lost"
