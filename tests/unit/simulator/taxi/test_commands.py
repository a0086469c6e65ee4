import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from rivermark.cli.main import app
from simulator.taxi.wire import read_fares, read_rides

SAMPLE = Path(__file__).parents[3] / "data/tlc/green_tripdata_2024-01_first2000.parquet"


def rivermark(home: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments, "--home", str(home)])


def drip(home: Path, *arguments: str) -> Result:
    return rivermark(home, "drip", "--clock", "training", "--rate", "0", *arguments)


def test_a_drip_lands_rides_and_fares_and_tells_what_became_of_them(tmp_path: Path) -> None:
    result = drip(tmp_path, "--rides", "200", "--late", "0.1", "--duplicates", "0.1")

    assert result.exit_code == 0
    rides = [e for rows in read_rides(tmp_path / "landing") for e in rows]
    fares = [e for rows in read_fares(tmp_path / "landing") for e in rows]
    assert f"done: {len(rides) + len(fares)} rows in " in result.stdout
    assert "late" in result.stdout
    assert len({e.ride_id for e in rides}) == 200


def test_a_second_drip_lands_behind_the_first(tmp_path: Path) -> None:
    drip(tmp_path, "--rides", "50", "--manifest", str(tmp_path / "first.jsonl"))
    before = len(read_fares(tmp_path / "landing"))

    result = drip(tmp_path, "--rides", "60", "--manifest", str(tmp_path / "second.jsonl"))

    assert result.exit_code == 0
    assert len(read_fares(tmp_path / "landing")) > before
    numbers = sorted(f.name[:13] for f in (tmp_path / "landing/taxi/fares").iterdir())
    assert len(set(numbers)) == len(numbers)


def test_a_drip_goes_on_with_its_manifest(tmp_path: Path) -> None:
    manifest = ("--manifest", str(tmp_path / "drip.jsonl"))
    drip(tmp_path, "--rides", "50", *manifest)

    again = drip(tmp_path, "--rides", "50", *manifest)
    other = drip(tmp_path, "--rides", "51", *manifest)

    assert "done: 0 rows in 0 files" in again.stdout
    assert other.exit_code == 1
    assert "belongs to a run with other settings" in other.stderr


def fares_landed(home: Path) -> list[int]:
    return [e.ride_id for rows in read_fares(home / "landing") for e in rows]


def test_drips_of_the_present_never_share_a_ride(tmp_path: Path) -> None:
    for run in ("first", "second"):
        manifest = ("--manifest", str(tmp_path / f"{run}.jsonl"))
        earlier = fares_landed(tmp_path)
        # A busy machine may land nothing in so short a time; the same drip then goes on.
        while fares_landed(tmp_path) == earlier:
            result = rivermark(tmp_path, "drip", "--rate", "3000", "--for", "1.5", *manifest)
            assert result.exit_code == 0
    fares = fares_landed(tmp_path)
    head = json.loads((tmp_path / "second.jsonl").read_text().splitlines()[0])

    assert fares
    assert len(fares) >= len(set(fares)) > 0.9 * len(fares)  # repeats only, one in a hundred
    assert head["declaration"]["first_ride"] > max(
        i for i in fares if i < head["declaration"]["first_ride"]
    )


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--rate", "0"), "needs a rate"),
        (("--delay", "90"), "allowed lateness"),
    ],
)
def test_a_drip_that_cannot_be_is_refused_with_a_sentence(
    tmp_path: Path, options: tuple[str, ...], complaint: str
) -> None:
    result = rivermark(tmp_path, "drip", *options)

    assert result.exit_code == 1
    assert complaint in result.stderr
    assert not (tmp_path / "landing").exists()


def test_a_file_is_replayed_once_however_often_it_is_asked_for(tmp_path: Path) -> None:
    first = rivermark(tmp_path, "replay", str(SAMPLE), "--speed", "0")
    again = rivermark(tmp_path, "replay", str(SAMPLE), "--speed", "0")

    assert "from 2,000 trips" in first.stdout
    assert again.stdout.startswith("done: 0 rows in 0 files")


def test_a_file_without_trips_is_refused(tmp_path: Path) -> None:
    (tmp_path / "prices.csv").write_text("day,price\n2020-01-01,3\n")

    result = rivermark(tmp_path, "replay", str(tmp_path / "prices.csv"))

    assert result.exit_code == 1
    assert "prices.csv has no pickup and dropoff times" in result.stderr
    assert not (tmp_path / "landing").exists()


def test_landing_needs_a_folder_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RIVERMARK_LANDING_ROOT", "s3://bucket/landing")

    result = rivermark(tmp_path, "replay", str(SAMPLE))

    assert result.exit_code == 1
    assert "s3://bucket/landing is not a local folder" in result.stderr
