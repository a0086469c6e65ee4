"""`rivermark check`: what is refused when it is declared, all of it; what Spark finds, as it is."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from rivermark import Suite, Topology
from rivermark.cli import deployment
from rivermark.model.errors import DeclarationError
from rivermark.model.question import OfGreatExpectations
from rivermark.model.rule import SuiteRule
from rivermark.quality import from_great_expectations
from rivermark.quality.errors import SuiteDoesNotFit
from rivermark.settings import Settings
from tests.oracles.cafe import orders, sales
from tests.unit.cli.conftest import Entry, Run
from tests.unit.runtime.savepoint.test_manifest import ran


class Declaring(Entry):
    """An entry point that makes its declarations when it is loaded, as an import does."""

    def load(self) -> object:
        return Topology([orders(lateness=300), sales(kind="batch", owners=("me",))])


@pytest.fixture(autouse=True)
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def engine(*_: object) -> Iterator[None]:
        yield None

    def faults(stream: Any, _: object) -> list[DeclarationError]:
        return [DeclarationError("its build fails").at("orders.py, line 3")] * stream.name.count(
            "y"
        )

    monkeypatch.setattr("rivermark.cli.check.engine", engine)
    monkeypatch.setattr("rivermark.cli.check.launch_ahead", lambda *_: None)
    monkeypatch.setattr("rivermark.runtime.preflight.faults_of", faults)
    # Great Expectations takes seconds to import: tests/spark/quality asks it.
    monkeypatch.setattr("rivermark.runtime.preflight.faults.check_as_it_is", lambda *_: None)


def test_all_declarations_that_are_refused_are_reported(
    rivermark: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deployment, "entry_points", lambda **_: [Declaring("default", None)])

    result = rivermark("check")

    assert result.exit_code == 1
    first, second = result.stdout.splitlines()
    assert first.startswith("stream 'cafe/orders': `lateness` is 300; expected a duration such as")
    assert second.startswith("stream 'cafe/sales': `kind` is the text 'batch'; expected 'append'")
    assert first.count(".py, line ") == second.count(".py, line ") == 1
    assert result.stderr == ""


def test_an_error_that_ends_the_import_is_told_beside_the_faults_before_it(
    rivermark: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Ending(Entry):
        def load(self) -> object:
            orders(lateness=300)
            raise ImportError("no module named 'beans'")

    monkeypatch.setattr(deployment, "entry_points", lambda **_: [Ending("default", None)])

    result = rivermark("check")

    assert result.exit_code == 1
    fault, ended = result.stdout.splitlines()
    assert fault.startswith("stream 'cafe/orders': `lateness` is 300;")
    assert "shop.default:FOUND cannot be imported: no module named 'beans' (" in ended
    assert ended.endswith("; it may follow from the faults before it")


def test_what_only_great_expectations_evaluates_is_no_fault_and_has_no_rows_to_show(
    rivermark: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    mean = {"type": "expect_column_mean_to_be_between", "kwargs": {"column": "sales"}}
    named = {"expectations": [{**mean, "description": "usual sales"}]}
    declared = Topology([orders(), sales(suite=Suite(expectations=from_great_expectations(named)))])
    monkeypatch.setattr(deployment, "entry_points", lambda **_: [Entry("default", declared)])

    checked = rivermark("check")
    shown = rivermark("show", "cafe/sales", "--bad", "usual sales")

    assert (checked.stdout.strip(), checked.exit_code) == ("no fault in 2 streams", 0)
    assert shown.exit_code == 1
    assert "suite 'cafe/sales' has no rule 'usual sales' about rows" in shown.stderr


def test_what_great_expectations_does_not_know_is_reported_with_its_suite(
    rivermark: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(rule: SuiteRule, question: OfGreatExpectations) -> None:
        raise SuiteDoesNotFit(f"no '{question.type}' is known", rule=rule.name)

    custom = {"expectations": [{"type": "expect_good_coffee", "kwargs": {"column": "sales"}}]}
    suite = Suite(expectations=from_great_expectations(custom))
    monkeypatch.setattr("rivermark.runtime.preflight.faults.check_as_it_is", refuse)
    declared = Topology([orders(), sales(suite=suite)])
    monkeypatch.setattr(deployment, "entry_points", lambda **_: [Entry("default", declared)])

    result = rivermark("check")

    assert result.exit_code == 1
    [fault] = result.stdout.splitlines()
    assert fault.startswith(
        "rule 'good coffee: column sales' of the suite of 'cafe/sales' cannot be evaluated: "
        "no 'expect_good_coffee' is known ("
    )
    assert "test_check.py, line " in fault


def test_make_test_and_every_workflow_begin_with_it() -> None:
    root = Path(__file__).parents[3]
    make = (root / "Makefile").read_text()
    workflows = [path.read_text() for path in (root / ".github" / "workflows").glob("*.yml")]

    assert "\ntest: check " in make
    assert (
        "$(BIN)/rivermark check $(if $(wildcard manifest.json),--against manifest.json)\n" in make
    )
    assert workflows
    assert all("run: make check\n" in text for text in workflows)


def test_what_spark_finds_is_reported_once_and_ends_with_one(
    rivermark: Run, shop: Topology
) -> None:
    result = rivermark("check", "--json")
    assert (result.exit_code, json.loads(result.stdout)) == (
        1,
        {"streams": 3, "faults": ["its build fails (orders.py, line 3)"]},
    )
    result = rivermark("check", "shop/orders")
    assert (result.exit_code, result.stdout) == (0, "no fault in 1 stream\n")


def test_what_the_state_of_a_manifest_does_not_fit_is_refused_before_it_goes_out(
    rivermark: Run,
    shop: Topology,
    settings: Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rivermark.runtime.preflight.faults_of", lambda *_: [])
    ran(settings)
    file = tmp_path / "manifest.json"

    written = rivermark("manifest", "--output", str(file))
    assert written.stdout.endswith("manifest.json: the state of 1 streams; 2 never ran\n")
    good = rivermark("check", "shop/hourly", "--against", str(file))
    assert (good.exit_code, good.stdout) == (0, "no fault in 1 stream; the state of 1 fits\n")
    file.write_text(file.read_text().replace(r"\"long\"", r"\"string\""))
    bad = rivermark("check", "shop/hourly", "--against", str(file))

    assert bad.exit_code == 1
    assert bad.stdout.startswith("stream 'shop/hourly' is incompatible: table 'shop/hourly'")
    assert "orders: string on disk, bigint declared" in bad.stdout
    assert bad.stdout.endswith("rivermark reset shop/hourly\n")


PARTS = """
from datetime import date, timedelta
from rivermark import Domain, Field, Ingest, Stream, Table, Topology
from rivermark.sources import FileSource
from tests.oracles.cafe import contract, orders, sales, sales_table
"""


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        ("Topology([orders(lateness=300), orders(lateness=300)])", "`lateness` is 300"),
        (
            "O = orders(lateness=300)\nTopology([O, sales(reads=(O.admitted,))])",
            "`lateness` is 300",
        ),
        ("O = orders(lateness=300)\nT = [O]\nTopology(T + [O.missing])", "`lateness` is 300"),
        ("O = orders(lateness=300)\nN = O.contract.fields[99].type\nTopology([])", "`lateness`"),
        ("C = contract(rules=5)\nO = orders(contract=C)\nTopology([O, O])", "`rules` is 5"),
        ("C = contract(rules=5)\nX = {}[C]\nTopology([])", "`rules` is 5"),
        (
            "O = orders(lateness=300)\nT = Table(name=O.name, schema=3, description=O.name)\n"
            "Topology([O, T])",
            "`lateness` is 300",
        ),
        (
            "D = Domain(group=3, first_day=date(2024, 1, 1))\n"
            "O = D.ingest(FileSource('a'), contract())\nTopology([O])",
            "`group` is 3",
        ),
    ],
)
def test_r18_one_fault_is_one_sentence(
    rivermark: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: str, fault: str
) -> None:
    """What is made of a faulty declaration, or fails by it, is left out."""
    file = tmp_path / "declares.py"
    file.write_text(f"{PARTS}\n{code.replace('Topology(', 'found = Topology(')}\n")

    class Importing(Entry):
        def load(self) -> object:
            scope: dict[str, Any] = {"__name__": "declares"}
            exec(compile(file.read_text(), str(file), "exec"), scope)  # noqa: S102 - a test's own
            return scope["found"]

    monkeypatch.setattr(deployment, "entry_points", lambda **_: [Importing("default", None)])

    result = rivermark("check")

    assert result.exit_code == 1
    sentences = result.stdout.splitlines()
    assert len({sentence.partition(" (")[0] for sentence in sentences}) == 1, sentences
    assert fault in sentences[0]


def test_r18_a_second_fault_that_does_not_depend_on_the_first_is_told(
    rivermark: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Both(Entry):
        def load(self) -> object:
            first = orders(lateness=300)
            other = sales(owners=3)
            return Topology([first, other])

    monkeypatch.setattr(deployment, "entry_points", lambda **_: [Both("default", None)])

    sentences = rivermark("check").stdout.splitlines()
    assert len(sentences) == 2
    assert "`lateness`" in sentences[0]
    assert "`owners`" in sentences[1]
