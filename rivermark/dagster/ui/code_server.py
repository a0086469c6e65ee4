"""Heals the code server: its proxy lives on when the process that holds the code is killed."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Final

import psutil

RELOAD: Final = """
mutation Heal($name: String!) {
  reloadRepositoryLocation(repositoryLocationName: $name) { __typename }
}
"""


def code_server_is_gone(proxy: int) -> bool:
    """True if a proxy that runs has lost the code server that it speaks for."""
    try:
        children = psutil.Process(proxy).children()
    except psutil.NoSuchProcess:
        return False
    return not any("grpc" in _words(child) for child in children)


def heal(graphql: str) -> None:
    """Do what the button 'Reload' does, for every location."""
    for name in _location_names(graphql):
        print(f"rivermark: the code server of '{name}' is gone; starting another", flush=True)  # noqa: T201
        _ask(graphql, RELOAD, {"name": name})


def _location_names(graphql: str) -> list[str]:
    workspace = _ask(
        graphql, "{ workspaceOrError { ... on Workspace { locationEntries { name } } } }"
    )
    entries = (workspace.get("workspaceOrError") or {}).get("locationEntries") or []
    return [str(entry["name"]) for entry in entries]


def _ask(graphql: str, query: str, values: dict[str, str] | None = None) -> dict[str, dict]:  # type: ignore[type-arg]
    body = json.dumps({"query": query, "variables": values or {}}).encode()
    request = urllib.request.Request(  # noqa: S310 - the page that the supervisor started
        graphql, body, {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as response:  # noqa: S310
            return dict(json.load(response).get("data") or {})
    except (urllib.error.URLError, TimeoutError, ConnectionError):
        return {}  # The page is not up yet, or just going down: the next poll tries again.


def _words(process: psutil.Process) -> list[str]:
    try:
        return [] if process.status() == psutil.STATUS_ZOMBIE else list(process.cmdline())
    except psutil.NoSuchProcess:
        return []
