"""Which streams a person means: by name, by group, with all that they read."""

from __future__ import annotations

from collections.abc import Sequence

from rivermark.model.errors import UnknownStream
from rivermark.model.stream import AnyStream
from rivermark.model.topology import Topology


def selected(
    topology: Topology, names: Sequence[str], groups: Sequence[str], *, upstream: bool = False
) -> list[AnyStream]:
    """The streams meant, each once, in dependency order; all of them where nothing is said.

    Raises UnknownStream, with the names there are.
    """
    if not names and not groups:
        return list(topology.streams)
    wanted: set[str] = set()
    for group in groups:
        wanted |= {s.name for s in members(topology, group)}
    pending = [topology.named(name) for name in names]
    if upstream:
        pending += [topology.named(name) for name in wanted]
    while pending:
        stream = pending.pop()
        wanted.add(stream.name)
        if upstream:
            pending += [s for s in topology.upstreams(stream) if s.name not in wanted]
    return [s for s in topology.streams if s.name in wanted]


def members(topology: Topology, group: str) -> tuple[AnyStream, ...]:
    """The streams of a group; UnknownStream lists the groups there are."""
    groups = topology.groups()
    if group not in groups:
        raise UnknownStream(f"no group is named {group!r}; there are: {', '.join(sorted(groups))}")
    return groups[group]
