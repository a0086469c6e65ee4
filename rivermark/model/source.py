"""The seam between an ingest and where its records come from.

A source is cut into splits: a file, a version of a table, a range of offsets. Splits are planned
(their positions are written down, in order) before they are read, so that a batch that is read
again reads the same records. A source is a declaration that a user writes; `open` gives the reader
that a run works with. To add a source, write both in one module of `rivermark.ingest.source`
(docs/sources/).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

UNPACKED: Final = 8
"""Parquet and gzip take about so many times their size in memory, as text."""
LOST: Final = "lost"
"""The status of a split that stands for records which were gone before they were read."""
PIECE_BYTES: Final = 32 << 20
"""About so many bytes as text are a piece of work: of a task, or of the driver."""
BATCH_BYTES: Final = 64 << 20
"""Bytes as text in a planned batch for each core, where nothing else is said."""
PACKED: Final = ("parquet", "avro", "delta")


@dataclass(frozen=True, kw_only=True)
class Split:
    """A piece of a source that is planned and read as a whole.

    Its rows carry `name` as `_file` and their place within it as `_row`; `name` is unique within
    the stream. `path` says to the source where the records are: a path, or its position as JSON.
    `size` is in bytes, 0 where it is unknown. Times are in UTC. `format`, `columns` (a JSON list)
    and `head` (a header line) say how payloads are spelled. A split whose `status` is not `ready`
    is quarantined as a whole with its `reason`. `digest` is one of its content, where the source
    takes one: by it a change is noticed that leaves the size as it was.
    """

    name: str
    path: str
    size: int
    modified_at: datetime
    format: str | None
    columns: str | None = None
    head: str | None = None
    status: str = "ready"
    reason: str | None = None
    digest: str | None = None

    @property
    def weight(self) -> int:
        """Bytes as text, approximately."""
        return weight_of(self.path, self.format, self.size)


@dataclass(frozen=True, kw_only=True)
class PlannedSplit(Split):
    """A split of the plan: `batch` numbers the planned batches of a stream from 0."""

    batch: int
    landed_at: datetime


@dataclass(frozen=True)
class Waiting:
    """Something that cannot be planned yet, or is no longer as it was when it was planned.

    `settling` tells what becomes ready by itself within the reader's `settle_time`.
    """

    name: str
    path: str
    reason: str
    size: int
    modified_at: datetime
    settling: bool = False


@dataclass
class Discovery:
    """The unplanned content of a source: `ready` in order of reading, and what has to wait.

    `changed` was planned before and has changed since; each split is read once. `ignored` lies
    there too and is never read, because the declaration leaves it out.
    """

    ready: list[Split] = field(default_factory=list)
    waiting: list[Waiting] = field(default_factory=list)
    changed: list[Waiting] = field(default_factory=list)
    ignored: list[Waiting] = field(default_factory=list)


@dataclass(frozen=True)
class Part:
    """A part of a source, such as a partition, and how many records of it are unread.

    `newest` is the time of its newest record, `oldest` that of the oldest unread one (UTC); each is
    None where there is none. `held` of the records cannot be read yet: they stand behind a
    transaction that is open, at the position `held_at`.
    """

    name: str
    records: int
    newest: datetime | None
    oldest: datetime | None
    held: int = 0
    held_at: int | None = None


@dataclass(frozen=True)
class Backlog:
    """The unplanned part of a source: splits, bytes as text, and the oldest one's time."""

    splits: int = 0
    weight: int = 0
    oldest: datetime | None = None


def backlog_of(discovery: Discovery) -> Backlog:
    """The backlog of a source whose splits are cheap to discover."""
    ready = discovery.ready
    oldest = min((split.modified_at for split in ready), default=None)
    return Backlog(len(ready), sum(split.weight for split in ready), oldest)


@dataclass(frozen=True)
class Limit:
    """The size of a planned batch: full after so many splits, or before so many bytes as text.

    Without `weight` a run takes as many bytes as its cores read in a second or two
    (`Settings.batch_bytes` for each).
    """

    splits: int = 200
    weight: int | None = None


def grouped(splits: Sequence[Split], limit: Limit) -> Iterator[list[Split]]:
    """Cut splits into batches within the limit; a larger split is a batch of its own."""
    group: list[Split] = []
    weight, most = 0, limit.weight or BATCH_BYTES
    for split in splits:
        if group and (len(group) == limit.splits or weight + split.weight > most):
            yield group
            group, weight = [], 0
        group.append(split)
        weight += split.weight
    if group:
        yield group


@dataclass(frozen=True)
class Columns:
    """The columns that consecutive records were made of, from the place `first` on.

    Those that the contract knows, each by a name of its own in any letter case; values are those of
    the payload, and texts are UTF-8 or have replacement characters there.
    """

    first: int
    rows: pa.RecordBatch


def placed(parts: Iterable[tuple[int, Sequence[Columns]]]) -> tuple[Columns, ...]:
    """The columns of records that stand one behind the other: the number of each part, and its."""
    columns: list[Columns] = []
    first = 0
    for count, own in parts:
        columns += [replace(each, first=first + each.first) for each in own]
        first += count
    return tuple(columns)


@dataclass(frozen=True)
class Records:
    """Some records of planned splits, one row each: `_split`, `_row` and `payload`.

    `_split` is the place of its split's name in `splits`, `_row` the record's place in that split.
    `columns` are of records that were typed before: those are cast, and their payloads not read.
    """

    splits: Sequence[str]
    rows: pa.Table
    columns: Sequence[Columns] = ()


