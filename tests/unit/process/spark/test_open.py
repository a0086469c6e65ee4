"""R16: `open` is called in each task; what a cached function makes lives as long as its worker."""

from __future__ import annotations

from functools import cache
from typing import Any, cast

import msgspec
from pyspark import cloudpickle

from rivermark.process import Context, KeyedProcess, Limits
from rivermark.process.spark.core import Core
from rivermark.process.spark.stateful import BucketProcessor

MADE: list[str] = []


@cache
def client() -> object:
    """Stands for a client that is dear to make."""
    MADE.append("client")
    return object()


class Event(msgspec.Struct, frozen=True):
    key: str
    at: int


class Asks(KeyedProcess[Event, Event]):
    key = "key"
    time = "at"

    def open(self) -> None:
        MADE.append("open")
        self.client = client()

    def close(self) -> None:
        MADE.append("close")

    def on_event(self, event: Event, ctx: Context[Event]) -> None: ...


def test_r16_open_is_called_once_a_task_and_a_cached_client_is_made_once_a_worker() -> None:
    core = Core(Asks, Limits(), readers=(), writer=cast(Any, None))
    sent = cloudpickle.dumps(BucketProcessor(core))  # type: ignore[no-untyped-call]

    for _ in range(3):
        task: Any = cloudpickle.loads(sent)
        assert task._core.engine is task._core.engine
        task.close()

    assert MADE == ["open", "client", "close", "open", "close", "open", "close"]
