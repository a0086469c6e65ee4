"""The state of a large bucket in Spark: changes each batch, pages seldom, read once by a worker."""

from __future__ import annotations

from typing import Any

import pytest

from rivermark import Table
from rivermark.process import Limits
from rivermark.process.spark import stateful
from rivermark.process.spark.core import Core
from rivermark.process.spark.stateful import PAGES, BucketProcessor, PageCache
from rivermark.process.spark.writing import MAIN, writer_for
from tests.unit.process.spark.kept_bucket import KeptBucket
from tests.unit.process.spark.test_packets import TICKS, Batches, Tick, Waits, reader


class KeptWithPages(KeptBucket):
    """The pages are a state of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.pages = KeptBucket()

    def getValueState(self, name: str, schema: object) -> KeptBucket:
        return self.pages if name == PAGES else self


class PagedBatches(Batches):
    """Batches over a bucket that is kept in pages from the first byte on."""

    def __init__(self) -> None:
        super().__init__()
        self.handle: KeptWithPages = KeptWithPages()
        writer, _ = writer_for(
            Waits.declaration, {MAIN: Table(name="test/t", schema=TICKS, description="Ticks.")}
        )
        core = Core(Waits, Limits(), (reader(Waits, TICKS),), writer, page_from=1)
        self.processor = BucketProcessor(core)
        self.processor.init(self.handle)  # type: ignore[arg-type]

    def asked_of_pages(self, watermark: int, *ticks: Tick) -> list[str]:
        """What a batch asked of the state of the pages."""
        self.handle.pages.calls.clear()
        self.run(watermark, *ticks)
        return self.handle.pages.calls


def test_pages_are_written_seldom_and_read_once_and_go_with_the_last_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stateful, "CACHE", PageCache())
    bucket = PagedBatches()
    many = [Tick(n, n, 1_000 + n) for n in range(1_000)]

    assert bucket.asked_of_pages(0, *many) == []
    assert bucket.asked_of_pages(0, Tick(7, 7, 1_007)) == ["update"]
    assert bucket.asked_of_pages(1, Tick(8, 8, 5_000)) == ["get"]
    assert bucket.asked_of_pages(2, Tick(9, 9, 5_000)) == []

    monkeypatch.setattr(stateful, "CACHE", PageCache())
    assert bucket.asked_of_pages(3, Tick(9, 9, 6_000)) == ["get"]
    assert bucket.run(1_010) == [*range(8), 10]

    assert sorted(bucket.run(7_000)) == [8, 9, *range(11, 1_000)]
    handle = bucket.handle
    assert (handle.value, handle.pages.value, handle.timers) == (None, None, set())


def test_a_worker_keeps_the_pages_that_it_used_last() -> None:
    cache = PageCache(most=10)
    asked: list[bytes] = []

    def read(identity: bytes, size: int = 4) -> Any:
        def now() -> bytes:
            asked.append(identity)
            return identity * size

        return cache.get(identity, now)

    assert read(b"a") == b"aaaa"
    assert read(b"b") == b"bbbb"
    assert read(b"a") == b"aaaa"
    read(b"c")
    read(b"a")
    assert asked == [b"a", b"b", b"c"]
    read(b"b")
    assert asked[3:] == [b"b"]
    assert read(b"d", 11) == b"d" * 11
    assert read(b"d", 11) == b"d" * 11
    assert asked[4:] == [b"d", b"d"]
    assert cache.get(b"none", lambda: None) is None
