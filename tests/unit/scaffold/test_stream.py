"""`rivermark new stream`: the module that is proposed, and its line in the list of all streams."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rivermark.cli.main import app
from rivermark.scaffold.project import write_project
from rivermark.scaffold.registration import registered

ROOT = Path(__file__).parents[3]
REFUNDS = """refund id;order_id;refunded_at;amount;reason
0001;7;2026-03-02 09:00:00;1,90;cold
0002;8;2026-03-02 08:30:00;3,20;
"""
LOOKUP = "supplier_id,city\n1,Rome\n2,Oslo\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_project(tmp_path / "cafes")
    monkeypatch.chdir(tmp_path / "cafes")
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "refunds.csv").write_text(REFUNDS)
    (tmp_path / "suppliers.csv").write_text(LOOKUP)
    return tmp_path / "cafes"


def new(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["new", "stream", *words])
    return result.exit_code, result.output


def in_project(folder: Path, *command: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": f"{folder}{os.pathsep}{ROOT}", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_proposal_is_written_registered_and_as_the_linters_want_it(project: Path) -> None:
    code, output = new("cafe/refunds", "--from", "../refunds.csv")
    assert code == 0, output
    assert new("shop/suppliers", "--from", "../suppliers.csv")[0] == 0

    text = (project / "assets/cafe/refunds.py").read_text()
    assert "from assets.cafe.domain import CAFE" in text
    assert 'Field("refund_id", "string", names=("refund id",), required=True)' in text
    assert "readers.decimal(12, 2, decimal_comma=True)" in text
    assert 'kind="lookup"' in (project / "assets/shop/suppliers.py").read_text()
    in_project(project, "ruff", "check", ".")
    in_project(project, "ruff", "format", "--check", ".")
    listed = "from assets.topology import TOPOLOGY as t; print([s.name for s in t.streams])"
    (project / "listed.py").write_text(listed)
    assert "'cafe/refunds', 'shop/suppliers'" in in_project(project, "listed")


def test_a_proposal_may_be_printed(project: Path) -> None:
    before = sorted(project.rglob("*"))

    code, output = new("cafe/refunds", "--from", "../refunds.csv", "--print")

    assert code == 0
    compile(output, "printed", "exec")
    assert "REFUNDS: Final = CAFE.ingest(" in output
    assert sorted(project.rglob("*")) == before


def test_a_proposal_as_a_document(project: Path) -> None:
    code, output = new("cafe/refunds", "--from", "../refunds.csv", "--json")

    told = json.loads(output)
    assert code == 0
    assert told["keys"] == ["refund_id"]
    assert told["event_time"] == "refunded_at"
    assert told["registered"] is True
    assert told["file"].endswith("assets/cafe/refunds.py")


@pytest.mark.parametrize(
    ("name", "sample", "told"),
    [
        ("refunds", "../refunds.csv", "lower case words"),
        ("cafe/import", "../refunds.csv", "is a word of Python"),
        ("cafe/orders", "../refunds.csv", "is there already"),
        ("cafe/orders/eu", "../refunds.csv", "is a module"),
        ("cafe/refunds", "../none.csv", "is not there"),
        ("cafe/words", "../words.csv", "no column that is a time"),
    ],
)
def test_what_cannot_be_proposed_is_refused(
    project: Path, name: str, sample: str, told: str
) -> None:
    (project.parent / "words.csv").write_text("word\nred\n")
    before = (project / "assets/topology.py").read_text()

    code, output = new(name, "--from", sample)

    assert code in (1, 2), output
    assert re.search(told, " ".join(output.split())), output
    assert (project / "assets/topology.py").read_text() == before


def test_a_folder_that_is_no_project_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "refunds.csv").write_text(REFUNDS)
    monkeypatch.chdir(tmp_path)

    code, output = new("cafe/refunds", "--from", "refunds.csv")

    # This repository is installed in the environment of the tests, and its streams are elsewhere.
    assert code == 2
    assert "in the project's own folder" in " ".join(output.split())


ONE_LINE = """from assets.a.x import X
from other import Y
TOPOLOGY = Topology([X, *Y])
"""
LINES = """import a
T = Topology(
    [
        a.X
    ]
)
"""


def test_a_stream_is_added_to_the_list() -> None:
    assert registered(ONE_LINE, "assets.b.z", "Z") == (
        "from assets.a.x import X\nfrom assets.b.z import Z\nfrom other import Y\n"
        "TOPOLOGY = Topology([X, *Y, Z])\n"
    )
    added = registered(LINES, "assets.b.z", "Z")
    assert added == LINES.replace("import a\n", "import a\nfrom assets.b.z import Z\n").replace(
        "a.X\n", "a.X,\n        Z,\n"
    )


@pytest.mark.parametrize("listed", ["a.ALL", "[]", "[a.X]) or Topology([a.Y]"])
def test_a_list_that_is_elsewhere_is_left_alone(listed: str) -> None:
    assert registered(f"import a\nT = Topology({listed})\n", "assets.b.z", "Z") is None
