"""From the wheel to a project of one's own that streams under plain `dagster dev`.

Its tests, a live stream, a kill, a backfill by GraphQL; it says how long each took.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from rivermark.runtime.supervision.heartbeat import HeartbeatStore
from rivermark.settings import Settings
from rivermark.testing import wait_until
from tests.stories.deployment import free_port, graphql
from tests.stories.fresh_environment import FreshEnvironment

pytestmark = [pytest.mark.story, pytest.mark.slow]

BACKFILL = """
mutation Backfill($days: [String!]!) {
  launchPartitionBackfill(backfillParams: {
    assetSelection: [{path: ["cafe", "sales"]}], partitionNames: $days, fromFailure: false
  }) {
    __typename
    ... on LaunchBackfillSuccess { backfillId }
    ... on PythonError { message }
  }
}
"""
STATUS = "query Status($id: String!) { partitionBackfillOrError(backfillId: $id) {" + (
    "... on PartitionBackfill { status } ... on PythonError { message } } }"
)


class Project:
    """A project that `rivermark new` wrote, in an environment that has nothing but the wheel."""

    def __init__(self, installed: FreshEnvironment) -> None:
        self.installed, self.folder, self.port = installed, installed.work, free_port()
        self.began, self.took = time.monotonic(), list[tuple[str, float]]()

    def told(self, what: str) -> None:
        """Note how long it took since the last note."""
        now = time.monotonic()
        self.took.append((what, now - self.began))
        self.began = now

    def land(self, name: str, *orders: tuple[int, str]) -> None:
        """A file of orders of tea at those times, as a till lands it."""
        folder = self.folder / ".rivermark/landing/cafe/orders"
        row = {"customer_id": "fay", "drink": "tea", "price": 2.5}
        lines = [json.dumps({"order_id": n, "ordered_at": at, **row}) for n, at in orders]
        (folder / f".{name}").write_text("".join(f"{line}\n" for line in lines))
        (folder / f".{name}").rename(folder / name)

    def rows(self, query: str) -> list[Any]:
        """The rows of a query by the console; none while a table is not there."""
        done = subprocess.run(
            [self.installed.bin / "rivermark", "sql", query, "--json"],
            cwd=self.folder,
            env=self.installed.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return list(json.loads(done.stdout)["rows"]) if done.returncode == 0 else []

    def host(self) -> int:
        """The process that hosts the group, by its heartbeats; 0 while there is none."""
        beats = HeartbeatStore(Settings(home=self.installed.home).state).latest().values()
        pids = [beat.pid for beat in beats if beat.state == "running"]
        return next((pid for pid in pids if psutil.pid_exists(pid)), 0)

    def ask(self, query: str, **variables: Any) -> Any:
        """What the page answers to GraphQL."""
        return graphql(self.port, query, **variables)

    def answers(self) -> bool:
        """True once the page serves."""
        try:
            return bool(self.ask("{ version }"))
        except OSError:
            return False

    @contextmanager
    def dagster_dev(self) -> Iterator[Path]:
        """Plain `dagster dev` in the project's folder, without a DAGSTER_HOME; yields its log."""
        log = self.folder.parent / "dev.log"
        words = ("-m", "dagster", "dev", "--port", str(self.port))
        with log.open("w") as file:
            dev = subprocess.Popen(
                [self.installed.bin / "python", *words],
                cwd=self.folder,
                env=self.installed.environment,
                stdout=file,
                stderr=subprocess.STDOUT,
            )
        children: list[psutil.Process] = []
        try:
            yield log
        finally:
            children = psutil.Process(dev.pid).children(recursive=True)
            dev.send_signal(signal.SIGINT)
            try:
                dev.wait(60)
            except subprocess.TimeoutExpired:
                dev.kill()
            for child in children:
                if child.is_running():
                    child.kill()


def test_a_project_from_the_wheel_to_a_backfill(tmp_path: Path) -> None:
    installed = FreshEnvironment(tmp_path, "my_cafes")
    installed.run("rivermark", "new", "my_cafes", folder=tmp_path)
    project = Project(installed)

    installed.run("python", "-m", "pytest", "-q", "-p", "no:cacheprovider")
    project.told("its tests")
    installed.run("python", "-m", "dagster", "definitions", "validate", "-w", "workspace.yaml")
    project.told("definitions validate")
    shutil.copytree(project.folder / "samples", project.folder / ".rivermark/landing")
    installed.run("rivermark", "run")
    assert len(project.rows("FROM cafe.sales")) == 7
    project.told("the first published rows")

    with project.dagster_dev() as log:
        wait_until(project.answers, 240, reason="the page serves", interval=0.5)
        project.told("dagster dev serves")
        assert "no guard against pages" in log.read_text()
        installed.run("rivermark", "resume", "cafe")
        first = wait_until(project.host, 240, reason="the group runs", interval=1)
        project.land("late.jsonl", (20, "2026-03-04T08:00:00Z"), (21, "2026-03-04T09:00:00Z"))
        closed = "FROM cafe.sales WHERE window_start >= TIMESTAMPTZ '2026-03-04T00:00:00Z'"
        wait_until(lambda: project.rows(closed), 120, reason="a window is published", interval=1)
        project.told("a live row is published")

        os.kill(first, signal.SIGKILL)
        again = wait_until(
            lambda: (now := project.host()) != first and now,
            300,
            reason="it runs again",
            interval=1,
        )
        assert again
        project.land("after.jsonl", (22, "2026-03-04T12:00:00Z"), (23, "2026-03-04T13:00:00Z"))
        wait_until(
            lambda: len(project.rows(closed)) == 3, 120, reason="rows behind the kill", interval=1
        )
        project.told("a row behind the kill is published")

        before = project.rows("FROM cafe.sales ORDER BY window_start, drink")
        launched = project.ask(BACKFILL, days=["2026-03-02"])["launchPartitionBackfill"]
        assert launched["__typename"] == "LaunchBackfillSuccess", launched
        wait_until(
            lambda: (
                project.ask(STATUS, id=launched["backfillId"])["partitionBackfillOrError"]["status"]
                == "COMPLETED_SUCCESS"
            ),
            300,
            reason="the backfill succeeds",
            interval=1,
        )
        project.told("a backfill by GraphQL")
        assert project.rows("FROM cafe.sales ORDER BY window_start, drink") == before
        installed.run("rivermark", "pause", "cafe")
        wait_until(lambda: not project.host(), 120, reason="the group is paused", interval=1)
    print("; ".join(f"{what}: {seconds:.0f} s" for what, seconds in project.took))  # noqa: T201
