"""The seam by which results leave a stream: what a sink guarantees, writes, and replaces.

A sink is declared as a value on an output, `Output(table, sinks=(...))`, and opened once a run. To
add one is to write one file: a frozen dataclass derived from `Sink`, and the `SinkWriter` that its
`open` returns (docs/sinks/index.md says what a target must offer for which guarantee).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from rivermark.model.rows import Rows as Rows

if TYPE_CHECKING:
    from rivermark.model.table import Table

Guarantee = Literal["at most once", "at least once", "exactly once"]
OnReplace = Literal["replaces days", "merges", "skips", "refuses"]
"""What a recompute, a reprocessing or an undo of days does with a sink."""


@dataclass(frozen=True)
class Delivery:
    """The guarantee of delivery to the target: how often a row reaches it, and by what means."""

    guarantee: Guarantee
    how: str

    def __str__(self) -> str:
        return f"{self.guarantee}, {self.how}"


@dataclass(frozen=True)
class Holding:
    """The content of a target now, as it says itself.

    `batch` is the newest one of the generation that asks, -1 without any. `rows` are counted at
    that batch, `days` the same by date (UTC) of the table's days; None where they are not.
    `expected` is SQL that gives their number from `rows`, those of the output's table.
    """

    batch: int
    rows: int | None = None
    days: Mapping[date, int] | None = None
    expected: str = "SELECT count(*) AS n FROM rows"


@dataclass(frozen=True)
class BatchIdentity:
    """The batch that rows belong to; a batch that is repeated after a kill has the same one."""

    stream: str
    generation: int
    batch: int


def owned() -> None:
    """Never refuse: for origins that no lease stands behind, such as a recompute's."""


@dataclass(frozen=True)
class Origin:
    """Who writes: a stream, its checkpoint's generation and when that began (UTC), and the run.

    `check` raises LeaseLost where another run has taken the stream over. Call it right before a
    commit, after the state that the commit builds on was read: a run that was paused for minutes
    must not go on with what its successor did meanwhile.
    """

    stream: str
    generation: int
    since: datetime
    run_id: str
    check: Callable[[], None] = field(default=owned, compare=False, repr=False)

    def batch(self, number: int) -> BatchIdentity:
        """The identity of one of its batches."""
        return BatchIdentity(self.stream, self.generation, number)


def no_conflict() -> None:
    """Ignore that a commit is tried again."""


@dataclass(frozen=True, kw_only=True)
class SinkContext:
    """The context in which a sink is opened: a table of a stream, in the lake below `root`.

    `retention` is how long versions of the lake's tables stay readable. `on_conflict` is called
    each time that a commit is tried again because another writer's came between.
    """

    root: str
    retention: timedelta
    table: Table
    origin: Origin
    on_conflict: Callable[[], None] = no_conflict


class SinkWriter(ABC):
    """A sink opened for one output; used by one thread at a time."""

    emptied: bool = False
    """Whether the target holds batches and no row, as `last` found it."""

    @abstractmethod
    def last(self) -> BatchIdentity | None:
        """The newest batch of this stream and generation that the target itself says it holds.

        None where it holds none, or cannot say.
        """

    @abstractmethod
    def write(
        self, rows: Rows, identity: BatchIdentity, metadata: Mapping[str, Any] | None = None
    ) -> int:
        """Write the rows of a batch, and return how many they are.

        A batch may be larger than memory: `as_rows(rows).pieces(columns)` gives it in pieces.
        Called again with the same identity and the same rows after a kill. A target that promises
        exactly once holds them once then. `metadata` (JSON values) is kept beside them where the
        target can.
        """

    def committed(self, rows: Rows, identity: BatchIdentity) -> Rows:
        """The rows of a batch that the target holds, for the output's other sinks after a kill.

        `rows` is the batch as it was computed again, which may differ: a service that was asked
        again may answer otherwise. A target that cannot tell what it got gives those.
        """
        return rows

    def replace(
        self,
        rows: Rows,
        days: Collection[date],
        replacement: str,
        metadata: Mapping[str, Any] | None = None,
    ) -> int:
        """Put the rows in place of all rows of those days, and return how many they are.

        `replacement` names the recompute; doing the same one again changes nothing. Not called, and
        not written, where the sink's `on_replace` is "skips" or "refuses".
        """
        raise NotImplementedError(f"{type(self).__qualname__} replaces no days")

    def resend(self, waiting: Sequence[Mapping[str, Any]]) -> list[str | None]:
        """Send rows of the table of undelivered rows again; returns why each was not, or None.

        Those that were delivered are taken out of the table.
        """
        raise NotImplementedError(f"{type(self).__qualname__} sends nothing again")

    def close(self) -> None:  # noqa: B027 - few sinks hold anything open
        """Release connections when the run ends; may be called again, but nothing is written then.

        A process that is killed does not call it: what was written must not depend on it.
        """


class Sink(ABC):
    """A target of results, as it is declared. Subclasses are frozen dataclasses."""

    on_replace: ClassVar[OnReplace]
    writes_table: ClassVar[bool] = False
    """Whether it writes the output's own table in the lake, of which there is one such sink."""
    updates_rows: ClassVar[bool] = False
    """Whether it changes rows that were written before, so that no stream can follow the table."""
    keeps_last: ClassVar[bool] = False
    """Whether the target keeps for good which batch it holds: one that says less went back."""
    real_time: ClassVar[bool] = False
    """Whether a query of the stream's host sends the rows, message by message, and not batches."""

    @abstractmethod
    def open(self, context: SinkContext) -> SinkWriter:
        """A writer for a run; looks up what the target holds already."""

    @property
    @abstractmethod
    def delivery(self) -> Delivery:
        """Its guarantee; an attribute of the class where all its sinks guarantee the same."""

    @property
    @abstractmethod
    def target(self) -> str:
        """The target of the rows, in few words."""

    def check(self, table: Table) -> None:  # noqa: B027 - most sinks can write any table
        """Refuse a table that the sink cannot write; raises DeclarationError."""

    def needed(self, table: Table) -> tuple[str, ...]:
        """Columns of the table in which a row must have a value to be written."""
        return ()

    def tables(self, table: Table) -> tuple[Table, ...]:
        """Tables of the lake that the sink keeps beside the output's; a reset archives them."""
        return ()

    def archive(self, context: SinkContext, stamp: str) -> list[str]:
        """Put aside what a stream that is reset has written; returns where it lies now.

        A sink that promises exactly once needs it: batches count from 0 again after a reset, and
        rows of before and after would stand side by side. `context.origin` is a stand-in, whatever
        generation is reset: number 0, begun now, with `stamp` as its run. Take the stream's name
        from it, and nothing to compare with identities that the target holds.
        """
        return []

    def holding(self, context: SinkContext) -> Holding | None:
        """The content of the target, for a comparison with the table; None where it cannot say.

        It may run meanwhile: nothing is changed, and no writer is shut out.
        """
        return None

    def erase(
        self, context: SinkContext, values: Mapping[str, Sequence[str]], *, dry_run: bool
    ) -> int | None:
        """Delete the rows of which a column has one of the values; returns how many.

        A dry run counts them. Of columns that the table lacks nothing is asked. None for a target
        whose rows cannot be deleted from here: it is named to who erases them.
        """
        return None

    def described(self) -> str:
        """Target, guarantee, and what replaces days do, as catalog and console show them."""
        return f"{self.target}: {self.delivery}; a recompute {self.on_replace}"
