"""Pages say what is so: links lead somewhere, paths exist, the picture of rooms is the contract."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from typer import Context
from typer.core import TyperGroup
from typer.main import get_command

from rivermark.cli.main import app

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
ROOMS = r"(?:rivermark|assets|simulator|resources|jobs|platform_defs|bench|setup|tests|docs)"
# A file or folder by its whole path; a placeholder, such as `assets/<domain>`, is none.
PATHS = re.compile(rf"`({ROOMS}/[\w./-]*)`")
NOT_YET_THERE = {
    "docs/concepts/your-own-stream.md": {"assets/shop/orders.py"},
    "docs/tutorial.md": set(
        re.findall(r"`([\w/]+\.py)`:\n\n```python", (ROOT / "docs" / "tutorial.md").read_text())
    ),
}


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    plain = [re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings]
    return {heading.replace(" ", "-") for heading in plain}


def _broken_links(page: Path) -> Iterator[str]:
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        place, _, anchor = link.partition("#")
        if "://" in link:
            continue
        target = page.parent / place if place else page
        if not target.exists() or (anchor and anchor not in _anchors(target)):
            yield link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_and_path_of_a_page_exists(page: Path) -> None:
    paths = set(PATHS.findall(page.read_text()))
    gone = {path for path in paths if not (ROOT / path).exists()}
    name = str(page.relative_to(ROOT))

    assert list(_broken_links(page)) == []
    if name == "CHANGELOG.md" or name.startswith("docs/decisions/"):
        return  # Of their day.
    assert gone - NOT_YET_THERE.get(name, set()) == set()


def test_every_page_that_code_names_exists() -> None:
    named = re.compile(r"\bdocs/[\w/-]+\.md\b")
    code = (
        file for room in ("rivermark", "assets", "setup") for file in (ROOT / room).rglob("*.py")
    )
    pages = {(file, page) for file in code for page in named.findall(file.read_text())}

    assert [f"{file}: {page}" for file, page in pages if not (ROOT / page).exists()] == []
    assert len(pages) > 10


def test_every_command_that_a_page_names_exists() -> None:
    command = get_command(app)
    assert isinstance(command, TyperGroup)
    known = set(command.list_commands(Context(command))) | set(command.commands)
    named = {
        name
        for page in PAGES
        for name in re.findall(r"(?:`|^ *)rivermark ([a-z][a-z-]+)", page.read_text(), re.MULTILINE)
    }

    assert len(named) > 10
    assert named <= known


@pytest.mark.parametrize(
    ("page", "base"), [("cases.md", "tests"), ("features-process.md", "tests/unit/process")]
)
def test_the_tests_that_a_page_names_exist(page: str, base: str) -> None:
    text = (ROOT / "docs" / "operations" / page).read_text()
    names = re.findall(r"`([\w/]*test_\w+\.py)`", text)

    assert len(names) > 50
    assert [
        name for name in names if not ((ROOT / base / name).exists() or (ROOT / name).exists())
    ] == []


def _layers() -> tuple[list[list[str]], list[list[str]]]:
    """The layers of the contracts, top first: those above the library, and its own."""
    project: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = [c for c in project["tool"]["importlinter"]["contracts"] if c["type"] == "layers"]
    above, library = (
        [re.split(r"\s*[|:]\s*", layer) for layer in contract["layers"]] for contract in contracts
    )
    return above, library


def _picture() -> str:
    """The rooms as a Mermaid flowchart, from the contracts."""
    above, library = _layers()
    lines = ["flowchart TB"]

    def level(number: int, rooms: list[str], indent: str) -> str:
        lines.append(f'{indent}subgraph layer{number}[" "]')
        lines.append(f"{indent}    direction LR")
        lines.extend(f"{indent}    {room}" for room in rooms)
        lines.append(f"{indent}end")
        return f"layer{number}"

    levels = [level(number, rooms, "    ") for number, rooms in enumerate(above)]
    lines.append("    subgraph rivermark")
    levels += [level(number, rooms, "        ") for number, rooms in enumerate(library, len(above))]
    lines.append("    end")
    lines.extend(f"    {upper} --> {lower}" for upper, lower in pairwise(levels))
    return "```mermaid\n" + "\n".join(lines) + "\n```"


def test_the_picture_of_rooms_is_the_import_contract() -> None:
    assert _picture() in (ROOT / "docs" / "architecture.md").read_text()


def test_the_architecture_page_describes_every_room() -> None:
    table = (ROOT / "docs" / "architecture.md").read_text().split("## Three journeys")[0]
    described = set(re.findall(r"`(\w+)(?:/|\.py)`", table))

    assert {room for layers in _layers() for layer in layers for room in layer} <= described


def test_the_index_of_decisions_is_complete() -> None:
    folder = ROOT / "docs" / "decisions"
    index = (folder / "README.md").read_text()
    for page in sorted(folder.glob("0*.md")):
        text = page.read_text()
        ((number, title),) = re.findall(r"^# (\d+)\. (.*)$", text, re.MULTILINE)
        (status,) = re.findall(r"^Status: (.*)$", text, re.MULTILINE)
        (date,) = re.findall(r"^Date: (\d{4}-\d\d-\d\d)$", text, re.MULTILINE)
        assert f"| {number} | [{title}]({page.name}) | {status} | {date} |" in index


def test_every_page_is_reached_from_the_index() -> None:
    reached: set[Path] = set()
    ahead = [ROOT / "docs" / "index.md"]
    while ahead:
        page = ahead.pop()
        if page in reached:
            continue
        reached.add(page)
        links = re.findall(r"\]\(([^)\s#]+\.md)", page.read_text())
        ahead += [(page.parent / link).resolve() for link in links if "://" not in link]

    assert [page for page in PAGES if page not in reached] == []
