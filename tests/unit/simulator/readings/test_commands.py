import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from typer.testing import CliRunner

from rivermark.cli.main import app
from simulator.readings.demo import LENGTH, land
from simulator.readings.world import SensorWorld


def test_the_scene_lands_each_input_once(tmp_path: Path) -> None:
    first, again = land(tmp_path), land(tmp_path)

    assert [found.new_files for found in first] == [found.files for found in first]
    assert [found.new_files for found in again] == [0, 0, 0, 0, 0]
    sensors = first[-1]
    sent = SensorWorld().sensors * LENGTH.total_seconds()
    assert 0.97 * sent < sensors.rows < sent * 1.01  # two in a hundred are lost, one comes twice


def test_sensors_read_in_real_time(tmp_path: Path) -> None:
    arguments = ["sensors", "--sensors", "10", "--period", "0.1", "--for", "3"]
    began = datetime.now(UTC)

    result = CliRunner().invoke(app, [*arguments, "--home", str(tmp_path)])

    assert result.exit_code == 0
    files = list((tmp_path / "landing" / "readings" / "sensors").iterdir())
    lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    assert f"stopped: {len(lines)} rows in {len(files)} files" in result.stdout
    times = [datetime.fromisoformat(line["event_time"]) for line in lines]
    assert began - timedelta(seconds=1) < min(times) < max(times) < datetime.now(UTC)


def test_a_world_that_cannot_be_is_refused(tmp_path: Path) -> None:
    arguments = ["sensors", "--sensors", "100", "--period", "0.01"]

    result = CliRunner().invoke(app, [*arguments, "--home", str(tmp_path)])

    assert result.exit_code == 1
    assert "at least one sensor" in result.stderr
