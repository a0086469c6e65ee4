"""All streams of a deployment together: names, groups, who reads whom, and the order to run in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rivermark.model.declared import place_of
from rivermark.model.errors import DeclarationError, UnknownStream
from rivermark.model.nearest import did_you_mean
from rivermark.model.place import caller
from rivermark.model.plot import Plot
from rivermark.model.stream import AnyStream, Ingest, Stream, inputs_of, table_of
from rivermark.model.table import Table
from rivermark.model.type_check import fault_of, fitting


class Topology:
    """The streams of a deployment, checked as a whole and put in dependency order.

    `plots` are the published results that the dashboard shows, in that order.

    Raises DeclarationError for what is no stream or plot, when two streams share a name or a table,
    when they read in a circle, or when a plot is of a table that no stream writes.
    """

    def __init__(self, streams: Iterable[AnyStream], plots: Iterable[Plot] = ()) -> None:
        declared = _all_of("streams", streams, tuple[AnyStream, ...])
        self._by_name: dict[str, AnyStream] = {}
        self._writer: dict[str, AnyStream] = {}
        for stream in declared:
            if stream.name in self._by_name:
                raise DeclarationError(f"two streams are named '{stream.name}'").at(
                    _places(self._by_name[stream.name], stream)
                )
            self._by_name[stream.name] = stream
            for table in stream.tables:
                if table.name in self._writer:
                    raise DeclarationError(f"two streams write table '{table.name}'").at(
                        _places(self._writer[table.name], stream)
                    )
                self._writer[table.name] = stream
        self.streams: tuple[AnyStream, ...] = tuple(self._ordered(declared))
        for stream in declared:
            if isinstance(stream, Stream):
                self._check_followed(stream)
        self.plots: tuple[Plot, ...] = _all_of("plots", plots, tuple[Plot, ...])
        for plot in self.plots:
            for table in plot.tables:
                if table.name not in self._writer:
                    raise DeclarationError(
                        f"plot '{plot.title}': no stream writes '{table.name}'"
                        f"{did_you_mean(table.name, self._writer)}"
                    ).at(place_of(plot))

    def _ordered(self, declared: Sequence[AnyStream]) -> list[AnyStream]:
        """The streams, each after those it reads, else in the order of declaration."""
        done: dict[str, AnyStream] = {}
        visiting: list[str] = []

        def visit(stream: AnyStream) -> None:
            if stream.name in done:
                return
            if stream.name in visiting:
                circle = [*visiting[visiting.index(stream.name) :], stream.name]
                raise DeclarationError(
                    f"stream '{stream.name}' reads itself in a circle: {' reads '.join(circle)}"
                ).at(place_of(stream))
            visiting.append(stream.name)
            for upstream in self.upstreams(stream):
                visit(upstream)
            visiting.remove(stream.name)
            done[stream.name] = stream

        for stream in declared:
            visit(stream)
        return list(done.values())

    def _check_followed(self, stream: Stream) -> None:
        """Refuse to follow by stream a table whose rows change after they were written."""
        for read in stream.reads if stream.kind == "append" else stream.reads[:1]:
            name = table_of(read).name
            writer = self._writer.get(name)
            if isinstance(writer, Ingest):
                updated = writer.kind == "lookup" and name == writer.admitted.name
            else:
                outputs = writer.outputs if writer else ()
                updated = any(o.table.name == name and o.updates_rows for o in outputs)
            if updated:
                raise DeclarationError(
                    f"stream '{stream.name}' reads '{name}' by stream, whose rows "
                    "are updated by key: rows that it has read would change. Look the table up "
                    "whole (static=...), or read what it is made from"
                ).at(place_of(stream))

    def left_out(self) -> Iterator[DeclarationError]:
        """Inputs that no stream of the topology writes: they would stay empty."""
        for stream in self.streams:
            if not isinstance(stream, Stream):
                continue
            for how, tables in (("reads", stream.reads), ("looks up", stream.static)):
                for name in (table_of(each).name for each in tables):
                    if name not in self._writer:
                        yield DeclarationError(
                            f"stream '{stream.name}' {how} '{name}', which no stream of the "
                            "topology writes: it would stay empty; add the stream that writes it "
                            "to Topology(...), or to the streams of its domain"
                        ).at(place_of(stream))

    def upstreams(self, stream: AnyStream) -> list[AnyStream]:
        """The streams whose tables this one reads, in the order of its declaration."""
        writers = (self._writer.get(table.name) for table in inputs_of(stream))
        return [writer for writer in writers if writer is not None]

    def downstream(self, tables: Iterable[str]) -> list[Stream]:
        """The streams that read one of the tables, directly or not, each after what it reads."""
        names = set(tables)
        readers = []
        for stream in self.streams:
            if isinstance(stream, Stream) and names & {t.name for t in inputs_of(stream)}:
                readers.append(stream)
                names |= {table.name for table in stream.tables}
        return readers

    def named(self, name: str) -> AnyStream:
        """The stream of that name; UnknownStream lists the known names."""
        try:
            return self._by_name[name]
        except KeyError:
            raise UnknownStream(self._unknown_stream(name)) from None

    def _unknown_stream(self, name: str) -> str:
        """The error for a name that no stream has."""
        if name in self.groups():
            return f"{name!r} is a group and not a stream: write --group {name}"
        if name in self._writer:
            writer = self._writer[name].name
            return f"{name!r} is a table and not a stream; it is written by '{writer}'"
        known = sorted(self._by_name)
        return (
            f"no stream is named {name!r}{did_you_mean(name, known) or ';'} "
            f"there are: {', '.join(known)}"
        )

    def table(self, name: str) -> Table:
        """The declared table of that name; UnknownStream lists the known names."""
        stream = self._writer.get(name)
        if stream is None:
            raise UnknownStream(self._no_table(name))
        return next(t for t in stream.tables if t.name == name)

    def _no_table(self, name: str) -> str:
        """The error for a name that is no table's, with the tables that were perhaps meant."""
        groups = self.groups()
        if name in groups:
            tables = [t.name for s in groups[name] for t in s.tables]
            return f"{name!r} is a group and not a table; its tables: {', '.join(tables)}"
        if name in self._by_name:
            tables = [t.name for t in self._by_name[name].tables]
            return f"{name!r} is a stream and not a table; it writes {', '.join(tables)}"
        known = sorted(self._writer)
        return (
            f"no table is named {name!r}{did_you_mean(name, known) or ';'} "
            f"there are: {', '.join(known)}"
        )

    def writer(self, table: Table) -> AnyStream | None:
        """The stream of this topology that writes `table`, or None."""
        return self._writer.get(table.name)

    def group(self, name: str) -> tuple[AnyStream, ...]:
        """The streams of a group in dependency order; UnknownStream lists the known groups."""
        groups = self.groups()
        if name in groups:
            return groups[name]
        if name in self._by_name:
            group = self._by_name[name].group
            raise UnknownStream(
                f"{name!r} is a stream and not a group: write it without --group, or its group, "
                f"{group!r}"
            )
        raise UnknownStream(
            f"no group is named {name!r}{did_you_mean(name, groups) or ';'} "
            f"there are: {', '.join(sorted(groups))}"
        )

    def groups(self) -> dict[str, tuple[AnyStream, ...]]:
        """The streams by group, each in dependency order."""
        members: dict[str, list[AnyStream]] = {}
        for stream in self.streams:
            members.setdefault(stream.group, []).append(stream)
        return {group: tuple(streams) for group, streams in members.items()}


def _all_of(name: str, values: Any, hint: Any) -> tuple[Any, ...]:
    """The items of an argument that lists, each checked; a text lists nothing."""
    lists = isinstance(values, Iterable) and not isinstance(values, str)
    items = tuple(values) if lists else values
    if not fitting(hint)(items):
        raise DeclarationError(f"topology: {fault_of(name, items, hint)}").at(caller())
    return tuple(items)


def _places(first: AnyStream, second: AnyStream) -> str | None:
    """The places of two declarations, for an error."""
    places = [str(place) for each in (first, second) if (place := place_of(each)) is not None]
    return " and ".join(dict.fromkeys(places)) or None
