"""Declarations are checked when they are made, those of every source and sink."""

from __future__ import annotations

from inspect import isabstract, isclass

from rivermark import sinks, sources
from rivermark.sinks import Sink
from rivermark.sources import Source


def test_every_source_and_sink_is_checked_when_it_is_declared() -> None:
    public = [getattr(module, name) for module in (sources, sinks) for name in module.__all__]
    kinds = [c for c in public if isclass(c) and issubclass(c, Source | Sink) and not isabstract(c)]
    # `declared` wraps what the dataclass makes.
    assert [kind.__name__ for kind in kinds if not hasattr(kind.__init__, "__wrapped__")] == []
    assert {"FileSource", "KafkaSource", "KafkaSink", "DeltaUpsert"} <= {k.__name__ for k in kinds}
