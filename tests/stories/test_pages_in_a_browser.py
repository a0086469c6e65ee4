"""The dashboard in headless Chromium: on desks and a phone, light and dark, read and by keyboard.

Skipped where Debian's `chromium` and `chromium-driver` are not installed; the audit of
accessibility also where `setup/axe.sh` could not get axe-core.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rivermark import Marks, Plot, Topology
from rivermark.monitor.dashboard import failing_rows
from rivermark.monitor.dashboard.refresh import refresh
from rivermark.quality.failing_rows import Evidence
from rivermark.quality.gx.offline_docs import StoredRun, write_index
from rivermark.quality.result import FailingRows
from rivermark.settings import Settings
from rivermark.testing import wait_until
from tests.oracles.shop import ORDERS, PAID, PAYMENTS, SHOP
from tests.oracles.stored_runs import store_run
from tests.unit.monitor.dashboard.test_dashboard import NOW, home

__all__ = ["home"]
pytestmark = pytest.mark.skipif(
    shutil.which("chromium") is None or shutil.which("chromedriver") is None,
    reason="needs chromium and chromedriver (Debian: chromium, chromium-driver)",
)
ROOT = Path(__file__).parents[2]
AXE = ROOT / ".cache" / "axe" / "node_modules" / "axe-core" / "axe.min.js"
LOOKS = [(width, dark) for width in (1440, 1280, 390) for dark in (False, True)]
LEAST_CONTRAST = 4.5
"""WCAG 2, level AA, of text of ordinary size."""
PLOTTED = Topology(
    SHOP.streams,
    plots=[
        Plot(title="Orders", table=ORDERS.admitted, x="at"),
        Plot(
            title="Money",
            table=PAYMENTS.admitted,
            x="at",
            y="amount",
            kind="line",
            marks=(Marks(name="unpaid", table=PAID.tables[1], start="at"),),
        ),
        Plot(title="Files", table=ORDERS.admitted, x="_file"),
    ],
)

OPEN_ALL = "document.querySelectorAll('details').forEach(fold => fold.open = true);"

CONTRASTS = """
const lum = c => c.map(v => v / 255).map(
  v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4
).reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
const rgb = text => (text.match(/[0-9.]+/g) || []).map(Number);
const behind = e => {
  for (; e; e = e.parentElement) {
    const c = rgb(getComputedStyle(e).backgroundColor);
    if (c.length === 3 || c[3] > 0) return c.slice(0, 3);
  }
  return [255, 255, 255];
};
const found = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const text = walker.currentNode.textContent.trim(), e = walker.currentNode.parentElement;
  if (!text || e.closest('svg') || !e.getClientRects().length) continue;
  const pair = [lum(rgb(getComputedStyle(e).color).slice(0, 3)), lum(behind(e))];
  pair.sort((a, b) => b - a);
  found.push([(pair[0] + 0.05) / (pair[1] + 0.05), text.slice(0, 40)]);
}
return found;
"""

CUT = """
return [...document.querySelectorAll('.wide, .tiles li, summary')]
  .filter(e => e.checkVisibility() && e.scrollWidth > e.clientWidth + 1)
  .map(e => e.getAttribute('aria-label') || e.textContent.slice(0, 60));
"""
"""What is wider than its place."""

NAMED = """
const place = document.getElementById(arguments[0]);
const folded = place.closest('details > summary + div');
const top = (folded ? folded.previousElementSibling : place).getBoundingClientRect().top;
return top > -1 && top < innerHeight;
"""
"""Whether the name of a place that was gone to is in the window."""

FIND = """
const box = document.getElementById('find');
box.value = arguments[0];
box.dispatchEvent(new Event('input'));
"""

AUDIT = """
return axe.run(document, {resultTypes: ['violations']}).then(done => done.violations
  .filter(v => ['serious', 'critical'].includes(v.impact))
  .map(v => `${v.id}: ${v.help}: ${v.nodes.map(n => n.html).slice(0, 3).join(' ')}`));
