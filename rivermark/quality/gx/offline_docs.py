"""Pages of Great Expectations made to open without a network, and to tell nobody that they do.

As drawn they load a dozen scripts and styles from other hosts, and their index is an empty table
that a script fills. Here scripts, foreign styles, pictures and advertising are taken out, a style
of our own is put in, a policy forbids the browser to load anything, and the index is written anew.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from rivermark.lake.filesystem import write_file

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
TO_NOBODY: Final = re.compile(
    r"<a\b[^>]*href=\"(?:https?:[^\"]*|[^\"]*expectations/[^\"]*)\"[^>]*>(.*?)</a>", re.DOTALL
)
"""Links to other hosts, and to pages of suites, which are not drawn."""

STYLE: Final = """
:root{color-scheme:light dark;--bg:#fff;--soft:#f3f5f7;--line:#d3d9df;--text:#1a2027;--dim:#566270;
--link:#0a58a5;--good:#0d6147;--bad:#a5330b}
@media(prefers-color-scheme:dark){:root{--bg:#11161b;--soft:#1a2128;--line:#35404b;--text:#e6ebf0;
--dim:#a3b0bd;--link:#7fbdf2;--good:#6fd3b0;--bad:#ff9d75}}
*{box-sizing:border-box}
body{margin:0 auto;padding:0 1rem 2rem;max-width:76rem;background:var(--bg);color:var(--text);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
a{color:var(--link)}a:focus-visible{outline:3px solid var(--link);outline-offset:2px}
nav.navbar{position:static!important;height:auto!important}ol,.nav{list-style:none;padding:0}
.sticky,.card,.popover,.cooltip .top{position:static!important;max-height:none!important}
.cooltip .top,.btn-group,.card:has(.btn-group),[hidden],.d-none:not(.d-md-block):not(.breadcrumb){
display:none!important}
.ge-section{margin-bottom:1.5rem;border:1px solid var(--line);border-radius:8px;padding:.5rem 1rem}
.alert{background:var(--soft);border-radius:6px;padding:.5rem .75rem;margin:.5rem 0}
.table-responsive,.col-12{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:.9rem}
th,td{text-align:left;vertical-align:top;padding:.35rem .75rem .35rem 0;
border-bottom:1px solid var(--line)}
.badge{border:1px solid currentColor;border-radius:1rem;padding:0 .5rem;font-weight:600}
.text-danger{color:var(--bad)}.text-success{color:var(--good)}.text-warning{color:var(--dim)}
h4,h5,h6{font-size:1rem;margin:.5rem 0}
i.fas{font-style:normal;font-weight:600}
i.fa-times::before{content:"failed "}i.fa-check-circle::before{content:"passed "}
i.fa-exclamation-triangle::before{content:"not judged "}
.show-scrollbars{max-height:none!important;overflow:auto}.collapse{display:block}
@media(max-width:40rem){body{font-size:15px}}
"""


@dataclass(frozen=True)
class StoredRun:
    """A stored result and its page, as the index lists them."""

    suite: str
    version: str
    at: datetime
    success: bool
    expectations: int
    failed: int
    page: str


def make_self_contained(page: Path) -> None:
    """Rewrite a page in its place so that it loads nothing; one that was rewritten stays."""
    text = page.read_text(encoding="utf-8")
    if MARK not in text:
        write_file(str(page), self_contained(text).encode())


def self_contained(text: str) -> str:
    """The page without anything that it would load or run."""
    for pattern in REMOVED:
        text = pattern.sub("", text)
    text = TO_NOBODY.sub(r"\1", text)
    return text.replace("</head>", f"{POLICY}<style>{STYLE}</style>{MARK}</head>", 1)


def stored_runs(results: Path, pages: Path) -> list[StoredRun]:
    """The stored results that have a page, the newest first."""
    return sorted(_read(results, pages), key=lambda run: run.at, reverse=True)


def _read(results: Path, pages: Path) -> Iterator[StoredRun]:
    for stored in results.rglob("*.json"):
        told = json.loads(stored.read_text(encoding="utf-8"))
        page = pages / "validations" / stored.relative_to(results).with_suffix(".html")
        if not page.is_file():
            continue
        run = told["meta"]["run_id"]
        numbers = told["statistics"]
        yield StoredRun(
            suite=str(told["suite_name"]).replace(".", "/", 1),
            version=str(run["run_name"]),
            at=datetime.fromisoformat(str(run["run_time"])).astimezone(UTC),
            success=bool(told["success"]),
            expectations=int(numbers["evaluated_expectations"]),
            failed=int(numbers["unsuccessful_expectations"]),
            page=page.relative_to(pages).as_posix(),
        )


def write_index(pages: Path, runs: Iterable[StoredRun]) -> None:
    """The index of the site: the newest run of each suite, then all that are kept."""
    from rivermark.html.document import document
    from rivermark.html.markup import Child, Markup, table, tag

    ordered = list(runs)
    newest = {run.suite: run for run in reversed(ordered)}
    latest = sorted(newest.values(), key=lambda run: run.suite)

    def listed(caption: str, shown: Iterable[StoredRun]) -> Markup:
        rows: list[list[Child]] = [
            [
                tag("a", run.suite, href=run.page),
                tag(
                    "span",
                    "held" if run.success else f"{run.failed} failed",
                    class_=f"badge {'held' if run.success else 'fail'}",
                ),
                str(run.expectations),
                run.version,
                f"{run.at:%Y-%m-%d %H:%M:%S}",
            ]
            for run in shown
        ]
        return table(
            caption, ("suite", "result", "rules", "of", "at (UTC)"), rows, numeric=("rules",)
        )

    index = document(
        "rivermark: expectations",
        tag("header", tag("h1", "What is expected of the tables, and what was found")),
        tag(
            "main",
            listed("The newest run of each suite", latest),
            listed("All runs that are kept, the newest first", ordered),
        ),
    )
    # In one step each: several processes draw one site, and readers may look.
    write_file(str(pages / "index.html"), index.encode())
