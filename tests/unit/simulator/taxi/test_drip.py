import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from simulator.disorder import Disorder
from simulator.landing.pace import Progress
from simulator.taxi.drip import Dripped, drip
from simulator.taxi.drip_plan import DripPlan
from simulator.taxi.manifest import read_manifest
from simulator.taxi.truth import truth_of
from simulator.taxi.wire import FARES_FOLDER, RIDES_FOLDER, read_fares, read_rides

ROUGH = Disorder(
    delay=timedelta(seconds=30),
    late=0.05,
    late_by=timedelta(minutes=2),
    loss=0.03,
    duplicates=0.04,
    seed=11,
)
AT_ONCE = DripPlan(
    rate=None,
    clock="training",
    rides=400,
    disorder=ROUGH,
    unpaced_span=timedelta(minutes=20),
)


def run(tmp_path: Path, plan: DripPlan = AT_ONCE, **how: object) -> Dripped:
    return drip(tmp_path / "landing", tmp_path / "manifest.jsonl", plan, **how)  # type: ignore[arg-type]


def contents(tmp_path: Path) -> list[bytes]:
    """What landed, file by file; names carry the time of landing, rows do not."""
    return [
        file.read_bytes()
        for folder in (RIDES_FOLDER, FARES_FOLDER)
        for file in sorted((tmp_path / "landing" / folder).glob("part-*"))
    ]


def kinds(tmp_path: Path, folder: str) -> dict[str, list[tuple[int, ...]]]:
    record = read_manifest(tmp_path / "manifest.jsonl", tmp_path / "landing")
    sorted_out: dict[str, list[tuple[int, ...]]] = {}
    for file in record.files:
        for key, kind in file.events if file.folder == folder else ():
            sorted_out.setdefault(kind, []).append(key)
    return {kind: sorted(keys) for kind, keys in sorted_out.items()}


def test_the_door_finds_what_the_drip_meant(tmp_path: Path) -> None:
    run(tmp_path)

    truth = truth_of(tmp_path / "landing", AT_ONCE.lateness)
    for folder, found in ((RIDES_FOLDER, truth.rides), (FARES_FOLDER, truth.fares)):
        meant = kinds(tmp_path, folder)
        assert sorted(row.key for row in found.admitted) == meant["fresh"]
        assert sorted(row.key for row in found.late) == meant["late"]
        assert sorted(row.key for row in found.duplicates) == meant["duplicate"]


def test_every_event_of_the_world_is_accounted_for(tmp_path: Path) -> None:
    dripped = run(tmp_path)

    rides, fares = kinds(tmp_path, RIDES_FOLDER), kinds(tmp_path, FARES_FOLDER)
    once = Counter(key for kind in ("fresh", "late", "lost") for key in rides[kind])
    assert once == Counter((i, is_start) for i in range(1, 401) for is_start in (0, 1))
    paid = Counter(key for kind in ("fresh", "late", "lost") for key in fares[kind])
    assert paid == Counter((i,) for i in range(1, 401))
    assert dripped.paced.rows == sum(n for kind, n in dripped.kinds.items() if kind != "lost")
    assert sum(dripped.kinds.values()) == 3 * 400 + dripped.kinds["duplicate"]


def test_losses_leave_rides_and_fares_unmatched(tmp_path: Path) -> None:
    run(tmp_path)

    truth = truth_of(tmp_path / "landing", AT_ONCE.lateness)
    starts = {event.ride_id for event in truth.rides.admitted if event.is_start}
    paid = {fare.ride_id for fare in truth.fares.admitted}

    assert starts - paid
    assert paid - starts
    assert starts & paid


def test_a_drip_that_was_stopped_goes_on_where_it_was(tmp_path: Path) -> None:
    run(tmp_path / "whole")
    stop = threading.Event()

    def stop_soon(progress: Progress) -> None:
        if progress.files == 5:
            stop.set()

    first = run(tmp_path / "parts", stop=stop, on_progress=stop_soon)
    second = run(tmp_path / "parts")

    assert (first.paced.files, first.paced.stopped) == (5, True)
    assert not second.paced.stopped
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")
    assert kinds(tmp_path / "parts", RIDES_FOLDER) == kinds(tmp_path / "whole", RIDES_FOLDER)


