from pathlib import Path

from typer.testing import CliRunner

from rivermark.cli.main import app
from simulator.readings.demo import LENGTH, land
from simulator.readings.world import SensorWorld


def test_the_scene_lands_each_input_once(tmp_path: Path) -> None:
    first, again = land(tmp_path), land(tmp_path)

    assert [found.new_files for found in first] == [found.files for found in first]
    assert [found.new_files for found in again] == [0] * 8
    [sensors] = [found for found in first if "sensors" in found.what]
    sent = SensorWorld().sensors * LENGTH.total_seconds()
    assert 0.97 * sent < sensors.rows < sent * 1.01  # two in a hundred are lost, one comes twice


def test_a_world_that_cannot_be_is_refused(tmp_path: Path) -> None:
    arguments = ["sensors", "--sensors", "100", "--period", "0.01"]

    result = CliRunner().invoke(app, [*arguments, "--home", str(tmp_path)])

    assert result.exit_code == 1
    assert "at least one sensor" in result.stderr