@dataclass(frozen=True, kw_only=True)
class Piece(ABC):
    """A part of a planned split, or some whole ones: what one task reads, where it lies.

    It is pickled to Spark's workers, and called in place where a batch is small. `splits` are the
    names, `weight` the bytes as text, approximately. `first` counts the records of its split that
    stand before it; None where nothing but reading tells.
    """

    splits: tuple[str, ...]
    weight: int
    first: int | None = 0

    @abstractmethod
    def read(self) -> Iterator[Records]:
        """The records in their order, some at a time; the same ones every time."""

    def count(self) -> int:
        """Number of its records."""
        return sum(records.rows.num_rows for records in self.read())


PlanRows: TypeAlias = "Callable[..., Iterable[tuple[Any, ...]]]"
"""Yields the named columns (fields of `Split`) of every planned split, in any order.

Then of those that were read again since, as they were then."""

Diagnose: TypeAlias = "Callable[[PlannedSplit], object]"
"""Parses one split alone, and raises where that cannot be done."""


class SourceReader(ABC):
    """An opened source. One reader serves a run, under the stream's lease."""

    limit: Limit = Limit()
    settle_time: timedelta = timedelta(0)
    """How long what is `settling` may take to become ready."""

    def start(self) -> None:  # noqa: B027 - few sources need it
        """Begin to receive; called by the one run that plans, before it discovers anything."""

    def close(self) -> None:  # noqa: B027 - few sources need it
        """Release connections; the reader is not used afterwards."""

    def expect(self, columns: Collection[str]) -> None:  # noqa: B027 - few need to know them
        """Learn the column names that the contract knows; called once, before anything else."""

    @abstractmethod
    def restore(self, plan: PlanRows) -> None:
        """Continue behind the splits that were planned before this run."""

    @abstractmethod
    def planned(self, splits: Sequence[Split]) -> None:
        """Continue behind these splits: they are in the plan now."""

    def hold_back(self, producers: Collection[str]) -> None:  # noqa: B027 - few cut splits
        """Cut no further splits of these producers, until called again without them.

        Splits of theirs that are discovered nevertheless are not planned.
        """

    @abstractmethod
    def discover(self, *, full: bool = True) -> Discovery:
        """Find what can be planned. Without `full`, changes of planned splits may be left out.

        Raises:
            RecordsLost: records are gone from the source before they were planned.
        """

    def batches(self, ready: Sequence[Split]) -> Iterable[list[Split]]:
        """Cut what is ready into planned batches, in its order; by default within `limit`."""
        return grouped(ready, self.limit)

    @abstractmethod
    def pieces(
        self, spark: SparkSession, splits: Sequence[PlannedSplit], most_bytes: int
    ) -> Sequence[Piece]:
        """Cut planned splits into pieces of about `most_bytes` as text, in their order.

        The same splits give the same records again. `spark` is for what it alone can read.

        Raises:
            RecordsLost: records of them are gone from the source.
        """

    def read(self, piece: Piece) -> Iterator[Records]:
        """Read a piece in the driver."""
        return piece.read()

    @abstractmethod
    def backlog(self) -> Backlog:
        """Measure what is beyond the plan, without Spark and without reading records."""

    def parts(self, unread: Sequence[PlannedSplit]) -> Sequence[Part]:
        """Each part of a source that has parts, with what is unread of it, silent ones included.

        Without Spark. `unread` are the splits of the plan whose rows are in no table yet.
        """
        return ()

    def current(self, name: str) -> Split | Waiting | None:
        """The split of a name as its source has it now; None where it is gone or never changes."""
        return None

    def lost(self, unread: Sequence[PlannedSplit]) -> Sequence[Split]:
        """Records gone from the source before they were read, as splits whose status is `LOST`.

        `unread` are the splits of the plan whose rows are in no table yet. Once the lost ones are
        planned, reading goes on behind them.
        """
        return ()

    def committed(self, splits: Sequence[PlannedSplit]) -> None:  # noqa: B027 - few release anything
        """Release splits whose rows are in the tables; may be called again for the same ones."""

    def diagnose(
        self, spark: SparkSession, splits: Sequence[PlannedSplit], parse: Diagnose
    ) -> Mapping[str, str]:
        """Name the splits that can never be read, each with its reason, after reading failed."""
        return {}


class Source(ABC):
    """Declares where the records of an ingest come from. Subclasses are frozen dataclasses."""

    delimiter: str = ","
    """What stands between the values of CSV payloads."""
    kind: ClassVar[str] = "source"
    """What the catalog shows it as, such as "file" or "delta"."""
    unit: ClassVar[str] = "split"
    """What one of its splits is called in listings, in the singular."""
    skipped: ClassVar[str | None] = None
    """What its records that become no rows are called in listings; None where they are not told."""
    together: ClassVar[bool] = False
    """Whether the splits of a planned batch came at the same time, as partitions of a topic do.

    Then no row is late because of a row of another split of its planned batch."""

    read_whole: ClassVar[bool] = False
    """Whether all its rows come again at each reading, so that only a lookup has each once."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the source in listings and manifests, such as a folder or a table."""

    @property
    @abstractmethod
    def asset(self) -> tuple[str, ...]:
        """The path of the source in the lineage, such as ('landing', 'taxi', 'rides')."""

    @property
    @abstractmethod
    def description(self) -> str:
        """The content of the source, in a sentence."""

    @abstractmethod
    def open(self, landing_root: str) -> SourceReader:
        """Open the source for a run; relative places lie below the landing root."""

    @property
    def tells_producers(self) -> bool:
        """True if its rows come from several producers that `producer` tells apart."""
        return False

    def producer(self, split: str) -> str:
        """The producer of the rows of the split of that name, such as a partition."""
        return self.name


def weight_of(path: str, kind: str | None, size: int) -> int:
    """Bytes of a file as text, approximately."""
    return size * (UNPACKED if kind in PACKED or path.lower().endswith(".gz") else 1)
