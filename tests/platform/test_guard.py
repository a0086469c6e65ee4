"""R14: no page of another site reads Dagster's page, starts a run or stops a sensor by it."""

from __future__ import annotations

import base64
import http.client
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rivermark.testing import wait_until

DEFINITIONS = """
import dagster as dg

@dg.op
def nothing(): ...

@dg.job
def quiet():
    nothing()

@dg.sensor(job=quiet, default_status=dg.DefaultSensorStatus.RUNNING)
def watches(): return dg.SkipReason("quiet")

defs = dg.Definitions(jobs=[quiet], sensors=[watches])
"""
STOP = "mutation%7BstopSensor(id:%22x%22)%7B__typename%7D%7D"
FOREIGN = "http://elsewhere.example"


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Dagster's own server behind the guard, as `make ui` starts it."""
    folder = tmp_path_factory.mktemp("guarded")
    (folder / "quiet.py").write_text(DEFINITIONS)
    (folder / "workspace.yaml").write_text("load_from: [{python_file: quiet.py}]\n")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    words = ("--workspace", str(folder / "workspace.yaml"), "--host", "127.0.0.1")
    server = subprocess.Popen(
        [sys.executable, "-m", "rivermark.dagster.ui.guard", *words, "--port", str(port)],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "DAGSTER_HOME": str(folder), "RIVERMARK_UI_HOSTS": '["proxy.example"]'},
    )
    try:
        wait_until(lambda: answers(port), 60, reason="the page is up")
        yield port
    finally:
        server.terminate()
        server.wait(30)


def answers(port: int) -> bool:
    try:
        return request(port, "GET", "/server_info")[0] == 200
    except OSError:
        return False


def request(
    port: int, method: str, path: str, headers: dict[str, str] | None = None, body: str = ""
) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request(method, path, body or None, headers or {})
    response = connection.getresponse()
    return response.status, response.read().decode(errors="replace")


def graphql(port: int, **headers: str) -> tuple[int, str]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    body = json.dumps({"query": "{version}"})
    return request(port, "POST", "/graphql", {"Content-Type": "application/json", **named}, body)


def test_r14_the_page_itself_works(port: int) -> None:
    own = f"http://127.0.0.1:{port}"

    assert request(port, "GET", "/", {"Sec-Fetch-Site": "none"})[0] == 200
    assert "version" in graphql(port, Origin=own, Sec_Fetch_Site="same-origin")[1]
    assert "version" in graphql(port)[1], "a client that is no browser"
    assert graphql(port, Host=f"localhost:{port}")[0] == 200
    assert graphql(port, Host="proxy.example", Origin="https://proxy.example")[0] == 200
    # A link in another page leads here, and shows nothing to that page.
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert request(port, "GET", "/", link)[0] == 200


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("path", ["/graphql", "/graphql/"])
def test_r14_a_picture_of_another_page_stops_no_sensor(port: int, method: str, path: str) -> None:
    """As `<img src=...>` asks: without an origin, and older browsers without more."""
    assert request(port, method, f"{path}?query={STOP}")[0] == 405


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": FOREIGN},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"},
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"},
        {"Host": "elsewhere.example"},
        {"Host": "127.0.0.1"},
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "PUT"])
def test_r14_what_another_page_asks_is_refused(
    port: int, method: str, headers: dict[str, str]
) -> None:
    asked = {"Content-Type": "text/plain", **headers}
    status, text = request(port, method, "/graphql", asked, json.dumps({"query": "{version}"}))

    assert status in (403, 421)
    assert "version" not in text


def test_each_page_of_dagster_leads_to_the_dashboard(port: int) -> None:
    for path in ("/", "/assets"):
        status, text = request(port, "GET", path)

        assert status == 200
        assert 'href="http://127.0.0.1:3001/pages/dashboard.html' in text
        assert text.endswith(">Dashboard</a></body></html>")


def test_r14_the_page_is_shown_within_no_other(port: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", "/")

    assert connection.getresponse().headers["X-Frame-Options"] == "SAMEORIGIN"


@pytest.mark.parametrize(("origin", "status"), [(FOREIGN, 403), ("null", 403), ("own", 101)])
def test_r14_a_websocket_of_another_page_is_not_accepted(
    port: int, origin: str, status: int
) -> None:
    headers = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": base64.b64encode(os.urandom(16)).decode(),
        "Sec-WebSocket-Protocol": "graphql-ws",
        "Origin": f"http://127.0.0.1:{port}" if origin == "own" else origin,
    }
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", "/graphql", None, headers)

    assert connection.getresponse().status == status
