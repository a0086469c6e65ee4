"""A repository of the usual shape, written from the templates beside this module.

A template is the file as it will be, but for `my_platform`, which becomes the project's name, and
for blocks between `[if WORD]` and `[end]`, which stay where the option was given. In names of files
`dot_` stands for a dot, and `.tmpl` behind a Python file keeps installers from compiling it.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Collection
from importlib.metadata import version
from pathlib import Path
from typing import Final

from rivermark.model.errors import WrongUse

TEMPLATES: Final = Path(__file__).with_name("templates")
NAME: Final = "my_platform"
OWN: Final = frozenset({"assets", "jobs", "platform_defs", "resources", "rivermark", "tests"})
"""Names of packages that the project has inside, or imports."""
BLOCK: Final = re.compile(
    r"^[^\n]*\[if (not )?(\w+)\][^\n]*\n(.*?)^[^\n]*\[end\][^\n]*\n", re.M | re.S
)


def write_project(folder: Path, options: Collection[str] = ()) -> list[Path]:
    """Write a project into a folder that is empty or not there; returns its files.

    The folder's name is the project's. `options` are words of the templates' blocks.

    Raises:
        WrongUse: The name is none for a Python package, or the folder is not empty.
    """
    name = folder.resolve().name
    if not name.isidentifier() or not name.isascii() or keyword.iskeyword(name):
        raise WrongUse(
            f"{name!r} cannot be a project's name: write a Python identifier, letters, digits and "
            "'_', as in my_platform"
        )
    if name.lower() in OWN:
        raise WrongUse(
            f"{name!r} cannot be a project's name: a package that it needs has that name"
        )
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise WrongUse(f"{folder} is not an empty folder: give another name, or empty it first")
    written = []
    for template in sorted((TEMPLATES / "project").rglob("*")):
        if template.is_dir():
            continue
        inside = template.relative_to(TEMPLATES / "project")
        parts = [re.sub(r"^dot_", ".", part) for part in inside.parts]
        file = folder.joinpath(*parts[:-1], parts[-1].removesuffix(".tmpl"))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(filled(template.read_text(), name, options))
        written.append(file)
    return written


def filled(text: str, name: str, options: Collection[str]) -> str:
    """The text of a template for a project of that name."""

    def chosen(block: re.Match[str]) -> str:
        return block[3] if (block[2] in options) is not bool(block[1]) else ""

    ours = BLOCK.sub(chosen, text).replace("RIVERMARK_VERSION", version("rivermark"))
    return ours.replace(NAME, name)
