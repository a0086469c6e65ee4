"""Tables opened to be asked: anew each time, or once for everything that is asked in one look."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, TypeVar

from deltalake import DeltaTable

from rivermark.lake.lake import Lake
from rivermark.model.table import Table

if TYPE_CHECKING:
    # Arrow's datasets import pandas, which takes a second; whoever asks has paid for it by then.
    from pyarrow import dataset

T = TypeVar("T")

_HELD: Final[ContextVar[dict[tuple[object, ...], Any] | None]] = ContextVar("held", default=None)


def opened(lake: Lake, table: Table) -> dataset.Dataset:
    """The rows of a table at its newest version, or at that of the look in which this is asked."""
    path = lake.path(table)
    return once(("table", path), lambda: DeltaTable(path).to_pyarrow_dataset())


def once(key: tuple[object, ...], answer: Callable[[], T]) -> T:
    """The answer; in a look that which was given to the same key before."""
    held = _HELD.get()
    if held is None:
        return answer()
    if key not in held:
        held[key] = answer()
    found: T = held[key]
    return found


@contextmanager
def one_look(lake: Lake, *first: Table) -> Iterator[None]:
    """Open each table once while this lasts, since a year of files takes a while to be listed.

    Tables stay as they were when they were first asked for. Those in `first` are opened before all
    others, so that what they tell of is in the others.
    """
    token = _HELD.set({})
    try:
        for table in first:
            if lake.exists(table):
                opened(lake, table)
        yield
    finally:
        _HELD.reset(token)
