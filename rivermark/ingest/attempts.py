"""Splits that end the engine or the process that reads them, found over several starts.

An engine that dies says nothing about why. So a batch is written down before it is read, and one
that was started twice and never decided is read split by split at the next start, each written down
before it: the split over which the engine dies alone, twice as well, is quarantined, and the others
come in. Reading one by one and not by halves, because a death costs a start of the engine and
reading a file alone a few milliseconds. Twice, because streams share an engine: what dies beside a
neighbour's batch is no proof.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from threading import Lock
from typing import Final, TypeVar

from pyarrow import fs
from pyspark.sql import SparkSession

from rivermark.lake.filesystem import filesystem, is_local, put_file
from rivermark.model.source import Split

DEATHS: Final = 2
"""So often a batch has to end the engine before its splits are suspected, and a split alone before
it is quarantined."""
ALONE: Final = Lock()
"""Held while a split is read alone: of two that are suspected in one process only one is read."""
AnySplit = TypeVar("AnySplit", bound=Split)
REASON: Final = "file_ends_the_engine"


@dataclass(frozen=True)
class Attempt:
    """A batch and how often it was started, and what reading its splits alone has shown.

    Batches of another `generation` are others: a reset numbers them from the start.
    `suspect` is the split that is being read alone, over which the engine died `died_alone` times.
    `cleared` are those that were read alone, and `deadly` those that ended it each time.
    """

    batch: int
    generation: int = 0
    tries: int = 1
    suspect: str | None = None
    died_alone: int = 0
    cleared: tuple[str, ...] = ()
    deadly: tuple[str, ...] = ()


@dataclass
class Attempts:
    """The attempts of one ingest, kept in a file; only the newest batch has any.

    On a disk each batch is written down; in other stores, where that takes as long as a small
    batch, only the first of a run: a batch that ends the engine is the first of the next run.
    """

    path: str
    generation: int = 0
    _current: Attempt | None = field(default=None, init=False)

    def begin(self, batch: int) -> int:
        """Write down that a batch is read now; returns how often it was so before."""
        first = self._current is None
        known = self._current or self._read()
        if known is not None and (known.batch, known.generation) == (batch, self.generation):
            self._current = replace(known, tries=known.tries + 1)
        else:
            self._current = Attempt(batch, self.generation)
        if first or is_local(self.path):
            self._write()
        return self._current.tries - 1

    def give_up(self) -> None:
        """Take back that the batch was started: it failed with an error, and killed nothing."""
        if self._current is not None:
            self._current = replace(
                self._current, tries=self._current.tries - 1, suspect=None, died_alone=0
            )
            self._write()

    def isolate(
        self, splits: Sequence[AnySplit], read: Callable[[AnySplit], object]
    ) -> dict[str, str]:
        """Read each split alone; returns the reason for each that ends the engine."""
        if self._current is None:
            return {}
        with ALONE:
            died = self._current.died_alone + 1
            if self._current.suspect is not None and died < DEATHS:
                self._put(died_alone=died)
            elif self._current.suspect is not None:
                deadly = (*self._current.deadly, self._current.suspect)
                self._put(deadly=deadly, suspect=None, died_alone=0)
            for split in splits:
                if split.name not in (*self._current.cleared, *self._current.deadly):
                    self._put(suspect=split.name)
                    read(split)
                    cleared = (*self._current.cleared, split.name)
                    self._put(cleared=cleared, suspect=None, died_alone=0)
        how = f"the engine or its process ended {DEATHS} times over it alone"
        return dict.fromkeys(self._current.deadly, f"{REASON}: {how}")

    def _put(self, **changes: object) -> None:
        if self._current is not None:
            self._current = replace(self._current, **changes)  # type: ignore[arg-type]
            self._write()

    def _read(self) -> Attempt | None:
        store, path = self._place
        try:
            with store.open_input_stream(path) as file:
                content = json.loads(file.read())
            names = {name: tuple(content[name]) for name in ("cleared", "deadly")}
            return Attempt(**(content | names))
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            # A power failure may leave an empty file, which is no reason to stop.
            return None

    def _write(self) -> None:
        # What has to outlast a process and an engine, and no power failure.
        store, path = self._place
        put_file(store, path, json.dumps(vars(self._current)).encode(), durable=False)

    @cached_property
    def _place(self) -> tuple[fs.FileSystem, str]:
        store, path = filesystem(self.path)
        store.create_dir(path.rsplit("/", 1)[0], recursive=True)
        return store, path


def engine_is_alive(spark: SparkSession) -> bool:
    """Returns True if the session's JVM still answers."""
    try:
        spark._jvm.System.nanoTime()  # type: ignore[union-attr]
    except Exception:
        # The bridge raises errors of many types once its other end is gone.
        return False
    return True
