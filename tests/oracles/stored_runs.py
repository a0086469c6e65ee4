"""Stored runs of suites and their Data Docs, as Great Expectations leaves them on disk."""

from __future__ import annotations

import json
from pathlib import Path


def store_run(root: Path, suite: str, version: int, failed: int = 0, page: str = "") -> Path:
    """Store a run of nine rules, of which the second that fails is critical; returns its page."""
    name = f"{suite}/version-{version}/2026"
    run = {"run_name": f"version-{version}", "run_time": f"2026-03-0{version}T00:00:00+00:00"}
    result = {
        "suite_name": suite.replace("/", "."),
        "success": not failed,
        "meta": {"run_id": run},
        "statistics": {"evaluated_expectations": 9, "unsuccessful_expectations": failed},
        "results": [
            {"success": False, "expectation_config": {"severity": severity}}
            for severity in ("warning", "critical")[:failed]
        ],
    }
    drawn = root / "pages" / "validations" / f"{name}.html"
    for path, text in ((root / "results" / f"{name}.json", json.dumps(result)), (drawn, page)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return drawn
