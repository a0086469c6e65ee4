"""Locks of a table: one at a time, freed by whoever ends, and none on a store that needs none."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from rivermark.lake.locks import commit_lock, days_lock

Lock = Callable[[str], AbstractContextManager[None]]
BOTH = pytest.mark.parametrize("lock", [commit_lock, days_lock])


def holds(lock: Lock, path: str) -> tuple[threading.Event, threading.Event]:
    """A thread that takes the lock: the event that it has it, and the one that lets it go on."""
    has, may_go = threading.Event(), threading.Event()

    def hold() -> None:
        with lock(path):
            has.set()
            may_go.wait(10)

    threading.Thread(target=hold, daemon=True).start()
    return has, may_go


@BOTH
def test_a_second_holder_waits_for_the_first(lock: Lock, tmp_path: Path) -> None:
    has, may_go = holds(lock, str(tmp_path))
    assert has.wait(10)
    second_has, second_may_go = holds(lock, str(tmp_path))

    assert not second_has.wait(0.3)
    may_go.set()
    assert second_has.wait(10)
    second_may_go.set()


@BOTH
def test_a_holder_that_fails_frees_the_lock(lock: Lock, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="out of rows"), lock(str(tmp_path)):
        raise RuntimeError("out of rows")
    has, may_go = holds(lock, str(tmp_path))

    assert has.wait(10)
    may_go.set()


def test_who_computes_days_does_not_keep_others_from_committing(tmp_path: Path) -> None:
    with days_lock(str(tmp_path)):
        has, may_go = holds(commit_lock, str(tmp_path))
        assert has.wait(10)
        may_go.set()


@BOTH
@pytest.mark.parametrize("place", ["s3://bucket/table", "{folder}/not/there"])
def test_where_there_is_no_folder_there_is_no_lock(lock: Lock, place: str, tmp_path: Path) -> None:
    for _ in range(2):
        with lock(place.format(folder=tmp_path)):
            pass
    assert [*tmp_path.iterdir()] == []
