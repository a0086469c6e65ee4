"""Rules and board speak of metrics that there are; Prometheus' own tool tries the rules."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from rivermark.model.stream import Ingest
from rivermark.monitor.prometheus.metrics import DeploymentMetrics
from rivermark.settings import Settings

FOLDER: Final = Path(str(files("rivermark.monitor.prometheus")))
RULES: Final = FOLDER / "alerts.yml"
BOARD: Final = FOLDER / "board.json"
PAGE: Final = Path(__file__).parents[4] / "docs" / "operations" / "metrics.md"
STREAM: Final = {"stream": "taxi/rides"}
FIRING: Final[dict[str, list[tuple[str, dict[str, str], str]]]] = {
    "RivermarkStreamDead": [
        ("rivermark_alive", STREAM, "0x30"),
        ("rivermark_should_run", STREAM, "1x30"),
    ],
    "RivermarkMetricsGone": [("up", {"job": "rivermark"}, "0x30")],
    "RivermarkMetricsUnreadable": [("rivermark_unreadable", {"part": "checks"}, "1x30")],
    "RivermarkCheckFails": [
        ("rivermark_check", {**STREAM, "table": "taxi/rides", "check": "is_alive"}, "2x30")
    ],
    "RivermarkFailsAgainAndAgain": [("rivermark_failures", STREAM, "3x30")],
    "RivermarkLag": [("rivermark_unread_seconds", STREAM, "700x30")],
    "RivermarkSourceSilent": [("rivermark_lag_unknown", STREAM, "1x30")],
    "RivermarkQuarantine": [
        ("rivermark_quarantined_total", STREAM, "0+10x60"),
        ("rivermark_rows_in_total", STREAM, "0+100x60"),
    ],
    "RivermarkStateGrows": [("rivermark_state_rows", STREAM, "100000+1000x2000")],
    "RivermarkSlowBatches": [
        ("rivermark_batch_seconds_bucket", {**STREAM, "le": "60.0"}, "0x60"),
        ("rivermark_batch_seconds_bucket", {**STREAM, "le": "300.0"}, "0+6x60"),
        ("rivermark_batch_seconds_bucket", {**STREAM, "le": "+Inf"}, "0+6x60"),
    ],
}
"""Series, a value each minute, after which each alert fires: `start+step x times`."""


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load(RULES.read_text())["groups"]
    return list(group["rules"])


def expressions() -> list[str]:
    board = json.loads(BOARD.read_text())
    of_board = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    return [*of_board, *(rule["expr"] for rule in rules())]


def test_rules_and_board_name_metrics_that_there_are(settings: Settings, rides: Ingest) -> None:
    text = DeploymentMetrics(settings, [rides]).text().decode()
    there = set(re.findall(r"^# TYPE (\w+)", text, re.MULTILINE))
    there |= {f"{name}_bucket" for name in there}

    named = {name for each in expressions() for name in re.findall(r"\brivermark_\w+", each)}

    assert named <= there


def test_every_alert_has_a_command_and_its_line_in_the_docs() -> None:
    page = PAGE.read_text()
    for rule in rules():
        assert rule["annotations"]["command"].startswith("rivermark ")
        assert f"`{rule['alert']}`" in page
    assert {rule["alert"] for rule in rules()} == FIRING.keys()


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs Debian's package prometheus")
def test_each_alert_fires_when_it_should_and_no_sooner(tmp_path: Path) -> None:
    summaries = {rule["alert"]: rule for rule in rules()}
    tests = []
    for alert, series in FIRING.items():
        late = "30h" if alert == "RivermarkStateGrows" else "28m"
        labels = {k: v for _, each, _ in series for k, v in each.items() if k != "le"}
        rule = summaries[alert]
        annotations = {
            name: re.sub(r"\{\{ \$labels\.(\w+) \}\}", lambda m: labels[m[1]], text)  # noqa: B023
            for name, text in rule["annotations"].items()
        }
        fires = {"exp_labels": {**labels, **rule["labels"]}, "exp_annotations": annotations}
        others = [] if series[0][0] == "up" else [("up", {"job": "rivermark"}, "1x2000")]
        tests.append(
            {
                "interval": "1m",
                "input_series": [
                    {"series": f"{name}{braces(each)}", "values": values}
                    for name, each, values in [*series, *others]
                ],
                "alert_rule_test": [
                    {"eval_time": "0m", "alertname": alert, "exp_alerts": []}
                    if rule.get("for")
                    else {"eval_time": "0m", "alertname": alert, "exp_alerts": [fires]},
                    {"eval_time": late, "alertname": alert, "exp_alerts": [fires]},
                ],
            }
        )
    file = tmp_path / "test.yml"
    file.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "tests": tests}))

    checked = subprocess.run(
        ["promtool", "test", "rules", str(file)], capture_output=True, text=True, check=False
    )

    assert checked.returncode == 0, checked.stdout + checked.stderr


def braces(labels: dict[str, str]) -> str:
    return "{" + ", ".join(f'{name}="{value}"' for name, value in labels.items()) + "}"
