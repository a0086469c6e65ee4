"""Pages of Great Expectations made to open without a network, and without a request to any host.

As drawn they load a dozen scripts and styles from other hosts, and their index is an empty table
that a script fills. Here scripts, foreign styles, pictures and advertising are taken out, a style
of our own is put in, a policy forbids the browser to load anything, and the index is replaced.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from rivermark.html.page import pages_of
from rivermark.lake.filesystem import write_file

PACKAGE: Final = "rivermark.quality.gx"
POLICY: Final = (
    '<meta http-equiv="Content-Security-Policy" '
    "content=\"default-src 'none'; style-src 'unsafe-inline'\">"
)
MARK: Final = "<!-- opens without a network -->"

REMOVED: Final = (
    re.compile(r"<script\b.*?</script>", re.DOTALL | re.IGNORECASE),
    re.compile(r"<link\b[^>]*>", re.IGNORECASE),
    re.compile(r"<img\b[^>]*>", re.DOTALL | re.IGNORECASE),
    re.compile(r"<footer\b.*?</footer>", re.DOTALL | re.IGNORECASE),
    re.compile(r"@font-face\s*\{[^}]*\}", re.DOTALL),
    re.compile(r"background(-image)?:\s*url\([^)]*\)[^;}]*;?"),
    re.compile(r"\son\w+=\"[^\"]*\""),
)
MILD: Final = ("warning", "info")
"""Severities of rules whose failure is a warning."""
FAILED: Final = '<i class="fas fa-times text-danger"'
WARNED: Final = '<i class="fas fa-circle text-warned"'
NOT_EVALUATED: Final = "fa-exclamation-triangle"
MILD_ROWS: Final = re.compile(
    rf"{re.escape(FAILED)}((?:(?!</tr>).)*?; (?:{'|'.join(MILD)})\))", re.DOTALL
)
"""Failed rules whose description names such a severity, from their icon on."""
DEAD_LINKS: Final = re.compile(
    r"<a\b[^>]*href=\"(?:https?:[^\"]*|[^\"]*expectations/[^\"]*)\"[^>]*>(.*?)</a>", re.DOTALL
)
"""Links to other hosts, and to pages of suites, which are not drawn."""

EMPTY_LINKS: Final = re.compile(r"(<a\b[^>]*index\.html\"[^>]*>)\s*</a>")
"""Links to the index whose picture is taken out."""


@dataclass(frozen=True)
class StoredRun:
    """A stored result and its page, as the index lists them; `critical` rules among the failed."""

    suite: str
    version: str
    at: datetime
    success: bool
    expectations: int
    failed: int
    page: str
    critical: int = 0

    @property
    def result(self) -> str:
        """As of a check: 'held', 'warn' where only warnings failed, or 'error'."""
        if self.success or not self.failed:
            return "held"
        return "error" if self.critical else "warn"


def make_self_contained(page: Path) -> None:
    """Rewrite a page in its place so that it loads nothing; one that was rewritten stays."""
    text = page.read_text(encoding="utf-8")
    if MARK not in text:
        write_file(str(page), self_contained(text).encode(), durable=False)


def self_contained(text: str) -> str:
    """The page without anything that it would load or run."""
    for pattern in REMOVED:
        text = pattern.sub("", text)
    text = DEAD_LINKS.sub(r"\1", text)
    text = EMPTY_LINKS.sub(r"\1All suites</a>", text).replace("<html>", '<html lang="en">', 1)
    text = MILD_ROWS.sub(rf"{WARNED}\1", text)
    if WARNED in text and text.count(FAILED) == 1 and NOT_EVALUATED not in text:
        # The icon of the whole run is left: nothing failed that is more than a warning.
        text = text.replace(FAILED, WARNED).replace("</i> Failed", "</i> nothing critical")
    style = pages_of(PACKAGE).get_template("offline.css").render()
    return text.replace("</head>", f"{POLICY}<style>{style}</style>{MARK}</head>", 1)


def stored_runs(results: Path, pages: Path) -> list[StoredRun]:
    """The stored results that have a page, the newest first."""
    return sorted(_read(results, pages), key=lambda run: run.at, reverse=True)


def _read(results: Path, pages: Path) -> Iterator[StoredRun]:
    for stored in results.rglob("*.json"):
        result = json.loads(stored.read_text(encoding="utf-8"))
        page = pages / "validations" / stored.relative_to(results).with_suffix(".html")
        if not page.is_file():
            continue
        run = result["meta"]["run_id"]
        numbers = result["statistics"]
        yield StoredRun(
            suite=str(result["suite_name"]).replace(".", "/", 1),
            version=str(run["run_name"]),
            at=datetime.fromisoformat(str(run["run_time"])).astimezone(UTC),
            success=bool(result["success"]),
            expectations=int(numbers["evaluated_expectations"]),
            failed=int(numbers["unsuccessful_expectations"]),
            page=page.relative_to(pages).as_posix(),
            critical=sum(_is_critical(each) for each in result["results"]),
        )


def _is_critical(result: dict[str, Any]) -> bool:
    """Returns True if a rule's result is a failure that is more than a warning."""
    return not result["success"] and result["expectation_config"].get("severity") not in MILD


def write_index(pages: Path, runs: Iterable[StoredRun]) -> None:
    """The index of the site: the newest run of each suite, then all that are kept."""
    ordered = list(runs)
    newest = {run.suite: run for run in reversed(ordered)}
    latest = sorted(newest.values(), key=lambda run: run.suite)
    index = pages_of(PACKAGE).get_template("index.html").render(latest=latest, kept=ordered)
    # In one step: several processes draw one site, and readers may look.
    write_file(str(pages / "index.html"), index.encode(), durable=False)
