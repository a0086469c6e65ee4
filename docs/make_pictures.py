"""Takes the pictures of the UI tour from a running UI, in headless Chromium.

    make ui                                   # in one terminal, after a demo, with a drip
    .venv/bin/python docs/make_pictures.py [--url http://127.0.0.1:3000] [--out docs/images]
    .venv/bin/python docs/make_pictures.py --page .rivermark/pages/dashboard.html
    .venv/bin/python docs/make_pictures.py --data-docs .rivermark/quality/pages/index.html

With `--page` it takes the dashboard alone, light and dark, on a desk and on a phone; with
`--data-docs` the index of the suites. `tests/stories/test_tour.py` does the README's tour and takes
those of the UI and of the dashboard, where RIVERMARK_PICTURES says to which folder.

Needs Debian's packages `chromium` and `chromium-driver`. Speaks the WebDriver protocol itself: no
further package is needed for a few pictures.
"""

from __future__ import annotations

import argparse
import base64
import json
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

PAGES = {
    "lineage": ("/locations/rivermark/asset-groups/taxi_events", "hourly_winners", 1240),
    "runs": ("/runs", "taxi_events_live", 500),
    "automation": ("/automation", "report_tables", 1040),
    "asset": ("/assets/taxi/hourly_winners?view=overview", "window_start", 1100),
    "alerts": ("/assets/fraud/guessed_passwords?view=overview", "GrowingDelay", 1700),
    "partitions": (
        "/assets/taxi/driver_tips?view=partitions&partition={day}",
        "Latest materialization",
        900,
    ),
    "checks": (
        "/assets/taxi/fare_events?view=checks&checkDetail=every_row_is_accounted_for",
        "every_row_is_accounted_for Succeeded",
        900,
    ),
}
"""Page, a text that it shows once its queries have answered, and the height that holds it."""
OF_FRAUD = ("alerts",)
OF_TAXI = tuple(name for name in PAGES if name not in OF_FRAUD)
"""Pages by the group that streams when they are taken."""

PATIENCE = 120
DRAWN = 8
"""Seconds for a page to show its text, and then to draw the rest."""

LOOKS = {
    "dashboard": ("", 1440, 840, False),
    "dashboard_results": ("#results", 1280, 1140, False),
    "dashboard_days": ("#stream-taxi-trip_events", 1280, 1000, False),
    "dashboard_phone_dark": ("#stream-taxi-trip_events", 390, 1100, True),
}
"""Place on the page, width and height of the window, and whether the reader prefers dark."""

ARGUMENTS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--window-size=1440,900",
]


