"""Great Expectations in a process as Dagster makes them for runs."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]


def in_a_process_without_a_main_file(code: str) -> subprocess.CompletedProcess[str]:
    """`python -c` has no main file either."""
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=False
    )


def test_without_help_the_import_ends_the_process_as_if_all_were_well() -> None:
    """If this fails, PySpark has changed its mind and quality/gx/main_module.py may go."""
    ended = in_a_process_without_a_main_file("import great_expectations; print('imported')")

    assert ended.returncode == 0
    assert "imported" not in ended.stdout


@pytest.mark.parametrize(
    "module",
    ["pyspark.sql.connect.session", pytest.param("great_expectations", marks=pytest.mark.long)],
)
def test_with_a_main_file_it_is_imported_and_the_file_is_taken_back(module: str) -> None:
    ended = in_a_process_without_a_main_file(
        "import sys\n"
        "from rivermark.quality.gx.main_module import main_module_with_a_file\n"
        "with main_module_with_a_file():\n"
        "    try:\n"
        f"        import {module}\n"
        "    except ImportError as error:\n"
        "        assert 'great_expectations' not in str(error)\n"
        "print('imported', hasattr(sys.modules['__main__'], '__file__'))\n"
    )

    assert ended.stdout.split() == ["imported", "False"], ended.stderr