KILLED_DRIP = """
import sys
from datetime import timedelta
from pathlib import Path
from simulator.disorder import Disorder
from simulator.taxi.drip import drip
from simulator.taxi.drip_plan import DripPlan
drip(
    Path(sys.argv[1]) / "landing",
    Path(sys.argv[1]) / "manifest.jsonl",
    DripPlan(rate=None, clock="training", rides=150, unpaced_span=timedelta(minutes=1)),
    on_progress=lambda progress: print(progress.files, flush=True),
)
"""


def test_a_drip_that_was_killed_leaves_the_truth_behind(tmp_path: Path) -> None:
    plan = DripPlan(rate=None, clock="training", rides=150, unpaced_span=timedelta(minutes=1))
    with subprocess.Popen(
        [sys.executable, "-c", KILLED_DRIP, str(tmp_path / "parts")],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    ) as dripping:
        assert dripping.stdout is not None
        for line in dripping.stdout:
            if int(line) >= 20:
                dripping.send_signal(signal.SIGKILL)
                break

    landed = len(contents(tmp_path / "parts"))
    truth = truth_of(tmp_path / "parts" / "landing", plan.lateness)
    meant = kinds(tmp_path / "parts", RIDES_FOLDER)
    assert sorted(row.key for row in truth.rides.admitted) == meant["fresh"]

    run(tmp_path / "parts", plan)
    run(tmp_path / "whole", plan)
    assert 20 <= landed < len(contents(tmp_path / "whole"))
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")


def test_a_folder_with_files_of_somebody_else_is_refused(tmp_path: Path) -> None:
    run(tmp_path)
    (tmp_path / "manifest.jsonl").unlink()

    with pytest.raises(ValueError, match="does not list"):
        run(tmp_path)


def test_in_real_time_events_land_as_they_happen(tmp_path: Path) -> None:
    plan = DripPlan(
        rate=300, disorder=Disorder(), lateness=timedelta(seconds=1), every=timedelta(seconds=0.2)
    )
    began = datetime.now(UTC)

    dripped = run(tmp_path, plan, lasting=timedelta(seconds=1.5))

    rides = [event for rows in read_rides(tmp_path / "landing") for event in rows]
    fares = [event for rows in read_fares(tmp_path / "landing") for event in rows]
    assert dripped.paced.stopped
    # A hundred rides start each second, of which a busy machine lands some in time.
    assert 0 < len(fares) <= 150
    assert all(began <= fare.event_time <= datetime.now(UTC) for fare in fares)
    starts = [event.ride_id for event in rides if event.is_start]
    assert sorted(starts) == list(range(1, len(starts) + 1))
    assert [fare.ride_id for fare in fares] == list(range(1, len(fares) + 1))
    # The stop may come between the two files of a moment, which has 20 rides.
    assert abs(len(starts) - len(fares)) <= 20


def test_a_drip_in_real_time_catches_up_with_the_time_it_was_away(tmp_path: Path) -> None:
    plan = DripPlan(
        rate=60, disorder=Disorder(), lateness=timedelta(seconds=1), every=timedelta(seconds=0.2)
    )
    first = run(tmp_path, plan, lasting=timedelta(seconds=0.5))
    threading.Event().wait(1.5)

    second = run(tmp_path, plan, lasting=timedelta(seconds=0.3))

    assert second.clock == first.clock
    ids = [event.ride_id for rows in read_fares(tmp_path / "landing") for event in rows]
    assert ids == list(range(1, len(ids) + 1))
    # 20 rides start each second: 16 while it ran, 40 and more since it first began.
    assert len(ids) >= 25


@pytest.mark.parametrize(
    ("broken", "complaint"),
    [
        ({"rate": 0}, "rate"),
        ({"rate": None}, "needs a rate"),
        ({"rides": 0}, "at least one"),
        ({"lateness": timedelta(seconds=31)}, "without being meant to"),
    ],
)
def test_a_plan_that_cannot_hold_is_refused(broken: dict[str, object], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        DripPlan(**broken)  # type: ignore[arg-type]
