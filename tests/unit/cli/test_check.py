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
from tests.oracles.cafe import orders, sales
from tests.unit.cli.conftest import Entry, Run


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
    monkeypatch.setattr("rivermark.runtime.preflight.suites.check_as_it_is", lambda *_: None)


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
    monkeypatch.setattr("rivermark.runtime.preflight.suites.check_as_it_is", refuse)
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
    assert "$(BIN)/rivermark check\n" in make
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
