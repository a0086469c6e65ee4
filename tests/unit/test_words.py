"""The words of this project's names and texts, which docs/glossary.md explains.

Every room has an allowance: how many of the old words are left in it. The allowance only shrinks.
Run as a script, with rooms or with none, it lists what is left:

    python tests/unit/test_words.py rivermark/lake assets
"""

import ast
import re
import sys
import warnings
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = (
    "rivermark",
    "assets",
    "simulator",
    "resources",
    "jobs",
    "platform_defs",
    "bench",
    "setup",
)

# As a whole name these say nothing about the value: `not_found` is fine, `found` is not.
EMPTY_NAMES = {"found", "there", "mine", "given"}
# As a word of any name.
BANNED_WORDS = {
    *("door", "aside", "told", "asked", "answer", "answers", "look", "looks", "here"),
    *("fold", "folded", "folding", "owed", "owe", "owes", "debt", "debts", "payable"),
    *("wish", "wishes", "promise", "promised", "promises", "mend", "mended", "mending"),
    *("claim", "claims", "judge", "judged", "judges", "judging", "verdict", "verdicts"),
    *("recall", "recalled", "begun"),
}
BANNED_PHRASES = re.compile(
    r"\b(nobody|whoever|for ever|anew|the door|(?:set|sets|setting) aside|fold(?:s|ed|ing)? in"
    r"|owed|owes)\b",
    re.IGNORECASE,
)

# The words that are left, by room: names on disk, and what has not been renamed yet.
ALLOWED = {
    "rivermark": 1,
    "rivermark/backfill": 12,
    "rivermark/model": 2,
    "rivermark/process": 1,
    "rivermark/runtime": 3,
    "rivermark/dagster": 1,
    "bench": 2,
    "setup": 1,
}


def _words(name: str) -> list[str]:
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def _is_banned(name: str) -> bool:
    return name in EMPTY_NAMES or not BANNED_WORDS.isdisjoint(_words(name))


def _bound_names(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield node.name
        case ast.arg():
            yield node.arg
        case ast.Name(ctx=ast.Store()):
            yield node.id
        case ast.Attribute(ctx=ast.Store()):
            yield node.attr
        case ast.alias(asname=str(alias)):
            yield alias


def _uses(path: Path) -> Iterator[tuple[int, str]]:
    """Lines and words of a module that break the rules."""
    if _is_banned(path.stem):
        yield 1, f"module {path.stem}"
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        for name in _bound_names(node):
            if _is_banned(name):
                yield node.lineno, name  # type: ignore[attr-defined]
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            for phrase in BANNED_PHRASES.findall(" ".join(node.value.split())):
                yield node.lineno, f'"{phrase}"'


def _room(path: Path) -> str:
    parts = path.relative_to(ROOT).parts
    return "/".join(parts[:2]) if parts[0] == "rivermark" and len(parts) > 2 else parts[0]


def uses_by_room() -> dict[str, list[str]]:
    """Where the old words are, as `file:line word`."""
    uses: dict[str, list[str]] = defaultdict(list)
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            uses[_room(path)] += [
                f"{path.relative_to(ROOT)}:{line} {word}" for line, word in sorted(_uses(path))
            ]
    return uses


@pytest.fixture(scope="module")
def uses() -> dict[str, list[str]]:
    return uses_by_room()


def test_no_room_has_more_old_words_than_it_had(uses: dict[str, list[str]]) -> None:
    grown = {room: places for room, places in uses.items() if len(places) > ALLOWED.get(room, 0)}
    assert not grown, "\n".join(
        [
            "words that docs/glossary.md replaces:",
            *(
                f"{room}: {len(places)}, allowed {ALLOWED.get(room, 0)}\n  " + "\n  ".join(places)
                for room, places in grown.items()
            ),
        ]
    )
    for room, allowed in ALLOWED.items():
        if len(uses[room]) < allowed:
            warnings.warn(f"{room}: lower its allowance to {len(uses[room])}", stacklevel=1)


def test_a_name_is_read_word_by_word() -> None:
    assert _is_banned("found")
    assert not _is_banned("not_found")
    assert _is_banned("FoldedDay")
    assert _is_banned("ROWS_FOLDED")
    assert not _is_banned("scaffold")


if __name__ == "__main__":
    for room, places in uses_by_room().items():
        if not sys.argv[1:] or room in sys.argv[1:]:
            heading = f"{room}: {len(places)}, allowed {ALLOWED.get(room, 0)}"
            sys.stdout.write("\n  ".join([heading, *places]) + "\n")
