"""Models of dbt read tables at the version that a source names; runs where dbt-duckdb is installed.

It brings fifty packages, among them another protobuf: install it into an environment beside this.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from rivermark.settings import Settings
from tests.unit.ask.conftest import Write

pytest.importorskip("dbt.adapters.duckdb", reason="needs dbt-duckdb")

PROJECT = {
    "dbt_project.yml": "name: shop\nprofile: lake\nmodels: {shop: {+materialized: table}}\n",
    "profiles.yml": """
lake:
  target: dev
  outputs:
    dev:
      type: duckdb
      path: models.duckdb
      plugins:
        - module: rivermark.ask.dbt_plugin
          alias: rivermark
          config:
            home: HOME
""",
    "models/sources.yml": """
sources:
  - name: shop
    tables:
      - name: sales
        config:
          meta:
            plugin: rivermark
            version: "{{ var('version', '') }}"
""",
    "models/amounts.sql": """
SELECT count(*) AS sales, sum(amount) AS amount FROM {{ source('shop', 'sales') }}
""",
}


def test_a_model_reads_the_version_that_a_run_gives_it(
    settings: Settings, write: Write, tmp_path: Path
) -> None:
    write(4, 8)
    write(40)
    for name, text in PROJECT.items():
        path = tmp_path / "dbt" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("HOME", str(settings.home)))

    def run(*options: str) -> tuple[object, ...] | None:
        command = [sys.executable, "-m", "dbt.cli.main", "run", *options]
        environment = {**os.environ, "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}
        done = subprocess.run(
            command,
            cwd=tmp_path / "dbt",
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        with duckdb.connect(str(tmp_path / "dbt" / "models.duckdb")) as engine:
            return engine.execute("SELECT sales, amount::DOUBLE FROM amounts").fetchone()

    assert run() == (3, 13.0)
    assert run("--vars", "{version: 0}") == (2, 3.0)
