"""Streams of a bounded run that start next."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Self

from rivermark.model.stream import AnyStream
from rivermark.model.topology import Topology

FIRST_BATCHES: Final = 3
"""How many queries may run when one whose first batch starts a Python process is started: the
process has ten seconds to answer, and needs a quarter of a second of one core."""


@dataclass(frozen=True)
class Schedule:
    """The state of a bounded run: streams that wait, run and have ended, by name.

    A stream starts when all that it reads within the run has ended, drained or failed: behind a
    stream that failed, what its table holds is still drained. `order` lists upstream streams first;
    `alone` are streams whose first batch must not share the machine with many others. A schedule is
    a value: each step returns the next one.
    """

    order: tuple[str, ...]
    upstream: Mapping[str, frozenset[str]]
    alone: frozenset[str] = frozenset()
    running: frozenset[str] = frozenset()
    ended: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls, topology: Topology, streams: Iterable[AnyStream], alone: Collection[str] = ()
    ) -> Self:
        """The schedule of a run of these streams, before the first start."""
        names = {s.name for s in streams}
        upstream = {
            s.name: frozenset(u.name for u in topology.upstreams(s)) & names
            for s in topology.streams
            if s.name in names
        }
        return cls(tuple(upstream), upstream, frozenset(alone))

    @property
    def done(self) -> bool:
        """True if every stream has ended."""
        return self.ended.issuperset(self.order)

    def next(self) -> tuple[str, ...]:
        """The streams to start now.

        First all that may run side by side, then those of `alone`, few at a time.
        """
        ready = [
            name
            for name in self.order
            if name not in self.running | self.ended and self.upstream[name] <= self.ended
        ]
        side_by_side = tuple(name for name in ready if name not in self.alone)
        return side_by_side or tuple(ready[: max(FIRST_BATCHES - len(self.running), 0)])

    def started(self, names: Iterable[str]) -> Self:
        """The schedule after these streams were started."""
        return replace(self, running=self.running.union(names))

    def finished(self, names: Iterable[str]) -> Self:
        """The schedule after these streams have ended, drained or failed."""
        names = frozenset(names)
        return replace(self, running=self.running - names, ended=self.ended | names)