"""


@pytest.fixture(scope="module")
def browser(make_pictures: Any) -> Iterator[Any]:
    window = make_pictures.Browser()
    yield window
    window.close()


@pytest.fixture(scope="module")
def address(home: Settings) -> str:
    return refresh(home, PLOTTED, NOW).path.as_uri()


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory, address: str) -> list[str]:
    """The index of Data Docs, a page of failing rows, and the results alone."""
    folder = tmp_path_factory.mktemp("pages")
    runs = [
        StoredRun("shop/orders", f"version-{n}", NOW, n > 1, 9, n < 2, "a.html", critical=n < 1)
        for n in range(3)
    ]
    write_index(folder, runs)
    failing = FailingRows("amount is small", 30, ("id", "text"), ((1, "a " * 99),) * 3)
    by_day = {failing.rule: {NOW.date(): 30}}
    evidence = Evidence("shop/payments", 7, (failing,), by_day, ("customer",), "rivermark show")
    failing_rows.write(evidence, folder / "failing.html")
    pages = [(folder / name).as_uri() for name in ("index.html", "failing.html")]
    return [*pages, address.replace("dashboard.html", "results.html")]


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_it_fits_the_window_and_can_be_read(
    browser: Any, address: str, width: int, dark: bool
) -> None:
    browser.look(width, 900, dark=dark)
    browser.open(address)
    folded = browser.evaluate("return document.documentElement.scrollHeight")
    browser.evaluate(OPEN_ALL)

    wide = browser.evaluate("return document.documentElement.scrollWidth")
    contrasts = browser.evaluate(CONTRASTS)
    background = browser.evaluate("return getComputedStyle(document.body).backgroundColor")

    assert wide <= width
    assert browser.evaluate(CUT) == []
    assert browser.evaluate("return document.documentElement.scrollHeight") > folded
    assert len(contrasts) > 100
    assert [c for c in contrasts if c[0] < LEAST_CONTRAST] == []
    assert (background != "rgb(255, 255, 255)") is dark


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_the_other_pages_fit_the_window_too(
    browser: Any, others: list[str], width: int, dark: bool
) -> None:
    browser.look(width, 900, dark=dark)
    for page in others:
        browser.open(page)

        assert browser.evaluate("return document.documentElement.scrollWidth") <= width
        assert [c for c in browser.evaluate(CONTRASTS) if c[0] < LEAST_CONTRAST] == []


@pytest.mark.skipif(not AXE.is_file(), reason="needs axe-core: setup/axe.sh fetches it by npm")
@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_an_audit_of_accessibility_finds_nothing_serious(
    browser: Any, address: str, others: list[str], width: int, dark: bool
) -> None:
    browser.look(width, 900, dark=dark)
    for page in (address, *others):
        browser.open(page)
        browser.evaluate(OPEN_ALL)
        browser.evaluate(AXE.read_text(encoding="utf-8"))

        assert browser.evaluate(AUDIT) == []


def test_it_asks_the_network_for_nothing(browser: Any, address: str) -> None:
    browser.open(address)

    assert browser.evaluate("return performance.getEntriesByType('resource').length") == 0


@pytest.mark.parametrize("width", [1280, 390])
def test_each_link_leads_to_something_that_is_then_seen(
    browser: Any, address: str, width: int
) -> None:
    browser.look(width, 900, dark=False)
    browser.open(address)
    links = browser.evaluate(
        "return [...document.querySelectorAll('a')].map(a => a.getAttribute('href'))"
        ".filter(to => to.startsWith('#'))"
    )

    assert len(links) > 5
    for n, link in enumerate(links):
        browser.open(address)
        browser.evaluate(
            "const a = document.querySelectorAll('a[href^=\"#\"]')[arguments[0]];"
            "for (let e = a; e; e = e.parentElement) if (e.tagName === 'DETAILS') e.open = true;"
            "a.click()",
            n,
        )
        seen = "return document.getElementById(arguments[0])?.checkVisibility()"
        place = link.removeprefix("#")
        assert browser.evaluate(seen, place) is True, link
        wait_until(partial(browser.evaluate, NAMED, place), 60, reason=f"{place} is named")


def test_a_suite_leads_to_its_data_docs(browser: Any, home: Settings) -> None:
    docs = store_run(home.home / "quality", "shop/orders", 1, page="<p>Data Docs of orders</p>")
    browser.open(refresh(home, PLOTTED, NOW).path.as_uri())
    browser.evaluate(OPEN_ALL)

    browser.evaluate("document.querySelector('a[href*=quality]').click()")

    wait_until(lambda: browser.evaluate("return location.href") == docs.as_uri())
    assert browser.evaluate("return document.body.textContent") == "Data Docs of orders"


def test_rows_are_found_as_one_types(browser: Any, address: str) -> None:
    browser.open(address)
    rows = (
        "return [...document.querySelectorAll('main tbody tr')].filter(r => r.checkVisibility())"
        ".map(r => r.textContent)"
    )
    before = browser.evaluate(rows)

    browser.evaluate(FIND, "payments accounted")
    some = browser.evaluate(rows)
    browser.evaluate(FIND, "")

    assert some
    assert all("payments" in row.lower() and "accounted" in row.lower() for row in some)
    assert browser.evaluate(rows) == before


def test_a_table_is_sorted_by_a_column(browser: Any, address: str) -> None:
    browser.open(address)
    browser.evaluate(OPEN_ALL)
    click = (
        "const t = [...document.querySelectorAll('table')].find("
        "t => t.caption.textContent.startsWith('Tables on disk'));"
        "const n = [...t.tHead.rows[0].cells].findIndex(c => c.textContent === 'rows');"
        "t.tHead.rows[0].cells[n].querySelector('button').click();"
        "return [t.tHead.rows[0].cells[n].getAttribute('aria-sort'),"
        "[...t.tBodies[0].rows].map(r => Number(r.cells[n].textContent.replaceAll(',', '')))]"
    )

    up, rising = browser.evaluate(click)
    down, falling = browser.evaluate(click)

    assert (up, down) == ("ascending", "descending")
    assert rising == sorted(rising)
    assert falling == sorted(rising, reverse=True) != rising


def test_a_screen_reader_finds_places_names_and_tables(browser: Any, address: str) -> None:
    # On a telephone the heads of tables, and with them their buttons, are folded away.
    browser.look(1280, 900, dark=False)
    browser.open(address)
    browser.evaluate(OPEN_ALL)
    browser.command("Accessibility.enable")

    nodes = browser.command("Accessibility.getFullAXTree")["nodes"]
    told: dict[str, list[str]] = {}
    for node in nodes:
        if not node.get("ignored"):
            name = node.get("name", {}).get("value", "")
            told.setdefault(node["role"]["value"], []).append(name)

    assert {"main", "navigation", "banner", "contentinfo", "search", "searchbox"} <= set(told)
    for role in ("image", "table", "region", "link", "heading", "button"):
        assert told[role], role
        assert all(told[role]), f"a {role} without a name"
    assert any("Rows of shop/payments by hour" in name for name in told["image"])
    assert any(name.startswith("Throughput. 2026-03-") for name in told["image"])


def test_the_keyboard_reaches_the_content_and_every_wide_table(browser: Any, address: str) -> None:
    browser.look(390, 900, dark=False)
    browser.open(address)
    reached = []
    for _ in range(80):
        browser.press_tab()
        reached.append(
            browser.evaluate(
                "const e = document.activeElement, s = getComputedStyle(e);"
                "const wide = [...document.querySelectorAll('.wide')].indexOf(e);"
                "return [e.tagName, wide, e.getAttribute('href'), s.outlineStyle]"
            )
        )

    assert reached[0][2] == "#main", "first the way past the head of the page"
    shown = browser.evaluate(
        "return [...document.querySelectorAll('.wide')]"
        ".map((e, n) => [e.checkVisibility(), n]).filter(e => e[0]).map(e => e[1])"
    )
    assert set(shown) == {wide for _, wide, _, _ in reached if wide >= 0} != set()
    # The first one is off the window until it has the focus, and says so by being there.
    focused = ("A", "SUMMARY", "DIV", "INPUT", "BUTTON")
    assert {r[3] for r in reached if r[0] in focused} == {"solid"}
