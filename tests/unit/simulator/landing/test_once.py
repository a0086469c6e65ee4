import os
from pathlib import Path

from simulator.landing.folder import files_in_landing_order
from simulator.landing.once import LandedOnce, copy_once, land_parts_once

PARTS = [["a", "b"], ["c"], ["d", "e", "f"]]


def names(folder: Path) -> list[str]:
    return [file.name for file in files_in_landing_order(folder)]


def test_parts_land_in_order_and_once(tmp_path: Path) -> None:
    first = land_parts_once(tmp_path, "demo", PARTS)
    again = land_parts_once(tmp_path, "demo", PARTS)

    assert first == LandedOnce(files=3, rows=6, new_files=3)
    assert again == LandedOnce(files=3, rows=6, new_files=0)
    assert names(tmp_path) == ["demo-0000.json", "demo-0001.json", "demo-0002.json"]
    assert (tmp_path / "demo-0002.json").read_text() == "d\ne\nf\n"


def test_a_landing_that_was_killed_is_completed(tmp_path: Path) -> None:
    land_parts_once(tmp_path, "demo", PARTS[:1])

    done = land_parts_once(tmp_path, "demo", PARTS)

    assert done.new_files == 2
    assert names(tmp_path) == ["demo-0000.json", "demo-0001.json", "demo-0002.json"]


def test_parts_land_behind_what_others_landed_in_the_future(tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text("x\n")
    os.utime(other, (4_000_000_000, 4_000_000_000))

    land_parts_once(tmp_path, "demo", PARTS)

    assert names(tmp_path)[0] == "other.json"


def test_a_copy_lands_once_whole_and_with_the_time_of_its_landing(tmp_path: Path) -> None:
    source, folder = tmp_path / "old.csv", tmp_path / "landing" / "trips"
    source.write_text("a,b\n1,2\n")
    os.utime(source, (1_000_000_000, 1_000_000_000))

    assert copy_once(source, folder)
    assert not copy_once(source, folder)

    landed = folder / "old.csv"
    assert landed.read_bytes() == source.read_bytes()
    assert landed.stat().st_mtime > 1_700_000_000
    assert [f.name for f in folder.iterdir()] == ["old.csv"]
