"""Streams as a component of `dg`, in a project of somebody's own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import dagster as dg
import pytest

from rivermark.dagster.component import StreamsComponent
from rivermark.model.errors import DeclarationError

pytestmark = pytest.mark.platform

PROJECT = {
    "pyproject.toml": """
        [project]
        name = "mine"
        version = "1"
        [tool.dg]
        directory_type = "project"
        [tool.dg.project]
        root_module = "mine"
    """,
    "mine/__init__.py": "",
    "mine/definitions.py": """
        from pathlib import Path
        import dagster as dg
        defs = dg.load_from_defs_folder(path_within_project=Path(__file__).parent)
    """,
    "mine/defs/__init__.py": "",
    "mine/defs/report.py": """
        import dagster as dg

        @dg.asset(deps=[dg.AssetKey(["streams", "taxi", "hourly"])])
        def report() -> None: ...
    """,
    "mine/defs/streams/defs.yaml": """
        type: rivermark.dagster.component.StreamsComponent
        attributes:
          topology: tests.platform.small_topology:SMALL
          prefix: streams
          parts: [checks, jobs, sensors]
          settings: {home: elsewhere}
    """,
}
LISTED = """
import json
from mine.definitions import defs
repository, graph = defs.get_repository_def(), defs.resolve_asset_graph()
print(json.dumps({
    "keys": sorted(key.to_user_string() for key in graph.get_all_asset_keys()),
    "sensors": [each.name for each in repository.sensor_defs],
    "schedules": [each.name for each in repository.schedule_defs],
    "home": str(defs.resources["rivermark_settings"].settings().home),
}))
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in PROJECT.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(dedent(text).lstrip())
    return tmp_path


def run(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    root = Path(__file__).parents[2]
    bin_folder = Path(sys.executable).parent
    return subprocess.run(
        [sys.executable, "-W", "ignore", *command],
        cwd=folder,
        env=os.environ
        | {
            "PYTHONPATH": f"{folder}{os.pathsep}{root}",
            "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}",
        },
        capture_output=True,
        text=True,
        check=False,
    )


def test_defs_yaml_brings_streams_into_a_project(project: Path) -> None:
    done = run(project, "-c", LISTED)
    assert done.returncode == 0, done.stderr
    listed = json.loads(done.stdout.splitlines()[-1])

    assert {"streams/taxi/hourly", "report"} <= {*listed["keys"]}
    assert all(key == "report" or key.startswith("streams/") for key in listed["keys"])
    assert "streams_restart_streams" in listed["sensors"]
    assert listed["schedules"] == []
    assert Path(listed["home"]).name == "elsewhere"


@pytest.mark.long
@pytest.mark.parametrize("what", ["yaml", "defs"])
def test_dg_checks_it(project: Path, what: str) -> None:
    done = run(project, "-m", "dagster_dg_cli.cli", "check", what)

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("named", ["tests.platform.small_topology:OTHER", "json:dumps", "nowhere"])
def test_a_name_that_is_no_topology_is_told(named: str) -> None:
    component = StreamsComponent(topology=named)

    with pytest.raises(DeclarationError, match=f"topology '{named}' in .*; (write|name) "):
        component.build_defs(dg.ComponentTree.for_test().load_context)
