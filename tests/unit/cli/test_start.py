"""How the console starts: each command in a process of its own, and none waits for what it needs
not.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from assets.taxi.ingest import FARE_EVENTS, RIDE_EVENTS
from rivermark.cli.main import app
from rivermark.ingest.split_outcomes import INGEST_FILES
from rivermark.ingest.watermark import Progress
from rivermark.lake.schema import create_table
from rivermark.runtime.supervision.progress_log import STREAM_PROGRESS
from rivermark.settings import Settings
from tests.oracles.shop import append
from tests.unit.cli.conftest import NOON
from tests.unit.conftest import Put
from tests.unit.docs.test_console_page import commands as all_commands

PAGE = Path(__file__).parents[3] / "docs" / "operations" / "console.md"
WITH_SPARK = Path(__file__).parents[2] / "spark" / "cli" / "test_own_processes.py"
HEAVY = ("pandas", "pyspark", "dagster", "great_expectations", "pyarrow", "deltalake", "duckdb")

FORKS = """
import json, os, sys
# What all commands would import anew. No command, nor anything that one does, comes before another.
import assets.topology, deltalake, duckdb, pydantic_settings, rich.table, typer
for arguments in json.loads(sys.argv[1]):
    sys.stdout.flush()
    child = os.fork()
    if not child:
        output = os.open("out.txt", os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
        os.dup2(output, 1)
        errors = os.open("err.txt", os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
        os.dup2(errors, 2)
        code = 70
        try:
            from rivermark.cli.main import app
            app(arguments, prog_name="rivermark")
        except SystemExit as end:
            code = end.code or 0
        except BaseException:
            import traceback
            traceback.print_exc()
        sys.stdout.flush()
        os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    texts = [open(name).read() for name in ("out.txt", "err.txt")]
    print(json.dumps([code, *texts]))
"""


def run(code: str, *arguments: str, folder: Path, **environment: str) -> str:
    """The output of a fresh interpreter, with no Java to be found."""
    result = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=folder,
        env=os.environ
        | {"PYTHONPATH": os.pathsep.join(sys.path), "JAVA_HOME": "/nowhere"}
        | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return result.stdout


@pytest.fixture
def home(settings: Settings, put: Put) -> Path:
    """The home of a lake in which an ingest has read a file of one row."""
    row = {"ride_id": 1, "event_time": NOON, "_file": "a.json", "_row": 1, "_ingest_batch": 0}
    raw = {name: row[name] for name in row if name.startswith("_")}
    append(settings, FARE_EVENTS.raw, [raw], clock=Progress(NOON).to_json(), batch=0)
    put(FARE_EVENTS.admitted, row)
    stream = {"stream": FARE_EVENTS.name}
    file = {"file": "a.json", "path": "/l/a.json", "ingest_batch": 0, "rows": 1, "admitted": 1}
    put(INGEST_FILES, {**stream, **file, "late": 0, "quarantined": 0})
    for table in RIDE_EVENTS.tables:
        create_table(settings.lake(), table)  # Of a run that found no file.
    put(STREAM_PROGRESS, {**stream, "generation": 0, "rows_in": 1, "counters": {"fares": 1}})
    return settings.home


@pytest.mark.parametrize(
    ("arguments", "slow"),
    [
        (["--help"], HEAVY),
        # The streams are declared with Spark's types, and the lake is read by delta-rs, Arrow and
        # DuckDB, but not by Arrow's datasets, which import pandas.
        (
            ["status"],
            (
                *("pandas", "dagster", "great_expectations", "matplotlib", "jinja2", "yaml"),
                # What runs and repairs streams, and what draws pages.
                *("rivermark.backfill", "rivermark.quality.gx", "rivermark.runtime.spark"),
                *("rivermark.monitor.dashboard", "rivermark.html"),
            ),
        ),
    ],
)
def test_a_start_imports_nothing_that_is_slow(
    arguments: list[str], slow: tuple[str, ...], home: Path
) -> None:
    code = "\n".join(
        (
            "import sys",
            "from rivermark.cli.main import app",
            "try:",
            f"    app({arguments!r}, prog_name='rivermark')",
            "except SystemExit:",
            "    pass",
            f"print(sorted(set(sys.modules) & {set(slow)!r}))",
        )
    )

    assert run(code, folder=home, RIVERMARK_HOME=str(home)).splitlines()[-1] == "[]"


def test_completion_knows_streams_tables_and_groups() -> None:
    def offered(words: str, place: int) -> list[str]:
        environment = {
            "_RIVERMARK_COMPLETE": "complete_bash",
            "COMP_WORDS": words,
            "COMP_CWORD": str(place),
        }
        result = CliRunner().invoke(app, [], env=environment, prog_name="rivermark")
        return result.stdout.split()

    assert offered("rivermark stat", 1) == ["status", "state"]
    assert "taxi/long_rides" in offered("rivermark state show taxi/l", 3)
    assert "taxi_events" in offered("rivermark status --group taxi", 3)
    assert "taxi/fare_events_quarantine" in offered("rivermark show taxi/fare", 2)


NAMED_BY_DATA = ("rows", "metrics", "downstream", "options")
"""Fields that hold objects whose own fields are those of tables, of processes or of others."""


def fields(value: Any) -> set[str]:
    """The names of the fields of a document, at every depth."""
    if isinstance(value, list):
        return {name for each in value for name in fields(each)}
    if not isinstance(value, dict):
        return set()
    below = {each for name in value if name not in NAMED_BY_DATA for each in fields(value[name])}
    return {*value, *below}


def documented(command: str) -> set[str]:
    """The words below `JSON:` in the help of a command, as its page has them."""
    for words in (command.split()[:2], command.split()[:1]):
        _, found, section = PAGE.read_text().partition(f"### rivermark {' '.join(words)}\n")
        if found:
            return set(re.findall(r"\w+", section.split("JSON:")[1].split("Examples:")[0]))
    raise AssertionError(f"{command} is not on the page")


COMMANDS: list[tuple[str, int, str]] = [
    ("status", 0, "never ran"),
    ("status --group taxi_events --json", 0, '"streams"'),
    ("show taxi/fare_events --json", 0, '"rows_total": 1'),
    ("files --group taxi_events --json", 0, '"a.json"'),
    ('sql FROM"taxi/fare_events" --json', 0, '"ride_id"'),
    ("checks taxi/fare_events --no-suites --json", 0, '"held"'),
    ("expectations taxi/fare_events --json", 0, "expect_column_values_to_not_be_null"),
    ("expectations taxi/fare_events_raw", 1, "'taxi/fare_events_raw' has no suite"),
    ("dashboard --json", 0, '"page"'),
    ("notify", 1, "no receiver of notices"),
    ("metrics --group taxi_events --json", 0, '"rivermark_rows_in_total"'),
    ("metrics --rules", 0, "RivermarkStreamDead"),
    ("pause --group taxi_events --dry-run", 0, "would be paused"),
    ("pause taxi_events --json", 0, '"paused"'),
    ("resume taxi_events readings", 0, "should run"),
    ("run --group taxi_events --dry-run", 0, "would run"),
    ("dead-letters list", 0, "no"),
    ("dead-letters show --group fraud", 1, "no stream of fraud keeps dead letters"),
    ("dead-letters replay taxi/long_rides --all --dry-run", 1, "keeps no dead letters"),
    ("dead-letters send --group fraud", 0, "no row waits to be delivered"),
    ("reprocess --list --json", 0, "[]"),
    ("reprocess taxi/driver_tips --from 2020-01-01 --dry-run", 1, "rivermark: "),
    ("merge-late --group taxi_events --dry-run --json", 0, '"days": []'),
    ("erase driver_id=1 --dry-run --json", 0, '"places"'),
    ("retake taxi/fare_events a.json --dry-run --json", 0, "a.json"),
    ("reset taxi/driver_tips --dry-run --json", 0, "would get new checkpoints"),
    ("accept --group taxi_events --dry-run --json", 0, '"accepted": null'),
    ("accept-loss --group taxi_events --dry-run --json", 0, '"accepted": false'),
    ("savepoint take --group taxi_events --dry-run", 1, "has finished no batch"),
    ("rescale taxi/driver_tips --partitions 8 --dry-run", 1, "has finished no batch"),
    ("upgrade --group taxi_events --dry-run", 1, "no Java was found in JAVA_HOME"),
    ("manifest --json", 0, '"streams": {}'),
    ("savepoint list --json", 0, '"savepoints": []'),
    ("savepoint describe taxi/driver_tips latest", 1, "has no savepoint"),
    ("savepoint verify taxi/driver_tips latest", 1, "has no savepoint"),
    ("savepoint delete taxi/driver_tips latest --dry-run", 1, "has no savepoint"),
    ("savepoint resume taxi/driver_tips latest --dry-run", 1, "has no savepoint"),
    ("fork make taxi/driver_tips latest --as faster --dry-run", 1, "has no savepoint"),
    ("fork taxi/driver_tips latest --as faster --dry-run", 1, "has no savepoint"),
    ("fork list", 0, "there are no forks"),
    ("fork run faster --dry-run", 2, "no fork is named"),
    ("fork compare faster", 2, "no fork is named"),
    ("fork promote faster --dry-run", 2, "no fork is named"),
    ("fork drop faster --dry-run", 2, "no fork is named"),
    ("upkeep --group taxi_events --dry-run --json", 0, '"dry_run": true'),
    ("fsck --group taxi_events --quick --json", 0, '"faults": 0'),
    ("fsck --repair --dry-run", 0, "0 faults"),
    ("replay-ingest taxi/fare_events --from 2020-01-01", 1, "does not exist yet"),
    ("state show taxi/long_rides", 1, "no Java was found in JAVA_HOME"),
    ("verify --group fraud --json", 0, '"skipped"'),
    ("accounts --for 0", 0, "rows in"),
    ("drip --for 0", 0, "to continue it"),
    ("sensors --for 0", 0, "rows in"),
    ("visitors --for 0", 0, "rows in"),
    ("replay nothing.csv", 2, "does not exist"),
    ("setup", 1, "no Java was found in JAVA_HOME"),
    ("new project my-platform", 2, "write a Python identifier"),
    ("new stream shop/refunds --from nothing.csv", 2, "nothing.csv is not there"),
    ("status shop/nothing", 2, "no stream is named"),
    ("reset", 2, "no stream was named"),
    ("upkeep --no-such", 2, "No such option"),
]


def test_every_command_runs_in_a_process_of_its_own_somewhere() -> None:
    tried = [f"{command} " for command, _, _ in COMMANDS]
    tried += re.findall(r'rivermark(?:\.json)?\(f?"(.+?)"', WITH_SPARK.read_text())
    # The tour of the README begins with the one (tests/stories/test_tour.py), tests with the other.
    tried += ["demo ", "check "]

    names = [name for _, name, _ in all_commands()]
    assert [name for name in names if not any(t.startswith(f"{name} ") for t in tried)] == []


@pytest.mark.parametrize(
    "commands",
    [
        pytest.param(COMMANDS[::8], id="some"),
        pytest.param(COMMANDS, marks=pytest.mark.long, id="all"),
    ],
)
def test_every_command_works_in_a_process_of_its_own(
    home: Path, commands: list[tuple[str, int, str]]
) -> None:
    arguments = json.dumps([command.split() for command, _, _ in commands])

    output = run(FORKS, arguments, folder=home, RIVERMARK_HOME=str(home))

    results = [json.loads(line) for line in output.splitlines()]
    for (command, code, text), (ended, out, err) in zip(commands, results, strict=True):
        assert ended == code, (command, out, err)
        assert text in out + err, (command, out, err)
        assert "Traceback" not in err, (command, err)
        # The document of `expectations` is one of Great Expectations.
        if "--json" in command and code == 0 and not command.startswith("expectations"):
            assert fields(json.loads(out)) <= documented(command), command
