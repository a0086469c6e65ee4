"""A real Prometheus scrapes the metrics, fires an alert for a stream that fell silent, resolves it.

Skipped where Debian's `prometheus` is not installed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import psutil
import pytest

from rivermark.runtime.batch_metrics import BatchMetrics
from rivermark.runtime.supervision.desired_state import DesiredStore
from rivermark.runtime.supervision.heartbeat import Heartbeat, HeartbeatStore
from rivermark.runtime.supervision.progress_log import ProgressLog
from rivermark.settings import Settings
from rivermark.testing import wait_until
from setup.local_server import free_port

pytestmark = pytest.mark.skipif(
    shutil.which("prometheus") is None, reason="needs Debian's package prometheus"
)
STREAM: Final = "readings/sensor_readings"
CONFIG: Final = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [{rules}]
scrape_configs:
  - job_name: rivermark
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
"""


def rivermark(home: Path, *arguments: str) -> list[str]:
    command = "from rivermark.cli.main import app; app()"
    return [sys.executable, "-c", command, *arguments, "--home", str(home)]


@contextmanager
def started(command: list[str], log: Path) -> Iterator[psutil.Process]:
    with log.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
        try:
            yield psutil.Process(process.pid)
        finally:
            process.terminate()
            process.wait(20)


def asked(port: int, path: str, **query: str) -> Any:
    address = f"http://127.0.0.1:{port}/api/v1/{path}?{urllib.parse.urlencode(query)}"
    try:
        with urllib.request.urlopen(address, timeout=5) as response:
            return json.loads(response.read())["data"]
    except OSError:
        return None


def value(port: int, expression: str) -> float | None:
    data = asked(port, "query", query=expression)
    return float(data["result"][0]["value"][1]) if data and data["result"] else None


def firing(port: int) -> set[str]:
    data = asked(port, "alerts") or {"alerts": []}
    return {
        each["labels"]["alertname"]
        for each in data["alerts"]
        if each["state"] == "firing" and each["labels"].get("stream") in (STREAM, None)
    }


def test_prometheus_scrapes_and_an_alert_fires_and_resolves(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home")
    rules = subprocess.run(
        rivermark(settings.home, "metrics", "--rules"), capture_output=True, text=True, check=True
    ).stdout
    # The story does not wait for the minutes that an alert waits.
    (tmp_path / "rules.yml").write_text(rules.replace("for: 2m", "for: 0s"))
    metrics_port, port = free_port(), free_port()
    config = tmp_path / "prometheus.yml"
    config.write_text(CONFIG.format(rules=tmp_path / "rules.yml", port=metrics_port))
    DesiredStore(settings.state).set("readings", "run", by="story", reason="story")

    def beat(at: datetime) -> None:
        known: Any = {
            "group": "readings",
            "run_id": "story",
            "pid": os.getpid(),
            "state": "running",
        }
        HeartbeatStore(settings.state).beat(Heartbeat(stream=STREAM, at=at, **known))

    def record(number: int, rows: int) -> None:
        log = ProgressLog(settings.lake())
        log.add(
            BatchMetrics(
                stream=STREAM,
                generation=1,
                run_id="story",
                batch_id=number,
                started_at=datetime.now(UTC),
                rows_in=rows,
                duration_ms=700,
            )
        )
        log.flush()

    beat(datetime.now(UTC))
    record(0, 5)
    serve = rivermark(settings.home, "metrics", "--serve", "--port", str(metrics_port))
    prometheus = [
        "prometheus",
        f"--config.file={config}",
        f"--storage.tsdb.path={tmp_path / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with (
        started(serve, tmp_path / "metrics.log") as server,
        started(prometheus, tmp_path / "prometheus.log"),
    ):
        rows = f'rivermark_rows_in_total{{stream="{STREAM}"}}'
        wait_until(lambda: value(port, rows) == 5, reason="Prometheus has scraped")
        assert value(port, f'rivermark_alive{{stream="{STREAM}"}}') == 1
        record(1, 7)
        wait_until(lambda: value(port, rows) == 12, reason="the next batch counts")
        assert "RivermarkStreamDead" not in firing(port)

        beat(datetime.now(UTC) - timedelta(minutes=10))
        wait_until(lambda: "RivermarkStreamDead" in firing(port), reason="it fires")
        beat(datetime.now(UTC))
        wait_until(lambda: "RivermarkStreamDead" not in firing(port), reason="it is over")
        assert value(port, "count(rivermark_unreadable == 1) or vector(0)") == 0
        looks = value(port, "count_over_time(up[1h])") or 0
        spent = server.cpu_times()
        print(f"{looks:.0f} looks, {spent.user + spent.system:.2f} CPU-s")  # noqa: T201
