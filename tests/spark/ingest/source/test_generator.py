"""Generated rows, fixed elements and socket lines as sources."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from rivermark import DeclarationError, Ingest
from rivermark.ingest.plan import BatchPlanner, open_source
from rivermark.ingest.source import generator
from rivermark.model.source import Split
from rivermark.sources import ElementsSource, RateSource, SocketSource, Source
from rivermark.testing import wait_until
from tests.spark.helpers.source_contract import EVENT, FIRST, Deployment, SourceContract, event

pytestmark = pytest.mark.spark


class TestRate(SourceContract):
    """One row a second, by a clock that `produce` sets."""

    @pytest.fixture(autouse=True)
    def clock(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = FIRST - timedelta(seconds=1)
        monkeypatch.setattr(generator, "now", lambda: self.now)

    def source(self, root: Path) -> Source:
        return RateSource(rows_per_second=1, start=FIRST)

    def produce(self, root: Path, numbers: range) -> None:
        self.now = FIRST + timedelta(seconds=numbers.stop - 1)


class TestElements(SourceContract):
    """Elements that are added to the declaration."""

    def source(self, root: Path) -> Source:
        self.declared = ElementsSource(elements=())
        return self.declared

    def produce(self, root: Path, numbers: range) -> None:
        elements = (*self.declared.elements, *map(event, numbers))
        object.__setattr__(self.declared, "elements", elements)


@contextmanager
def server(lines: list[str]) -> Iterator[int]:
    """A server that sends these lines to the first who connects, and its port."""
    texts = iter(["\n".join(lines)])

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.wfile.write(next(texts, "").encode())

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield serving.server_address[1]
        serving.shutdown()


def test_lines_of_a_socket_are_kept_in_the_plan_and_read_from_there(
    spark: SparkSession, tmp_path: Path
) -> None:
    lines = [json.dumps(event(n), default=str) for n in range(3)]
    with server(lines) as port:
        ingest = Ingest(
            name="test/lines",
            source=SocketSource(host="127.0.0.1", port=port),
            contract=EVENT,
            lateness=None,
            description="Lines.",
            group="test",
        )
        deployment = Deployment(spark, tmp_path, ingest)
        planner = BatchPlanner(deployment.lake, "", ingest, "run")
        wait_until(
            lambda: sum(_lines(split) for split in planner.source.discover().ready) == 3,
            reason="lines are received",
        )
        held = planner.poll(most=0).held
        assert held == planner.poll(most=0).held == 1, "lines that are not planned are not lost"
        assert planner.poll().planned == 1
        planner.source.close()

    deployment.run()
    assert deployment.ids(ingest.admitted) == [0, 1, 2]
    assert open_source(deployment.lake, "", ingest).backlog().splits == 0


def _lines(split: Split) -> int:
    return len(json.loads(split.path)["lines"])


def test_a_rate_above_zero_and_a_zone_are_required() -> None:
    with pytest.raises(DeclarationError, match="above 0"):
        RateSource(rows_per_second=0)
    with pytest.raises(DeclarationError, match="no time zone"):
        RateSource(start=FIRST.replace(tzinfo=None))
