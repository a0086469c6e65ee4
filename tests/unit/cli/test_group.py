from pathlib import Path

import pytest
import typer

from rivermark.model.topology import Topology
from tests.unit.cli.conftest import Entry, Run


def greet(name: str = "you") -> None:
    """Say hello
    to a person.

    Examples:
        rivermark greet --name Ada
    """
    typer.echo(f"hello {name}")


@pytest.mark.parametrize(
    ("command", "code", "sentence"),
    [
        ("show shop/nothing", 2, "no table is named 'shop/nothing'; there are: "),
        ("show shop/hourly", 1, "table 'shop/hourly' does not exist yet: run its stream first"),
        ("show ops/nothing", 2, "no table is named 'ops/nothing'"),
        ("show ../secrets", 2, "no table is named '../secrets'"),
        ("show ops/../../secrets", 2, "is not a table name: expected like"),
        ("show ops/x';DROP", 2, "is not a table name: expected like"),
        ("upkeep shop/nothing", 2, "no table is named 'shop/nothing'"),
        (
            "merge-late shop/hourly",
            2,
            "no row of 'shop/hourly' can be late; choose one of shop/or",
        ),
        (
            "replay-ingest shop/hourly --from 2026-03-02",
            2,
            "'shop/hourly' reads tables and admits no",
        ),
        ("replay-ingest shop/orders --from monday", 2, "'monday' is not a day"),
        ("status --group kitchen", 2, "no group is named 'kitchen'"),
        ("files", 2, "no stream was named: `rivermark status` lists them"),
        ("files --group reports", 2, "'shop/busiest' reads tables, not a source"),
    ],
)
def test_an_error_of_the_platform_is_one_sentence(
    rivermark: Run, shop: Topology, command: str, code: int, sentence: str
) -> None:
    result = rivermark(*command.split(), env={"COLUMNS": "250"})

    assert result.exit_code == code
    assert result.stdout == ""
    assert result.stderr.startswith("rivermark: ")
    assert sentence in result.stderr
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.output


@pytest.mark.parametrize("command", ["pause shop", "dashboard", "status"])
def test_a_home_that_cannot_be_written_ends_a_command_with_one_sentence(
    rivermark: Run, shop: Topology, command: str, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.touch()

    result = rivermark(*command.split(), "--home", str(file / "home"))

    assert result.exit_code == 1
    assert result.stdout == ""
    assert str(file) in result.stderr
    assert result.stderr.startswith("rivermark: ")
    assert result.stderr.endswith("(RIVERMARK_HOME, --home), or change who owns it\n")
    assert result.stderr.count("\n") == 1


def test_a_fault_of_the_program_is_not_hidden(
    rivermark: Run, shop: Topology, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("no \x1b[31mrows")

    monkeypatch.setattr("rivermark.cli.status.status_of", broken)

    error = rivermark("status").exception
    assert isinstance(error, ZeroDivisionError)
    assert str(error) == "no \\x1b[31mrows"


def test_n051_wrong_use_repeats_no_escape_sequence(rivermark: Run, shop: Topology) -> None:
    for arguments in (["files", "--\x1b[31m"], ["files", "\x1b[31m"], ["replay", "\x1b[31m.csv"]):
        result = rivermark(*arguments)
        assert result.exit_code == 2, arguments
        assert "x1b[31m" in result.stderr, arguments
        assert "\x1b" not in result.output, arguments


def test_commands_of_the_domains_stand_beside_those_of_the_console(
    rivermark: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rivermark.cli.group.entry_points", lambda **_: [Entry("greet", greet)])

    assert rivermark("greet", "--name", "Ada").stdout == "hello Ada\n"
    help_text = rivermark("--help").stdout
    assert "Say hello to a person." in help_text
    assert "status" in help_text
    own = rivermark("greet", "--help").stdout
    assert own.split("Examples:")[1].split() == ["rivermark", "greet", "--name", "Ada"]


def test_a_command_that_cannot_be_imported_is_named_and_leaves_the_others_alone(
    rivermark: Run, shop: Topology, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = [Entry("greet", ImportError("no module named 'shop'"))]
    monkeypatch.setattr("rivermark.cli.group.entry_points", lambda **_: entries)

    result = rivermark("greet")

    assert result.exit_code == 1
    assert "command 'greet' cannot be imported from shop.greet:FOUND" in result.stderr
    assert rivermark("status").exit_code == 0


def test_every_command_explains_itself_with_examples(rivermark: Run) -> None:
    own = ["demo", "run", "pause", "resume", "status", "show", "files", "reprocess", "reset"]
    for name in [*own, "drip", "replay", "sensors"]:
        result = rivermark(name, "--help")
        assert result.exit_code == 0, name
        assert f"rivermark {name}" in result.stdout.split("Examples:")[1], name


def test_a_mistyped_command_suggests_the_right_one(rivermark: Run) -> None:
    assert "'status'" in rivermark("statu").output
