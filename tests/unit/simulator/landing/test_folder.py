import os
import re
import time
from pathlib import Path

import pytest

from simulator.landing.folder import LandingFolder, files_in_landing_order


def test_names_carry_a_rising_number_and_the_time_in_utc(tmp_path: Path) -> None:
    folder = LandingFolder(tmp_path)

    names = [folder.land(["1"]).path.name for _ in range(3)]

    assert [name[:13] for name in names] == ["part-00000000", "part-00000001", "part-00000002"]
    assert all(re.fullmatch(r"part-\d{8}-\d{8}T\d{6}\.\d{3}Z\.json", name) for name in names)
    assert names == sorted(names)


def test_modification_times_rise_even_when_the_clock_stands_still(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frozen = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: frozen)
    folder = LandingFolder(tmp_path)

    landed = [folder.land([str(number)]) for number in range(20)]

    times = [file.path.stat().st_mtime_ns // 1_000_000 for file in landed]
    assert times == list(range(times[0], times[0] + 20))
    assert files_in_landing_order(tmp_path) == [file.path for file in landed]


def test_a_folder_opened_again_goes_on_behind_what_landed(tmp_path: Path) -> None:
    LandingFolder(tmp_path, ".csv").land(["1"])
    ahead = time.time_ns() + 3_600_000_000_000
    last = LandingFolder(tmp_path, ".json.gz").land(["2"]).path
    os.utime(last, ns=(ahead, ahead))

    again = LandingFolder(tmp_path).land(["3"])

    assert again.path.name.startswith("part-00000002-")
    assert again.modified_ms > ahead // 1_000_000


def test_a_promised_name_is_kept(tmp_path: Path) -> None:
    folder = LandingFolder(tmp_path)
    promised = folder.next_name()

    assert folder.land(["1"], name=promised).path.name == promised
    assert folder.next_number == 1


def test_hidden_files_and_folders_are_not_in_landing_order(tmp_path: Path) -> None:
    landed = LandingFolder(tmp_path).land(["1"])
    (tmp_path / ".part-00000007-half").write_text("1")
    (tmp_path / "_marker").write_text("")
    (tmp_path / "folder").mkdir()

    assert files_in_landing_order(tmp_path) == [landed.path]
    assert LandingFolder(tmp_path).next_number == 1


def test_files_of_equal_time_come_by_path(tmp_path: Path) -> None:
    for name in ("b.json", "a.json"):
        (tmp_path / name).write_text("")
        os.utime(tmp_path / name, ns=(10**18, 10**18))

    assert [file.name for file in files_in_landing_order(tmp_path)] == ["a.json", "b.json"]
