"""A stream's module in a project: where it goes, and its line in the list of all streams."""

from __future__ import annotations

import ast
import keyword
from pathlib import Path

from rivermark.model.errors import WrongUse


def module_of(topology: str, name: str) -> str:
    """The module of a stream: beside that of the topology, by the parts of the stream's name.

    Raises WrongUse for a part that no module can be called.
    """
    if words := [part for part in name.split("/") if keyword.iskeyword(part)]:
        raise WrongUse(f"{name!r}: {words[0]!r} is a word of Python; no module can be called so")
    package = topology.rpartition(".")[0]
    return ".".join(filter(None, (package, *name.split("/"))))


def file_of(root: Path, module: str) -> Path:
    """The file of a module below the folder of a project."""
    return root.joinpath(*module.split(".")).with_suffix(".py")


def write_module(root: Path, module: str, text: str) -> Path:
    """Write a module that is not there yet, and `__init__.py` of the packages around it.

    Raises WrongUse where it is there.
    """
    file = file_of(root, module)
    if file.exists():
        raise WrongUse(f"{file} is there already: give the stream another name, or use --print")
    package = file.parent
    if package.with_suffix(".py").exists():
        raise WrongUse(f"{package.with_suffix('.py')} is a module: its streams have no folder")
    package.mkdir(parents=True, exist_ok=True)
    while package != root:
        if not (package / "__init__.py").exists():
            (package / "__init__.py").write_text(f'"""Streams of {package.name}."""\n')
        package = package.parent
    file.write_text(text)
    return file


def domain_in(root: Path, module: str) -> str | None:
    """A Domain that a module beside the stream's declares, as "MODULE:NAME"; None without one."""
    package = module.rpartition(".")[0]
    group = package.rpartition(".")[2]
    for file in sorted(file_of(root, package).with_suffix("").glob("*.py")):
        for node in ast.parse(file.read_text()).body:
            if not isinstance(node, ast.Assign | ast.AnnAssign):
                continue
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
            if (
                isinstance(node.value, ast.Call)
                and ast.unparse(node.value.func) == "Domain"
                and [ast.unparse(each) for each in node.value.args] == [repr(group)]
                and isinstance(target, ast.Name)
            ):
                return f"{package}.{file.stem}:{target.id}"
    return None


def registered(text: str, module: str, constant: str) -> str | None:
    """The text of a topology's module with one stream more; None where it has no list to add to.

    The list is the first argument of the one call of `Topology`.
    """
    tree = ast.parse(text)
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Topology" and node.args
    ]
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    if len(calls) != 1 or not isinstance(calls[0].args[0], ast.List | ast.Tuple) or not imports:
        return None
    listed = calls[0].args[0]
    if not listed.elts:
        return None
    lines = text.splitlines(keepends=True)
    last = listed.elts[-1]
    row, column = (last.end_lineno or 1) - 1, last.end_col_offset
    at = len(lines[row].encode()[:column].decode())
    own_line = last.lineno != listed.lineno
    rest = lines[row][at:]
    if own_line:
        comma, rest = ("", rest) if rest.startswith(",") else (",", rest)
        indent = " " * last.col_offset
        lines[row] = f"{lines[row][:at]}{comma}{rest}{indent}{constant},\n"
    else:
        lines[row] = f"{lines[row][:at]}, {constant}{rest}"
    # Beside the imports of its own package, by name.
    package = module.partition(".")[0]
    own = [(each.module or "", each) for each in imports if isinstance(each, ast.ImportFrom)]
    own = [(name, each) for name, each in own if name.partition(".")[0] == package]
    before = [each for name, each in own if name < module]
    behind = (before or imports)[-1].end_lineno or 1
    lines.insert(
        own[0][1].lineno - 1 if own and not before else behind,
        f"from {module} import {constant}\n",
    )
    changed = "".join(lines)
    try:
        ast.parse(changed)
    except SyntaxError:
        return None
    return changed
