"""The scenes of the demo give every stream of the deployment its input."""

from __future__ import annotations

import tomllib
from importlib import import_module
from pathlib import Path

from assets.fraud.ingest import WEBHOOK
from assets.topology import TOPOLOGY
from rivermark.cli.demo import with_input
from rivermark.cli.demo_scene import SCENES, Scene
from rivermark.settings import Settings
from simulator.fraud.demo import serve

ROOT = Path(__file__).parents[3]


def declared_scenes() -> dict[str, Scene]:
    """Those of the project file: what is installed may be of another commit."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = {}
    for name, value in project["entry-points"][SCENES].items():
        module, _, scene = value.partition(":")
        found[name] = getattr(import_module(module), scene)
    return found


def test_every_stream_has_input_in_the_demo(settings: Settings) -> None:
    """14 of 44 were told as 'without input' (issue 31, clause 5)."""
    landing = Path(settings.landing_root)
    scenes = declared_scenes()
    first = [each for scene in scenes.values() for each in scene.land(landing)]
    again = [each for scene in scenes.values() for each in scene.land(landing)]

    assert [s.name for s in TOPOLOGY.streams if s not in with_input(settings, TOPOLOGY)] == []
    assert all(each.rows and each.new_files == each.files for each in first)
    assert [each.new_files for each in again] == [0] * len(first)
    assert sum(each.rows for each in first) < 100_000, "the demo stays below a minute"


def test_a_scene_names_the_commands_that_come_after_it() -> None:
    scenes = declared_scenes()

    assert all(isinstance(scene, Scene) for scene in scenes.values())
    commands = [command for scene in scenes.values() for command, _ in scene.next_commands]
    assert len(commands) == len({*commands}) >= 3


def test_the_receiver_of_alerts_is_named_to_the_streams() -> None:
    with serve() as served:
        assert list(served.environment) == [WEBHOOK]
        assert served.environment[WEBHOOK].startswith("http://127.0.0.1:")
        assert served.said() == [], "nothing has arrived"
