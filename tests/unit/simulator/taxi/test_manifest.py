from pathlib import Path

import pytest

from simulator.taxi.manifest import Announced, Manifest, ManifestMismatch, read_manifest

DECLARED = {"rate": 5.0, "rides": None, "clock": "now"}


def begin(tmp_path: Path) -> Manifest:
    return Manifest(tmp_path / "manifest.jsonl", tmp_path / "landing", DECLARED)


def land(tmp_path: Path, manifest: Manifest, name: str) -> None:
    manifest.announce("taxi/rides", name, 1, [((7, 1), "fresh")])
    folder = tmp_path / "landing" / "taxi" / "rides"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("{}\n")


def test_what_was_announced_and_landed_is_read_back(tmp_path: Path) -> None:
    land(tmp_path, begin(tmp_path), "a.json")

    record = read_manifest(tmp_path / "manifest.jsonl", tmp_path / "landing")

    assert record.declaration == DECLARED
    assert record.files == [Announced("taxi/rides", "a.json", 1, (((7, 1), "fresh"),))]
    assert begin(tmp_path).landed == {"taxi/rides": 1}


def test_a_file_that_was_announced_and_never_landed_does_not_count(tmp_path: Path) -> None:
    manifest = begin(tmp_path)
    land(tmp_path, manifest, "a.json")
    manifest.announce("taxi/rides", "b.json", 1)

    again = begin(tmp_path)
    land(tmp_path, again, "c.json")

    record = read_manifest(tmp_path / "manifest.jsonl", tmp_path / "landing")
    assert [file.file for file in record.files] == ["a.json", "c.json"]
    assert again.landed == {"taxi/rides": 1}


def test_a_line_that_a_kill_cut_off_does_not_count(tmp_path: Path) -> None:
    land(tmp_path, begin(tmp_path), "a.json")
    path = tmp_path / "manifest.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"folder":"taxi/ri')

    assert begin(tmp_path).landed == {"taxi/rides": 1}
    assert path.read_bytes() == whole


def test_a_manifest_that_was_cut_off_at_once_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "manifest.jsonl"
    path.write_bytes(b'{"declarat')

    begin(tmp_path)

    assert read_manifest(path, tmp_path).declaration == DECLARED


def test_another_declaration_is_refused_and_leaves_the_manifest_alone(tmp_path: Path) -> None:
    land(tmp_path, begin(tmp_path), "a.json")
    before = (tmp_path / "manifest.jsonl").read_bytes()

    with pytest.raises(ManifestMismatch, match="other settings"):
        Manifest(tmp_path / "manifest.jsonl", tmp_path / "landing", DECLARED | {"rate": 6.0})
    assert (tmp_path / "manifest.jsonl").read_bytes() == before
