"""The README's tour of the UI is done as it is written, and what Dagster kept of it is counted.

Of a demo and a drip whose events lay years apart it once kept 20,185 events of days in a folder of
five times the lake, raised a false alarm, and took eight minutes to pause.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecordStatus

from assets.topology import TOPOLOGY
from rivermark.dagster.jobs.day_reports import daily_tables
from rivermark.dagster.jobs.names import GROUP_TAG, table_key
from rivermark.monitor.checks.liveness import ALIVE
from rivermark.testing import wait_until
from tests.stories.deployment import ROOT, Deployment, deployed, free_port

GROUP = "taxi_events"
PUBLISHED = "taxi/driver_tips"
PATIENCE = 600
LINKS = "{ assetNodes { description } }"
MANY = 10_000
MANY_DAYS = 1_000
"""The demo has 500 days of all tables; a drip adds one to each that it writes."""


def commands_of_the_tour() -> list[str]:
    """The README's, without what explains them."""
    _, _, section = (ROOT / "README.md").read_text().partition("## A tour of the UI")
    block = section.split("```bash\n")[1].split("```")[0]
    return [line.partition("#")[0].strip() for line in block.splitlines()]


def run(command: str) -> None:
    """A command that ends well."""
    ran = subprocess.run(
        command.split(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert ran.returncode == 0, ran.stdout


def commands_of_alerts() -> list[str]:
    """The tour page's, of the group whose alerts somebody gets."""
    _, _, section = (ROOT / "docs/operations/ui-tour.md").read_text().partition("## Alerts")
    block = section.split("```bash\n")[1].split("```")[0]
    return [line.partition("#")[0].strip() for line in block.splitlines()]


@contextmanager
def beside(command: str, printed: int = subprocess.DEVNULL) -> Iterator[None]:
    """A command in another terminal, ended as by Ctrl-C."""
    process = subprocess.Popen(command.split(), stdout=printed)
    try:
        yield
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0


def materializations(
    instance: dg.DagsterInstance, key: dg.AssetKey
) -> list[dg.AssetMaterialization]:
    """What an instance keeps of an asset, the newest first."""
    records = instance.fetch_materializations(key, limit=MANY).records
    return [record.asset_materialization for record in records if record.asset_materialization]


def alarms(instance: dg.DagsterInstance) -> list[Any]:
    """The failures of `is_alive` that an instance keeps."""
    return [
        record.event
        for stream in TOPOLOGY.streams
        for record in instance.event_log_storage.get_asset_check_execution_history(
            dg.AssetCheckKey(table_key(stream.tables[0]), ALIVE), limit=MANY
        )
        if record.status is AssetCheckExecutionRecordStatus.FAILED
    ]


def links(deployment: Deployment) -> list[str]:
    """Where the assets of the page lead."""
    assets = deployment.ask(LINKS)["assetNodes"]
    return [url for each in assets for url in re.findall(r"\]\((http.*)\)", each["description"])]


def is_paused(deployment: Deployment, instance: dg.DagsterInstance) -> bool:
    """Whether the streams of the group have stopped, and their run has ended."""
    runs = instance.get_runs(dg.RunsFilter(tags={GROUP_TAG: GROUP}))
    beats = deployment.beats(GROUP).values()
    return all(run.is_finished for run in runs) and all(beat.state == "stopped" for beat in beats)


def size(folder: Path) -> int:
    """Bytes of the files below a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


@pytest.mark.story
@pytest.mark.slow
def test_the_tour_of_the_readme_leaves_few_events_and_no_alarm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_pictures: Any
) -> None:
    home = tmp_path / "home"
    ui, activate, drip, resume = commands_of_the_tour()
    assert (ui, activate) == ("make ui", ". .venv/bin/activate")
    for name, value in {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "DAGSTER_HOME": str(tmp_path / "dagster"),
        "RIVERMARK_HOME": str(home),
        "RIVERMARK_PAGES_PORT": str(free_port()),
    }.items():
        monkeypatch.setenv(name, value)
    pictures = Path(os.environ.get("RIVERMARK_PICTURES", tmp_path))
    key = table_key(TOPOLOGY.named(PUBLISHED).tables[0])
    yesterday = datetime.now(UTC).date() - timedelta(days=1)

    run("rivermark demo")
    run("rivermark dashboard")
    export, again, accounts, resume_fraud = commands_of_alerts()
    port = f"{free_port()}"
    name, _, service = export.replace("8701", port).removeprefix("export ").partition("=")
    monkeypatch.setenv(name, service)
    assert again == ui
    with deployed(tmp_path) as deployment, dg.DagsterInstance.get() as instance:

        def is_reported() -> bool:
            return yesterday.isoformat() in instance.get_materialized_partitions(key)

        wait_until(
            lambda: materializations(instance, key),
            PATIENCE,
            reason="Dagster learns what the demo wrote",
            interval=1,
        )
        assert not is_reported()
        with beside(drip):
            run(resume)
            wait_until(
                is_reported, PATIENCE, reason="the drip's events end the demo's day", interval=1
            )
            if shutil.which("chromedriver"):
                address = f"http://127.0.0.1:{deployment.port}"
                run("rivermark dashboard")
                with closing(make_pictures.Browser()) as window:
                    shown = make_pictures.OF_TAXI
                    make_pictures.take_pictures(window, address, yesterday, pictures, shown)
                    make_pictures.take_dashboard(window, home / "pages/dashboard.html", pictures)
            run(f"rivermark pause {GROUP}")
            wait_until(
                lambda: is_paused(deployment, instance), reason="the group is paused", interval=1
            )
        arrived = tmp_path / "alerts.txt"
        with arrived.open("wb") as file, beside(accounts.replace("8701", port), file.fileno()):
            run(resume_fraud)
            wait_until(
                lambda: "alert: " in arrived.read_text(),
                PATIENCE,
                reason="an alert arrives by webhook",
                interval=1,
            )
            if shutil.which("chromedriver"):
                with closing(make_pictures.Browser()) as window:
                    shown = make_pictures.OF_FRAUD
                    make_pictures.take_pictures(window, address, yesterday, pictures, shown)
            run("rivermark pause fraud")
        addresses = links(deployment)
        assert len(addresses) >= len(TOPOLOGY.streams)
        # The cookie keeps the token of a link.
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        for page in {address.partition("#")[0] for address in addresses}:
            assert browser.open(page, timeout=60).status == 200, page

        days = Counter(
            (table.name, event.partition)
            for _, table in daily_tables(TOPOLOGY)
            for event in materializations(instance, table_key(table))
            if event.partition is not None
        )
        twice = {day: count for day, count in days.items() if count > 1}
        assert twice == {}
        assert len(days) < MANY_DAYS
        assert alarms(instance) == []
        dagster, lake = size(tmp_path / "dagster"), size(home / "lake")
        of_group = {table.name for stream in TOPOLOGY.group(GROUP) for table in stream.tables}
        print(  # noqa: T201 - docs/operations/streams-in-dagster.md says them
            f"{len(days)} events of days, {sum(name in of_group for name, _ in days)} of {GROUP}; "
            f"{dagster:,} bytes of Dagster's, {lake:,} of the lake"
        )
        assert dagster < lake
