"""Going on behind records that are gone from a source."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from rivermark.ingest.plan import plan_table
from rivermark.ingest.source.ranges import RangeReader
from rivermark.lake.delta import delta_table
from rivermark.model.errors import RecordsLost
from rivermark.model.source import Discovery, PlannedSplit, Split
from rivermark.model.topology import Topology
from rivermark.runtime.supervision.lease import Lease
from rivermark.settings import Settings
from rivermark.sources import Source, SourceReader
from tests.unit.cli.conftest import NOON, ORDERS, TYPED, Run


@dataclass(frozen=True)
class Forgetful(Source):
    """A source that has forgotten records 0 to 9."""

    name = "forgetful"
    asset = ("forgetful",)
    description = "Forgets."
    together = True

    def open(self, landing_root: str) -> SourceReader:
        return ForgetfulReader()


class ForgetfulReader(RangeReader):
    def first(self) -> int:
        return 0

    def latest(self, start: int) -> int:
        return start

    def payloads(self, start: int, end: int) -> list[str]:
        return []

    def discover(self, *, full: bool = True) -> Discovery:
        if self._next == 0:
            raise RecordsLost("records 0 to 9 are gone")
        return Discovery()

    def lost(self, unread: Sequence[PlannedSplit]) -> Sequence[Split]:
        if self._next:
            return ()
        path = json.dumps({"range": 0, "start": 0, "end": 10})
        return [
            Split(
                name="range-0/lost",
                path=path,
                size=1,
                modified_at=NOON,
                format=None,
                status="lost",
                reason="forgotten",
            )
        ]


def test_b062_a_gap_is_shown_then_planned_and_the_stream_goes_on_behind_it(
    rivermark: Run, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest = replace(ORDERS, source=Forgetful())
    for command in ("files", "run", "accept_loss"):
        monkeypatch.setattr(f"rivermark.cli.{command}.topology", lambda: Topology([ingest]))

    for arguments in (["files", "shop/orders"], ["run", "--dry-run"]):
        stopped = rivermark(*arguments)
        assert stopped.exit_code == 1
        assert "records 0 to 9 are gone. Nothing was skipped" in stopped.stderr
        assert "rivermark accept-loss shop/orders" in stopped.stderr
        assert "rivermark reset shop/orders --with-tables" in stopped.stderr

    for shown in (
        rivermark("accept-loss", "shop/orders", "--dry-run"),
        rivermark("accept-loss", "shop/orders", input="n\n"),
    ):
        assert "gone: range-0/lost (forgotten)" in shown.stdout
        assert not settings.lake().exists(plan_table(ingest))
    with Lease(settings.state, "shop/orders").acquire("live"):
        running = rivermark("accept-loss", "shop/orders", "--yes")
        assert "already run by run live" in running.stderr
    accepted = rivermark("accept-loss", "shop/orders", "--json", input="y\n")
    assert "gone: range-0/lost (forgotten)\nGo on without them?" in accepted.stderr
    document: dict[str, Any] = json.loads(accepted.stdout.removeprefix(TYPED))
    assert document["streams"] == [
        {
            "stream": "shop/orders",
            "accepted": True,
            "gaps": [{"name": "range-0/lost", "reason": "forgotten"}],
        }
    ]
    plan = delta_table(settings.lake().path(plan_table(ingest))).to_pyarrow_table().to_pylist()
    assert [(row["name"], row["status"], row["reason"]) for row in plan] == [
        ("range-0/lost", "lost", "forgotten")
    ]
    assert "nothing is gone" in rivermark("accept-loss", "shop/orders", "--yes").stdout
    assert rivermark("files", "shop/orders").exit_code == 0
