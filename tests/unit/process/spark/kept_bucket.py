"""What Spark keeps of a bucket, and the handle and clocks that it gives."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class KeptBucket:
    """Stands for Spark's side of one bucket: its state and timers, and what was asked of them."""

    value: tuple[Any, ...] | None = None
    timers: set[int] = field(default_factory=set)
    calls: list[str] = field(default_factory=list)
    watermark: int = 0

    def getValueState(self, name: str, schema: object) -> KeptBucket:
        return self

    def get(self) -> tuple[Any, ...] | None:
        self.calls.append("get")
        return self.value

    def update(self, value: tuple[Any, ...]) -> None:
        self.calls.append("update")
        self.value = value

    def clear(self) -> None:
        self.calls.append("clear")
        self.value = None

    def registerTimer(self, at: int) -> None:
        self.calls.append("register")
        self.timers.add(at)

    def deleteTimer(self, at: int) -> None:
        self.calls.append("delete")
        self.timers.remove(at)

    def getCurrentWatermarkInMs(self) -> int:
        return self.watermark

    def getCurrentProcessingTimeInMs(self) -> int:
        return 5
