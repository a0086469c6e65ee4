"""Backlogs are polled beside the run, each until it fails or is removed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import cast

import pytest

from rivermark.runtime.query.base import Backlog
from rivermark.runtime.supervision.file_poller import POLLS, Poller, PollInterval, pause
from rivermark.testing import wait_until


class Folder:
    """A backlog that counts its polls."""

    def __init__(self, error: Exception | None = None) -> None:
        self.polls = 0
        self.error = error
        self.free = threading.Event()
        self.free.set()

    def poll(self) -> int:
        """List the folder."""
        self.polls += 1
        self.free.wait(10)
        if self.error:
            raise self.error
        return 0


@pytest.fixture
def poller() -> Iterator[Poller]:
    poller = Poller()
    yield poller
    poller.stop()


def test_a_backlog_that_fails_is_polled_no_more_and_the_others_are(poller: Poller) -> None:
    broken, whole = Folder(OSError("folder is gone")), Folder()
    poller.add("test/broken", cast(Backlog, broken))
    poller.add("test/whole", cast(Backlog, whole))

    wait_until(lambda: broken.polls and whole.polls > 2, 10, interval=0.01)

    assert broken.polls == 1
    assert {n: str(e) for n, e in poller.failures().items()} == {"test/broken": "folder is gone"}
    assert poller.failures() == {}


def test_a_listing_that_takes_long_delays_no_report(poller: Poller) -> None:
    slow = Folder()
    slow.free.clear()
    poller.add("test/slow", cast(Backlog, slow))
    wait_until(lambda: slow.polls, 10, interval=0.01)

    assert poller.failures() == {}
    removing = threading.Thread(target=poller.remove, args=("test/slow",))
    removing.start()
    removing.join(0.2)
    assert removing.is_alive(), "a stream is not opened again while it is still listed"
    slow.free.set()
    removing.join(10)
    assert slow.polls == 1


def test_a_look_that_works_is_rare_and_one_that_only_waits_comes_again_soon() -> None:
    assert pause(0.01, 0.01) == 0
    assert pause(10, 10) == pytest.approx(200)
    assert pause(10, 0.01) == 5
    assert pause(0.1, 0.001) == pytest.approx(2)


def test_planning_and_a_busy_machine_put_no_look_off() -> None:
    interval = PollInterval()
    assert interval.after(0.01, 0.01, planned=0) == 0
    assert interval.after(0.5, 0.1, planned=3) == 0, "what was planned is no cost of looking"
    assert interval.after(0.5, 0.002, planned=0) == 0, "one look that waited says nothing"


def test_a_folder_that_is_slow_to_list_is_looked_at_less_often_whatever_is_found_in_it() -> None:
    interval = PollInterval()
    assert interval.after(10, 10, planned=1) == pytest.approx(200)
    assert interval.after(0.01, 0.01, planned=0) == 0
    for took in range(1, POLLS):
        assert interval.after(took, took, planned=0) == 0
    assert interval.after(2, 2, planned=0) == pytest.approx(20)
    assert interval.after(60, 60, planned=9) == pytest.approx(20)
