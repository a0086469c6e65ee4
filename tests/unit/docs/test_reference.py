"""docs/reference.md is what the docstrings of the public names say.

Run as a script, it writes the page:

    PYTHONPATH=. python tests/unit/docs/test_reference.py
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from enum import Enum
from importlib import import_module
from pathlib import Path
from types import ModuleType, UnionType
from typing import Any, Final, get_origin

PAGE: Final = Path(__file__).parents[3] / "docs" / "reference.md"
MODULES: Final = (
    "rivermark",
    "rivermark.sources",
    "rivermark.sinks",
    "rivermark.restart",
    "rivermark.operators",
    "rivermark.process",
    "rivermark.testing",
)
HEAD: Final = """# Reference

The public names, by the module from which they are imported, with what their docstrings say. This
page is written by `tests/unit/docs/test_reference.py`, run as a script. Windows and patterns of
process functions are on [their page](concepts/process-functions.md#windows-and-patterns), commands
on that of [the console](operations/console.md).
"""
PLAIN: Final = (bool, int, float, str, type(None), Enum)


def reference() -> str:
    """The page."""
    parts = [HEAD]
    for name in MODULES:
        module = import_module(name)
        public = {each: getattr(module, each) for each in sorted(module.__all__, key=str.lower)}
        parts.append(f"## {name}\n\n" + " · ".join(f"[{n}](#{n.lower()})" for n in _linked(public)))
        parts += [section(each, value) for each, value in public.items()]
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def _linked(public: dict[str, Any]) -> Iterator[str]:
    return (name for name, value in public.items() if documented(value))


def documented(value: object) -> bool:
    """Whether a name has a docstring of its own: a constant has that of its type."""
    return isinstance(value, ModuleType) or inspect.isclass(value) or inspect.isfunction(value)


def section(name: str, value: Any) -> str:
    """A name with its signature and docstring; of a module every public function."""
    if isinstance(value, ModuleType):
        functions = [
            f"- `{name}.{each}{signature(function)}`: {first_line(function)}"
            for each, function in inspect.getmembers(value, inspect.isfunction)
            if function.__module__ == value.__name__ and not each.startswith("_")
        ]
        return "\n".join([f"### {name}", "", first_line(value), "", *functions])
    if not documented(value):
        return f"### {name}\n\n{constant(value)}"
    if value.__name__ != name and inspect.isclass(value):
        return f"### {name}\n\nThe former name of [{value.__name__}](#{value.__name__.lower()})."
    lines = [f"### {name}", ""]
    if inspect.isfunction(value) or has_arguments(value):
        lines += ["```text", f"{name}{signature(value, width=90)}", "```", ""]
    lines += [as_markdown(inspect.getdoc(value) or ""), ""]
    return "\n".join([*lines, *(members(value) if inspect.isclass(value) else ())])


def constant(value: Any) -> str:
    """What a name stands for that is no class or function."""
    if isinstance(value, UnionType):
        names = [each.__name__ for each in value.__args__]
        return " or ".join(f"[{name}](#{name.lower()})" for name in names)
    alias = isinstance(value, str) or get_origin(value) is not None
    return f"`{type_text(value) if alias else value}`"


def members(cls: type) -> Iterator[str]:
    """Public methods and properties that the class itself declares, with their first sentence."""
    for name, member in vars(cls).items():
        function = getattr(member, "__func__", member)  # of a class method
        if isinstance(member, property):
            yield f"- `.{name}`: {first_line(member)}"
        elif inspect.isfunction(function) and not name.startswith("_"):
            yield f"- `.{name}{signature(function)}`: {first_line(function)}"


def has_arguments(cls: type) -> bool:
    """Whether a user makes such values; exceptions and abstract classes are not called."""
    called = not issubclass(cls, Exception) and not inspect.isabstract(cls)
    return called and "__init__" in vars(cls) and not getattr(cls, "_is_protocol", False)


def signature(function: Callable[..., Any], width: int | None = None) -> str:
    """Its arguments with types and plain defaults, a line each where they are long."""
    parameters = inspect.signature(function).parameters.values()
    shown, keyword = [], False
    for each in parameters:
        former = str(each.annotation).startswith("InitVar[")
        if each.name in ("self", "cls") or former:
            continue
        if each.kind is each.KEYWORD_ONLY and not keyword:
            shown.append("*")
        keyword = keyword or each.kind in (each.KEYWORD_ONLY, each.VAR_POSITIONAL)
        stars = "*" if each.kind is each.VAR_POSITIONAL else ""
        stars = "**" if each.kind is each.VAR_KEYWORD else stars
        kind = "" if each.annotation is each.empty else f": {type_text(each.annotation)}"
        default = "" if each.default is each.empty else f" = {default_text(each.default)}"
        shown.append(f"{stars}{each.name}{kind}{default}")
    line = f"({', '.join(shown)})"
    if width is None or len(line) <= width:
        return line
    return "(\n" + "".join(f"    {each},\n" for each in shown) + ")"


def type_text(annotation: object) -> str:
    """An annotation as it is written, without the modules of names."""
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return re.sub(r"\b(?:[a-z_]+\.)+(?=[A-Z])", "", text).replace('"', "'")


def default_text(value: object) -> str:
    """A default, where it is plain; `...` for one that is made."""
    if isinstance(value, timedelta):
        return f"timedelta(seconds={value.total_seconds():g})" if value else "timedelta(0)"
    if isinstance(value, PLAIN) or value == ():
        return repr(value)
    return "..."


def first_line(value: object) -> str:
    """The first sentence of a docstring."""
    return " ".join((inspect.getdoc(value) or "").split("\n\n")[0].split())


def as_markdown(text: str) -> str:
    """A docstring whose lists of arguments and exceptions are Markdown's."""
    lines, listing = [], False
    for line in text.splitlines():
        heading = re.fullmatch(r"(Raises|Args|Returns):", line)
        if heading:
            listing = True
            lines += [line, ""]
        elif listing and (entry := re.fullmatch(r"    ([\w.]+): (.*)", line)):
            lines.append(f"- `{entry[1]}`: {entry[2]}")
        elif listing and line.startswith("    "):
            lines.append(f"  {line.strip()}")
        else:
            listing = listing and not line
            lines.append(line)
    return "\n".join(lines)


def test_the_page_says_what_the_docstrings_say() -> None:
    assert PAGE.read_text() == reference(), "run this test's module as a script"


def test_every_public_name_is_on_the_page() -> None:
    headings = re.findall(r"^### (\w+)$", PAGE.read_text(), re.MULTILINE)

    assert headings == [
        name for module in MODULES for name in sorted(import_module(module).__all__, key=str.lower)
    ]


if __name__ == "__main__":
    PAGE.write_text(reference())
