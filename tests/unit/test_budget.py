"""How large the library may be. A limit is raised only with a reason in the commit that raises it.

A case is mended by narrowing what is accepted, with a sentence, before a module is written to
accept it. Run as a script it prints what there is:

    python tests/unit/test_budget.py
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "rivermark"
ADMISSION = "rivermark.ingest.parse.contract_parser"
"""The function that types a batch of records and applies a contract's rules to it."""
LARGE = 300
"""Lines above which a module has more than one idea."""
SMALL = 80
"""Lines below which a module with one importer belongs to that."""
PRIVATE = re.compile(r"\._j[a-z]\w*|\._sc\b|\._jvm\b")
"""Names of Spark that are not public."""
CLAUSE = re.compile(r"(What|Whether|Which|How|Where|When|Why)\b")
"""The beginning of a docstring that is a clause, and does not say what the thing is."""

EPOCH = re.compile(r"\bdate(?:time)?\(1970")
"""A definition of when time begins: `model/time.py` has it."""

LIMITS = {
    "lines": 81_827,
    "modules": 632,
    "modules above 300 lines": 9,
    "lines that the admission function imports": 5_803,
    "private names of Spark": 48,
    "docstrings that begin with a clause": 0,
    "modules that define the epoch": 1,
    "small modules with one importer": 15,
}


@cache
def _modules() -> dict[str, Path]:
    names = {}
    for path in sorted(LIBRARY.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return names


@cache
def _lines(path: Path) -> int:
    return len(path.read_text().splitlines())


def _imported(path: Path) -> Iterator[str]:
    """The library's modules that are imported along with a module, also where it only names types.

    The package of each is one of them.
    """
    modules = _modules()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module in modules:
            yield node.module
            inner = (f"{node.module}.{each.name}" for each in node.names)
            yield from (each for each in inner if each in modules)


def _closure(name: str) -> set[str]:
    seen, waiting = set(), [name]
    while waiting:
        each = waiting.pop()
        # The public names load what they name on demand.
        if each not in seen and each != "rivermark":
            seen.add(each)
            waiting += _imported(_modules()[each])
    return seen


def _first_lines() -> Iterator[str]:
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for path in _modules().values():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, documented) and (text := ast.get_docstring(node)):
                yield text.split("\n", 1)[0]


def _importers() -> dict[str, set[str]]:
    """The modules of the library, and of the packages beside it, that import each module."""
    importers: dict[str, set[str]] = {name: set() for name in _modules()}
    around = (
        path for each in ("assets", "simulator", "bench") for path in ROOT.glob(f"{each}/**/*.py")
    )
    for name, path in [*_modules().items(), *((str(path), path) for path in around)]:
        for imported in _imported(path):
            importers[imported].add(name)
    return importers


def _splinters() -> list[str]:
    """Modules with one importer, which is no package that exports their names."""
    modules, lines = _modules(), {name: _lines(path) for name, path in _modules().items()}
    return [
        f"{name}: {lines[name]} lines, for {importer}"
        for name, found in _importers().items()
        if modules[name].name != "__init__.py" and lines[name] < SMALL and len(found) == 1
        for importer in found
        if importer in modules and modules[importer].name != "__init__.py"
    ]


@cache
def _sizes() -> dict[str, int]:
    modules = _modules()
    lines = {name: _lines(path) for name, path in modules.items()}
    return {
        "lines": sum(lines.values()),
        "modules": len(modules),
        "modules above 300 lines": sum(count > LARGE for count in lines.values()),
        "lines that the admission function imports": sum(lines[n] for n in _closure(ADMISSION)),
        "private names of Spark": sum(
            len(PRIVATE.findall(path.read_text())) for path in modules.values()
        ),
        "docstrings that begin with a clause": sum(
            bool(CLAUSE.match(line)) for line in _first_lines()
        ),
        "modules that define the epoch": sum(
            bool(EPOCH.search(path.read_text())) for path in modules.values()
        ),
        "small modules with one importer": len(_splinters()),
    }


@pytest.mark.parametrize("measure", LIMITS)
def test_the_library_stays_within_its_budget(measure: str) -> None:
    assert _sizes()[measure] <= LIMITS[measure]


if __name__ == "__main__":
    for measure, size in _sizes().items():
        print(f"{measure:44}{size:>8,} of {LIMITS[measure]:,}")  # noqa: T201
    print(*_splinters(), sep="\n")  # noqa: T201
