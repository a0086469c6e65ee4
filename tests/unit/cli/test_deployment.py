import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from rivermark import expect
from rivermark.cli import deployment
from rivermark.cli.deployment import settings_for, topology
from rivermark.cli.main import Commands
from rivermark.model.errors import RivermarkError
from tests.unit.cli.conftest import Entry


def test_streams_are_found_from_any_folder_without_an_engine_and_great_expectations(
    tmp_path: Path,
) -> None:
    ask = (
        "import sys; from rivermark.cli.deployment import topology; print(len(topology().streams));"
        "from pyspark import SparkContext; assert SparkContext._active_spark_context is None;"
        "assert 'great_expectations' not in sys.modules; assert 'dagster' not in sys.modules"
    )
    found = subprocess.run(
        [sys.executable, "-P", "-c", ask], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    assert int(found.stdout) == len(topology().streams) > 20


def test_commands_are_imported_without_what_only_queries_need() -> None:
    slow = "{'pandas', 'matplotlib', 'rivermark.process.spark', 'rivermark.runtime.query.base'}"
    modules = ",".join(sorted({each.target.partition(":")[0] for each in Commands.declared}))
    ask = f"import sys, {modules}; print(sorted({slow} & set(sys.modules)))"
    imported = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True)

    assert (imported.returncode, imported.stdout.strip()) == (0, "[]")


@pytest.mark.parametrize(
    ("entries", "complaint"),
    [
        ([], "no project declares its streams"),
        (
            [Entry("default", AttributeError("expect has no 'betwen'", name="betwen", obj=expect))],
            "cannot be imported: expect has no 'betwen'; did you mean 'between'?",
        ),
        ([Entry("default", ImportError("no module named 'shop'"))], "cannot be imported: no modul"),
        ([Entry("default", {"shop": 1})], "is not a Topology but dict"),
        ([Entry("default", RivermarkError("two streams are named 'a/b'"))], "two streams are"),
    ],
)
def test_a_deployment_that_is_not_there_is_named(
    entries: list[Entry], complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deployment, "entry_points", lambda **_: entries)

    with pytest.raises(RivermarkError, match=complaint):
        topology()


def test_a_home_moves_lake_landing_and_state_together(tmp_path: Path) -> None:
    settings = settings_for(tmp_path)

    places = (settings.lake_root, settings.landing_root, str(settings.state))
    assert places == tuple(str(tmp_path / name) for name in ("lake", "landing", "state"))


def test_a_setting_that_cannot_be_is_named_with_its_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RIVERMARK_DRIVER_MEMORY", "much")

    with pytest.raises(RivermarkError, match=r"RIVERMARK_DRIVER_MEMORY.*not 'much'"):
        settings_for(None)


@pytest.mark.parametrize("address", ["s3://lake/x", "s3a://lake/x", "file:///lake/x"])
@pytest.mark.parametrize("setting", ["home", "state_root", "query_folder"])
def test_an_address_is_refused_where_a_folder_must_lie_on_a_disk(
    setting: str, address: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    variable = f"RIVERMARK_{setting.upper()}"
    monkeypatch.setenv(variable, address)

    with pytest.raises(RivermarkError, match=rf"{variable}.*is an address.*must lie on a disk"):
        settings_for(None)
    assert list(tmp_path.iterdir()) == []


def test_lake_and_landing_may_be_addresses(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RIVERMARK_LAKE_ROOT", "s3://bucket/lake")
    monkeypatch.setenv("RIVERMARK_LANDING_ROOT", "s3://bucket/landing")

    settings = settings_for(tmp_path)

    assert settings.lake_root == "s3://bucket/lake"
    assert settings.state == tmp_path / "state"


@pytest.mark.parametrize("name", ["h%20x", "h[1]", "h^x", "h|x", "h\\x", "h\tx"])
def test_n012_a_home_that_delta_cannot_open_is_refused_in_plain_words(
    name: str, tmp_path: Path
) -> None:
    with pytest.raises(RivermarkError, match=r"the lake cannot lie in .*choose another home"):
        settings_for(tmp_path / name)


@pytest.mark.parametrize("odd", [*" ü#+,{}?='~!@$&();:`<>*\"日", "%", "%zz"])
def test_n012_any_other_home_is_one(odd: str, tmp_path: Path) -> None:
    path = settings_for(tmp_path / f"h{odd}x").lake().path("shop/orders")
    write_deltalake(path, pa.table({"n": [1]}))

    assert Path(path, "_delta_log").is_dir()
    assert DeltaTable(path).to_pyarrow_dataset().count_rows() == 1


def test_a_project_that_is_not_installed_names_its_topology_in_its_own_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(deployment, "entry_points", lambda **_: [])
    streams = "from rivermark import Topology\nTOPOLOGY = Topology([])\n"
    (tmp_path / "somebodys_streams.py").write_text(streams)
    file = tmp_path / "pyproject.toml"
    file.write_text('[tool.rivermark]\ntopology = "somebodys_streams:TOPOLOGY"\n')
    (tmp_path / "below").mkdir()

    monkeypatch.chdir(tmp_path / "below")
    with pytest.raises(RivermarkError, match="no project declares its streams here"):
        deployment.topology()
    monkeypatch.chdir(tmp_path)
    assert deployment.topology().streams == ()
    file.write_text("[tool")
    with pytest.raises(RivermarkError, match=r"pyproject\.toml is not valid TOML"):
        deployment.topology()