class Browser:
    """One headless window behind a local chromedriver."""

    def __init__(self, port: int | None = None) -> None:
        """Start the driver, at a free port, and open a window with an empty profile."""
        port = port or free_port()
        self._base = f"http://127.0.0.1:{port}"
        self._driver = subprocess.Popen(
            ["chromedriver", f"--port={port}"], stdout=subprocess.DEVNULL
        )
        self._profile = tempfile.TemporaryDirectory()
        self._wait_for_driver()
        options = {"args": [*ARGUMENTS, f"--user-data-dir={self._profile.name}"]}
        wanted = {"capabilities": {"alwaysMatch": {"goog:chromeOptions": options}}}
        self._session = f"/session/{self._call('POST', '/session', wanted)['sessionId']}"

    def _wait_for_driver(self) -> None:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            try:
                if self._call("GET", "/status")["ready"]:
                    return
            except OSError:
                time.sleep(0.1)
        raise SystemExit("chromedriver does not answer: is Debian's chromium-driver installed?")

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(  # noqa: S310 - the driver on this machine
            self._base + path, data, {"Content-Type": "application/json"}, method=method
        )
        with urllib.request.urlopen(request, timeout=120) as answer:  # noqa: S310
            return json.load(answer)["value"]

    def open(self, url: str) -> None:
        """Open a page."""
        self._call("POST", f"{self._session}/url", {"url": url})

    def evaluate(self, script: str, *args: object) -> Any:
        """What a script returns that runs in the page; a page's own policy does not stop it."""
        body = {"script": script, "args": args}
        return self._call("POST", f"{self._session}/execute/sync", body)

    def command(self, name: str, values: dict[str, Any] | None = None) -> Any:
        """A command of the DevTools protocol."""
        body = {"cmd": name, "params": values or {}}
        return self._call("POST", f"{self._session}/goog/cdp/execute", body)

    def press_tab(self) -> None:
        """Go on to what the keyboard reaches next."""
        for kind in ("rawKeyDown", "keyUp"):
            key = {"type": kind, "key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9}
            self.command("Input.dispatchKeyEvent", key)

    def picture(self, url: str, text: str, path: Path) -> None:
        """Open a page, wait until it shows a text, and keep what a person would see."""
        self.open(url)
        deadline = time.monotonic() + PATIENCE
        while text not in " ".join(self.evaluate("return document.body.innerText").split()):
            if time.monotonic() > deadline:
                raise SystemExit(f"{url} does not show {text!r}")
            time.sleep(0.2)
        time.sleep(DRAWN)
        shot = self._call("GET", f"{self._session}/screenshot")
        path.write_bytes(base64.b64decode(shot))

    def look(self, width: int, height: int, *, dark: bool) -> None:
        """A window of that size, for a reader who prefers light or dark."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        for command, values in (
            ("Emulation.setEmulatedMedia", {"features": [scheme]}),
            (
                "Emulation.setDeviceMetricsOverride",
                {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 700},
            ),
        ):
            self.command(command, values)

    def close(self) -> None:
        """Close the window and end the driver."""
        self._call("DELETE", self._session)
        self._driver.terminate()
        self._driver.wait(10)
        self._profile.cleanup()


def free_port() -> int:
    """A port of this machine that nobody listens at."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def take_pictures(
    browser: Browser, url: str, day: date, out: Path, names: Iterable[str] = PAGES
) -> None:
    """Take the pictures of a UI; `day` is a finished day of the table whose days are shown."""
    for name in names:
        page, text, height = PAGES[name]
        browser.look(1440, height, dark=False)
        browser.picture(url + page.format(day=day), text, out / f"{name}.png")


def take_dashboard(browser: Browser, page: Path, out: Path) -> None:
    """Take the pictures of a dashboard that was drawn to a file."""
    for name, (place, width, height, dark) in LOOKS.items():
        browser.look(width, height, dark=dark)
        address = page.resolve().as_uri() + place
        browser.picture(address, "Streams and their days", out / f"{name}.png")


def take_data_docs(browser: Browser, index: Path, out: Path) -> None:
    """Take the picture of the index of Data Docs."""
    browser.look(1100, 760, dark=False)
    browser.picture(index.resolve().as_uri(), "The newest run", out / "data_docs.png")


def main() -> None:
    """Take every picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="http://127.0.0.1:3000")
    parser.add_argument("--out", type=Path, default=Path("docs/images"))
    parser.add_argument("--only", nargs="*", choices=PAGES, default=list(PAGES))
    yesterday = datetime.now(UTC).date() - timedelta(days=1)
    parser.add_argument("--day", type=date.fromisoformat, default=yesterday)
    parser.add_argument("--page", type=Path, help="The dashboard's file: only its pictures.")
    parser.add_argument("--data-docs", type=Path, help="The index of Data Docs: only its picture.")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    browser = Browser()
    try:
        if options.page:
            take_dashboard(browser, options.page, options.out)
        if options.data_docs:
            take_data_docs(browser, options.data_docs, options.out)
        if not (options.page or options.data_docs):
            take_pictures(browser, options.url, options.day, options.out, options.only)
    finally:
        browser.close()


if __name__ == "__main__":
    main()
