"""Makes the runs that the UI tour is pictured from: days of rides and fares, merged and evaluated.

    .venv/bin/python docs/make_runs.py FOLDER             # then, to look around: make ui's address
    .venv/bin/python docs/make_runs.py FOLDER --pictures  # and takes the pictures of docs/images

A week of a ride every six minutes with 2 % late rows, an hour a file, and fares that are silent for
three hours of the third day. Each job is executed by Dagster as its own run, with the instance's
own settings: streams brought up to date and checked, days evaluated, late rows merged, days
evaluated again, a day rehearsed. Takes some minutes; needs what `make setup` brings. Two pictures
show a live run and its sensor: they are taken by docs/make_pictures.py beside `make ui`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from assets.taxi.ingest import FARE_EVENTS, RIDE_EVENTS
from rivermark.settings import Settings
from simulator.disorder import Disorder
from simulator.feeds import Feed, drip_feeds
from simulator.taxi.arrivals import rides_by_event_time
from simulator.taxi.clock import RideClock
from simulator.taxi.fares import fares

ROOT = Path(__file__).resolve().parent.parent
BEGIN = datetime(2020, 1, 1, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
SPACING = timedelta(minutes=6)
RIDES = 7 * DAY // SPACING + 80
SILENT = (BEGIN + 2 * DAY + 9 * HOUR, BEGIN + 2 * DAY + 12 * HOUR)

REHEARSAL = {"stream": "taxi/driver_tips", "first": "2020-01-04", "way": "rehearse"}
PICTURES = ("lineage", "asset", "partitions", "checks")
JOBS: list[tuple[str, dict[str, Any]]] = [
    ("taxi_events_catch_up", {}),
    ("trust", {}),
    ("fold_late", {}),
    ("trust", {}),
    ("taxi_events_reprocess", {"reprocess_taxi_events": REHEARSAL}),
]


def land(settings: Settings) -> None:
    """The week's files, and the sources' manifest, which knows what never came."""
    clock = RideClock(BEGIN, SPACING)
    disorder = Disorder(delay=timedelta(seconds=20), late=0.02, late_by=3 * HOUR, seed=7)
    manifest = settings.home / "manifests" / "week.jsonl"
    manifest.parent.mkdir(parents=True)
    feeds = []
    with manifest.open("w") as file:
        for ingest, events in (
            (RIDE_EVENTS, list(rides_by_event_time(1, RIDES, clock))),
            (FARE_EVENTS, list(fares(1, RIDES, clock))),
        ):
            hours = Counter(f"{e.event_time:%Y-%m-%dT%H:00Z}" for e in events)
            entry = {"folder": ingest.source.name, "file": "all", "hours": hours}
            file.write(json.dumps(entry) + "\n")
            came = [
                e
                for e in events
                if ingest is RIDE_EVENTS or not SILENT[0] <= e.event_time < SILENT[1]
            ]
            feeds.append(Feed(ingest, came, disorder))
    drip_feeds(Path(settings.landing_root), feeds, every=HOUR)


def environment(folder: Path) -> dict[str, str]:
    """Where the runs find their instance and home."""
    return os.environ | {
        "DAGSTER_HOME": str(folder / "dagster"),
        "RIVERMARK_HOME": str(folder / "home"),
        "PYTHONPATH": str(ROOT),
    }


def execute(folder: Path, job: str, ops: dict[str, Any]) -> None:
    """A job as a run of its own; one that fails is in the pictures as well."""
    config = json.dumps({"ops": {name: {"config": values} for name, values in ops.items()}})
    command = [sys.executable, "-m", "dagster", "job", "execute", "-m", "platform_defs.definitions"]
    with (folder / "runs.log").open("a") as log:
        options = ["-j", job, *(["--config-json", config] if ops else [])]
        done = subprocess.run(
            [*command, *options], cwd=ROOT, env=environment(folder), stdout=log, stderr=log
        )
    how = "done" if done.returncode == 0 else "failed, see runs.log"
    sys.stdout.write(f"{job}: {how}\n")


def main() -> None:
    """Land, run, and take the pictures where that was asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="*", type=int, help="numbers of jobs, from 0; none: land")
    parser.add_argument("--pictures", action="store_true")
    options = parser.parse_args()
    folder = options.folder.resolve()
    if not folder.exists():
        (folder / "dagster").mkdir(parents=True)
        shutil.copy(ROOT / "instance" / "dagster.yaml", folder / "dagster" / "dagster.yaml")
        land(Settings(home=folder / "home"))
    for number, (job, ops) in enumerate(JOBS):
        if options.only is None or number in options.only:
            execute(folder, job, ops)
    if options.pictures:
        take_pictures(folder)


def take_pictures(folder: Path) -> None:
    """Serve the pages of the runs, take their pictures, and end the server."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    server = subprocess.Popen(
        [sys.executable, "-m", "dagster_webserver", "-w", "workspace.yaml", "-p", str(port)],
        cwd=ROOT,
        env=environment(folder),
    )
    pictures = [sys.executable, "docs/make_pictures.py"]
    try:
        _until_it_answers(url)
        subprocess.run([*pictures, "--url", url, "--only", *PICTURES], cwd=ROOT, check=True)
    finally:
        server.terminate()
        server.wait(60)
    page = folder / "home" / "pages" / "dashboard.html"
    subprocess.run([*pictures, "--page", str(page)], cwd=ROOT, check=True)
    docs = folder / "home" / "quality" / "pages" / "index.html"
    subprocess.run([*pictures, "--data-docs", str(docs)], cwd=ROOT, check=True)


def _until_it_answers(url: str) -> None:
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        try:
            urllib.request.urlopen(f"{url}/server_info", timeout=5).close()  # noqa: S310
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
    raise SystemExit(f"no page at {url}")


if __name__ == "__main__":
    main()
