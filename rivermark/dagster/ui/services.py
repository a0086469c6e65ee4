"""The services behind the page: Dagster's three, as `dagster dev` starts them, and documents."""

from __future__ import annotations

import os
import socket
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from rivermark.model.errors import RivermarkError

UI: Final = "rivermark.dagster.ui"
CODE_SERVER: Final = "code server"
PAGE: Final = "page"
DOCUMENTS: Final = "document server"
LONGEST_SOCKET: Final = 103
"""Bytes of the name of a socket: 108 on Linux, 104 on macOS, with the zero behind it."""


@dataclass(frozen=True)
class Service:
    """A process: what it is called here, and the Python module and words to start it."""

    name: str
    module: str
    words: tuple[str, ...]


class CodeLocation(NamedTuple):
    """The module of a project's definitions, which the code server loads, and its name there."""

    module: str
    name: str


def code_location(folder: Path, module: str = "") -> CodeLocation:
    """The code location of the project in a folder, as `dg dev` and `dagster dev` find it.

    The module that is given, else that of [tool.dg.project] in pyproject.toml, else the first one
    of workspace.yaml. Raises RivermarkError where there is none, or a file cannot be read.
    """
    project, workspace = folder / "pyproject.toml", folder / "workspace.yaml"
    try:
        dg = _of_dg(tomllib.loads(project.read_text()) if project.is_file() else {})
        loaded = yaml.safe_load(workspace.read_text()) if workspace.is_file() else {}
        listed = _of_workspace(loaded)
    except (ValueError, AttributeError, yaml.YAMLError) as error:
        raise RivermarkError(f"{project} or {workspace} cannot be read: {error}") from error
    chosen = dg or listed
    if module:
        known = (each.name for each in (dg, listed) if each is not None and each.module == module)
        return CodeLocation(module, next(known, module))
    if chosen is None:
        raise RivermarkError(
            f"no definitions to show: name their module with -m, as in -m my_project.definitions, "
            f"or in {workspace}"
        )
    return chosen


def _of_dg(project: dict[str, Any]) -> CodeLocation | None:
    section = project.get("tool", {}).get("dg", {}).get("project", {})
    if "root_module" not in section:
        return None
    root = str(section["root_module"])
    name = section.get("code_location_name") or project.get("project", {}).get("name") or root
    return CodeLocation(
        section.get("code_location_target_module") or f"{root}.definitions", str(name)
    )


def _of_workspace(workspace: dict[str, Any]) -> CodeLocation | None:
    for each in (workspace or {}).get("load_from") or []:
        module = each.get("python_module")
        if isinstance(module, str):
            return CodeLocation(module, module)
        if module:
            name = str(module["module_name"])
            return CodeLocation(name, str(module.get("location_name") or name))
    return None


def services_of(folder: Path, host: str, port: int, code: CodeLocation) -> tuple[Service, ...]:
    """Code server, daemon and page, whose socket lies in `folder`, and the document server.

    Raises RivermarkError where the folder's name is too long for a socket.
    """
    path, workspace = socket_of(folder), folder / "workspace.yaml"
    if len(os.fsencode(path)) > LONGEST_SOCKET:
        raise RivermarkError(
            f"{path} is longer than the {LONGEST_SOCKET} bytes that a socket's name may have: "
            "choose a shorter home (RIVERMARK_HOME), or start in a folder nearer to it"
        )
    # As `dagster dev` starts it, but without a heartbeat: it must outlive its parent.
    named = ("--location-name", code.name, "--module-name", code.module)
    reached = ("--workspace", str(workspace))
    at = ("--socket", str(path), "--working-directory", str(Path.cwd()))
    return (
        Service(CODE_SERVER, "dagster", ("code-server", "start", *named, *at)),
        Service("daemon", "dagster._daemon", ("run", *reached)),
        Service(PAGE, f"{UI}.guard", (*reached, "--host", host, "--port", str(port))),
        Service(DOCUMENTS, "rivermark.monitor.dashboard.document_server", ()),
    )


def write_workspace(folder: Path, name: str) -> None:
    """Write what tells daemon and page where the code server is."""
    folder.mkdir(parents=True, exist_ok=True)
    server = {"socket": str(socket_of(folder)), "location_name": name}
    (folder / "workspace.yaml").write_text(yaml.safe_dump({"load_from": [{"grpc_server": server}]}))


def socket_of(folder: Path) -> Path:
    """Socket of the code server: from the working folder, where that is the shorter name."""
    path = folder / "code.sock"
    return min(path, Path(os.path.relpath(path)), key=lambda each: len(os.fsencode(each)))


def environment() -> Mapping[str, str]:
    """Environment of the services, as `dagster dev` makes it."""
    return {**os.environ, "DAGSTER_IS_DEV_CLI": "1", "DAGSTER_verbose": ""}


def listens(path: Path) -> bool:
    """True if a process accepts connections there."""
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


def is_free(host: str, port: int) -> bool:
    """True if a service can have its port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
        return True
