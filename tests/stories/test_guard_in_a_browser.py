"""R14 in headless Chromium: a page of another site, or of another port, moves nothing in Dagster.

Skipped where Debian's `chromium` and `chromium-driver` are not installed.
"""

from __future__ import annotations

import functools
import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rivermark.testing import wait_until
from tests.platform.test_guard import port, request
from tests.stories.test_pages_in_a_browser import pytestmark

__all__ = ["port", "pytestmark"]

SENSORS = """{sensorsOrError(repositorySelector: {repositoryLocationName: "quiet.py",
  repositoryName: "__repository__"}) {... on Sensors {results {id sensorState {status}}}}}"""
ATTACK = """
<title>another site</title>
<img id="picture" src="{page}/graphql?query={mutation}">
<iframe id="frame" src="{page}/"></iframe>
<form id="form" method="post" enctype="text/plain" target="sink" action="{page}/graphql">
<input name='{{"query":"{escaped}","x":"' value='"}}'></form><iframe name="sink"></iframe>
<script>
window.found = [];
const note = (what, how) => window.found.push(what + ": " + how);
const body = JSON.stringify({{query: {query}}});
for (const [name, options] of Object.entries({{
  "text post": {{mode: "no-cors", headers: {{"Content-Type": "text/plain"}}}},
  "json post": {{headers: {{"Content-Type": "application/json"}}}},
}})) fetch("{page}/graphql", {{method: "POST", body, ...options}}).then(
  answer => answer.text().then(text => note(name, "read " + text.length)),
  () => note(name, "refused"));
fetch("{page}/graphql?query=%7Bversion%7D").then(
  answer => answer.text().then(text => note("get", "read " + text.length)),
  () => note("get", "refused"));
const socket = new WebSocket("{page}/graphql".replace("http", "ws"), "graphql-ws");
socket.onopen = () => note("socket", "open");
socket.onerror = () => note("socket", "refused");
document.getElementById("form").submit();
</script>
"""


@pytest.fixture
def sensor(port: int) -> dict[str, Any]:
    """The running sensor of the page, once its code is loaded."""

    def running() -> list[dict[str, Any]]:
        found = sensors(port)
        return [each for each in found if each["sensorState"]["status"] == "RUNNING"]

    [found] = wait_until(running, 60, reason="the sensor is listed")
    return found


def sensors(port: int) -> list[dict[str, Any]]:
    body = json.dumps({"query": SENSORS})
    _, text = request(port, "POST", "/graphql", {"Content-Type": "application/json"}, body)
    return list(json.loads(text)["data"]["sensorsOrError"].get("results", []))


@pytest.fixture(scope="module")
def browser(make_pictures: Any) -> Iterator[Any]:
    window = make_pictures.Browser()
    yield window
    window.close()


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1"])
def test_r14_no_page_of_another_site_reads_or_moves_dagsters(
    name: str, port: int, sensor: dict[str, Any], browser: Any, tmp_path: Path
) -> None:
    """By another name it is another site, by another port the same site and another origin."""
    mutation = f'mutation {{stopSensor(id: "{sensor["id"]}") {{__typename}}}}'
    escaped = mutation.replace('"', '\\"')
    values = {"mutation": mutation.replace('"', "%22"), "escaped": escaped.replace("'", "&#39;")}
    page = ATTACK.format(page=f"http://127.0.0.1:{port}", query=json.dumps(mutation), **values)
    (tmp_path / "index.html").write_text(page)
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser.open(f"http://{name}:{server.server_port}/")
        # A post without cors is answered by nothing that its page can read.
        found = wait_until(
            lambda: f if len(f := browser.evaluate("return window.found")) == 4 else None,
            30,
            reason="all has been tried",
        )
        loaded = browser.evaluate("return document.getElementById('picture').naturalWidth")
        server.shutdown()

    assert sorted(found or []) == [
        "get: refused",
        "json post: refused",
        "socket: refused",
        "text post: read 0",
    ]
    assert loaded == 0
    [still] = sensors(port)
    assert still["sensorState"]["status"] == "RUNNING"
    # The same mutation of the page's own origin works: it was right but for where it came from.
    own = f"http://127.0.0.1:{port}"
    headers = {"Content-Type": "application/json", "Origin": own}
    assert request(port, "POST", "/graphql", headers, json.dumps({"query": mutation}))[0] == 200
    [stopped] = sensors(port)
    assert stopped["sensorState"]["status"] == "STOPPED"
    start = """mutation {startSensor(sensorSelector: {repositoryLocationName: "quiet.py",
      repositoryName: "__repository__", sensorName: "watches"}) {__typename}}"""
    request(port, "POST", "/graphql", headers, json.dumps({"query": start}))
