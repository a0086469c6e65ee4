"""The dashboard in headless Chromium: on a phone and a desk, light and dark, read and by keyboard.

Skipped where Debian's `chromium` and `chromium-driver` are not installed.
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rivermark.monitor.dashboard.refresh import refresh
from rivermark.settings import Settings
from tests.oracles.shop import SHOP
from tests.unit.monitor.dashboard.test_dashboard import NOW, home

__all__ = ["home"]
pytestmark = pytest.mark.skipif(
    shutil.which("chromium") is None or shutil.which("chromedriver") is None,
    reason="needs chromium and chromedriver (Debian: chromium, chromium-driver)",
)
LOOKS = [(390, True), (1280, False)]
LEAST_CONTRAST = 4.5
"""WCAG 2, level AA, of text of ordinary size."""

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


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    path = Path(__file__).parents[4] / "docs" / "make_pictures.py"
    spec = importlib.util.spec_from_file_location("make_pictures", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    found = module.Browser()
    yield found
    found.close()


@pytest.fixture(scope="module")
def address(home: Settings) -> str:
    return refresh(home, SHOP, NOW).path.as_uri()


@pytest.mark.parametrize(("width", "dark"), LOOKS)
def test_it_fits_the_window_and_can_be_read(
    browser: Any, address: str, width: int, dark: bool
) -> None:
    browser.look(width, 900, dark=dark)
    browser.open(address)

    wide = browser.evaluate("return document.documentElement.scrollWidth")
    contrasts = browser.evaluate(CONTRASTS)
    background = browser.evaluate("return getComputedStyle(document.body).backgroundColor")

    assert wide <= width, "only tables scroll sideways, each in its own region"
    assert len(contrasts) > 100
    assert [c for c in contrasts if c[0] < LEAST_CONTRAST] == []
    assert (background != "rgb(255, 255, 255)") is dark


def test_it_asks_the_network_for_nothing(browser: Any, address: str) -> None:
    browser.open(address)

    assert browser.evaluate("return performance.getEntriesByType('resource').length") == 0


def test_a_screen_reader_finds_places_names_and_tables(browser: Any, address: str) -> None:
    browser.open(address)
    browser.command("Accessibility.enable")

    nodes = browser.command("Accessibility.getFullAXTree")["nodes"]
    told: dict[str, list[str]] = {}
    for node in nodes:
        if not node.get("ignored"):
            name = node.get("name", {}).get("value", "")
            told.setdefault(node["role"]["value"], []).append(name)

    assert {"main", "navigation", "banner", "contentinfo"} <= set(told)
    for role in ("image", "table", "region", "link", "heading"):
        assert told[role], role
        assert all(told[role]), f"a {role} without a name"
    assert any("Rows of shop/payments by hour" in name for name in told["image"])


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
    assert {r[3] for r in reached if r[0] in ("A", "SUMMARY", "DIV")} == {"solid"}
