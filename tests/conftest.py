"""What all tests share: no property test fails for being slow, interrupts are heard, and no commit
waits for the disk. A PostgreSQL, where one is asked for.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from rivermark.setup.ivy import Problem
from setup.local_server import free_port
from setup.postgres_server import PostgresServer
from tests.leftovers import end_leftovers

if TYPE_CHECKING:
    from tests.kills import Killer

# Few examples each time, and many in `make stories` (--hypothesis-profile many). On a busy machine
# one may take long. What is chosen where CI is set (the same examples each time) stays.
CHOSEN = settings.get_profile(settings.get_current_profile_name())
for profile, examples in (("few", 20), ("many", 100)):
    settings.register_profile(
        profile,
        CHOSEN,
        deadline=None,
        max_examples=examples,
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile("few")

# A worker of xdist has a main module without a file, which PySpark takes for its own doctests when
# Great Expectations is imported, and ends (rivermark.quality.gx.main_module).
if getattr(sys.modules["__main__"], "__file__", None) is None:
    sys.modules["__main__"].__file__ = __file__

# A shell starts what runs in the background with SIGINT ignored, and what a test starts inherits
# that; after a run of Dagster in this process for SIGTERM too, which has SIGINT's handler then.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def _unsynced() -> Iterator[None]:
    """Let a sync return at once: a commit would wait for the disk for longer than it computes.

    What syncs is tested on a model of a disk (tests/unit/lake/test_durable.py), and by processes of
    their own whose power fails (tests/stories/test_power_failure.py).
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_leftovers() -> None:
    """Let nothing that a test started outlive this pytest, also where a timeout ends it."""
    end_leftovers()


@pytest.fixture
def killer() -> Iterator[Killer]:
    """Kills before the steps that a test names, as long as the test lasts."""
    # It loads Arrow, which few tests of Dagster's side need.
    from tests.kills import Killer

    made = Killer()
    yield made
    made.patch.undo()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A server of these tests alone; it starts with the first test that needs it."""
    pytest.importorskip("psycopg", reason="needs the extra: pip install 'rivermark[postgres]'")
    with TemporaryDirectory(prefix="rivermark-") as folder, pytest.MonkeyPatch.context() as patch:
        # Not in pytest's own folders, which are closed to the server's account.
        server = PostgresServer(Path(folder), free_port(), dies_with_parent=True, durable=False)
        try:
            server.start()
        except Problem as problem:
            pytest.skip(f"needs PostgreSQL: {problem}")
        patch.setenv("PGPASSFILE", str(server.passfile))
        patch.setenv("TEST_DATABASE", server.database)
        yield server
        server.stop()
