"""The services behind the page: Dagster's three, as `dagster dev` starts them, and documents."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rivermark.model.errors import RivermarkError

MODULE: Final = "platform_defs.definitions"
LOCATION: Final = "rivermark"
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


def services_of(folder: Path, host: str, port: int) -> tuple[Service, ...]:
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
    code = f"code-server start --location-name {LOCATION} --module-name {MODULE}".split()
    reached = ("--workspace", str(workspace))
    folder_of_code = ("--working-directory", str(Path.cwd()))
    return (
        Service(CODE_SERVER, "dagster", (*code, "--socket", str(path), *folder_of_code)),
        Service("daemon", "dagster._daemon", ("run", *reached)),
        Service(PAGE, f"{UI}.guard", (*reached, "--host", host, "--port", str(port))),
        Service(DOCUMENTS, f"{UI}.documents", ()),
    )


def write_workspace(folder: Path) -> None:
    """Write what tells daemon and page where the code server is."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "workspace.yaml").write_text(
        "load_from:\n  - grpc_server:\n"
        f"      socket: {socket_of(folder)}\n      location_name: {LOCATION}\n"
    )


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
