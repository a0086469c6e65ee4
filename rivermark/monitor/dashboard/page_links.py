"""Addresses of the pages that the platform draws, as the document server beside the UI serves them.

Links in Dagster lead from http, from where no browser follows one to a file.
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlencode

from rivermark.settings import Settings

FOLDERS: Final = {"pages": Path("pages"), "data_docs": Path("quality/pages")}
"""What is served, by the first part of the address: folders below the platform's home."""
TOKEN: Final = "token"  # noqa: S105 - the name of the parameter
TOKEN_FILE: Final = Path("ui/pages_token")


def page_url(settings: Settings, path: Path) -> str:
    """The address of a page, with the token that opens it; of a file elsewhere its own.

    Reads the token and makes none, so that a code location can be loaded without a home.
    """
    for name, folder in FOLDERS.items():
        if path.is_relative_to(settings.home / folder):
            inside = path.relative_to(settings.home / folder).as_posix()
            known = read_token(settings)
            query = f"?{urlencode({TOKEN: known})}" if known else ""
            return f"{settings.pages_url}/{name}/{quote(inside)}{query}"
    return path.as_uri()


def read_token(settings: Settings) -> str:
    """The token of this deployment's pages; empty before there is one."""
    try:
        return (settings.state / TOKEN_FILE).read_text().strip()
    except FileNotFoundError:
        return ""


def make_token(settings: Settings) -> str:
    """The token of this deployment's pages, made where there is none; only its owner can read it.

    It stays the same, so that links in events of weeks ago open.
    """
    known = read_token(settings)
    if not known:
        path = settings.state / TOKEN_FILE
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        known = secrets.token_urlsafe(24)
        path.touch(mode=0o600)
        path.write_text(known)
    return known
