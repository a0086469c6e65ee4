"""One typed settings object, read once at the edge from the environment (prefix RIVERMARK_)."""

from __future__ import annotations

import os
import re
from datetime import timedelta
from pathlib import Path
from typing import Final, Literal

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from rivermark.lake.durable import set_durable
from rivermark.lake.filesystem import check_scheme, is_local
from rivermark.lake.lake import Lake
from rivermark.lake.query_limits import QueryLimits, limit_queries
from rivermark.model.errors import RivermarkError
from rivermark.model.nearest import did_you_mean

CLOSED_TO_DELTA: Final = re.compile(r"[\[\]^|\\\x00-\x1f\x7f]|%[0-9A-Fa-f]{2}")
"""What the two libraries that read Delta tables cannot have in a local path, or read as another
character."""
FIXED: Final = (
    "spark.master",
    "spark.sql.session.timeZone",
    "spark.sql.extensions",
    "spark.sql.catalog.spark_catalog",
    "spark.jars",
)
"""Spark's settings that `spark_conf` does not change: what days, tables and JARs depend on."""
PREFIX: Final = "RIVERMARK_"
NO_SETTINGS: Final = frozenset(
    {
        *("cache", "ivy_settings", "worker_python"),
        *("all_zones", "fuzz_rounds", "fuzz_seed", "pictures", "public_data"),
        *("parity_rounds", "postgres_kills", "restart_histories", "route_rounds", "story_nights"),
        "story_events",
    }
)
"""What other variables with the prefix are called: of the setup and Spark's workers, of tests."""
MASTER: Final = re.compile(
    r"local(\[(\d+|\*)(, *\d+)?\])?|local-cluster\[.+\]|spark://.+:\d+.*|yarn|k8s://.+"
)


class Settings(BaseSettings):
    """Settings of the platform: where it keeps its things, and how large its driver may be.

    `lake_root`, `landing_root`: a folder or a URI that both Spark and Arrow can reach.
    `state_root`: a folder on a disk that every run, sensor and console shares: heartbeats, leases,
    desired states. `promise_days`: for how long each version of a table stays readable, and
    `progress_days` how long `ops/stream_progress` keeps a row. `trigger_seconds` is the least time
    between the beginnings of two batches of a live stream. `notify_command` is run when a person
    has to look, with the incident and the message as two further arguments; in the environment it
    is a JSON list (`RIVERMARK_NOTIFY_COMMAND='["mail-me", "--urgent"]'`). `batch_bytes` are those
    for each core, as text, that close a planned batch of an ingest where its source does not say;
    up to `driver_bytes` the driver works by itself, without a job of tasks that write: it admits so
    many bytes as text (16 MiB where it is not set), and collects what is made of as large files of
    tables (64 MiB). `durable`: what is
    committed has reached the disk; without it a power failure may take the commits of the last half
    minute, and leave empty files in their place, which stop their streams. `pages_port` is that of
    the dashboard, failing rows and Data Docs beside the UI, on 127.0.0.1, and `pages_url` how links
    in Dagster reach it, where it is not that. `ui_hosts`: names under which `make ui` is reached
    beside this machine's own, as behind a proxy. `query_threads` and `query_memory` are what
    queries without Spark take in each process (checks, comparisons, pages), and `query_folder` has
    what exceeds that, by default `<state root>/queries`. `master` is Spark's. On a cluster
    (`spark://host:7077`, `yarn`, `k8s://...`) `executor_memory` is that of each executor,
    `executor_python` the path of a Python there with the packages of this one, `driver_host` the
    address under which executors reach this process, and `spark_conf` has any further setting by
    Spark's name (`RIVERMARK_SPARK_CONF='{"spark.executor.cores": "4"}'`), here as well.
    `environment` picks defaults in the deployment guide only.
    """

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="ignore")

    environment: Literal["local", "cluster"] = "local"
    home: Path = Path(".rivermark")
    lake_root: str = ""
    landing_root: str = ""
    state_root: Path | None = None
    master: str = "local[2]"
    executor_memory: str = Field(default="2g", pattern=r"^[1-9]\d*[mg]$")
    executor_python: str = ""
    driver_host: str = ""
    spark_conf: dict[str, str] = {}
    query_threads: int = Field(default=1, ge=1)
    query_memory: str = Field(default="1g", pattern=r"^[1-9]\d*[mg]$")
    query_folder: Path | None = None
    driver_memory: str = Field(default="2g", pattern=r"^\d+[mg]$")
    shuffle_partitions: int = Field(default=2, ge=1, le=4096)
    trigger_seconds: float = Field(default=2.0, gt=0)
    files_per_trigger: int = Field(default=64, ge=1)
    batch_bytes: int = Field(default=64 << 20, ge=1)
    driver_bytes: int | None = Field(default=None, ge=0)
    promise_days: float = Field(default=7, gt=0, le=3650)
    progress_days: float = Field(default=30, gt=0)
    notify_command: tuple[str, ...] = ()
    durable: bool = True
    pages_port: int = Field(default=3001, ge=1, le=65535)
    pages_url: str = ""
    ui_hosts: tuple[str, ...] = ()

    def model_post_init(self, _context: object) -> None:
        """Derive what was not given from `home`; relative paths count from the working folder.

        Raises:
            RivermarkError: for a lake where tables cannot be opened, a master that Spark does not
                have, and a variable of the environment that is no setting.
        """
        self._refuse_unknown_variables()
        if not MASTER.fullmatch(self.master):
            raise RivermarkError(
                f"setting master (RIVERMARK_MASTER): {self.master!r} is no master of Spark; write "
                "one such as local[2], spark://host:7077, yarn or k8s://https://host:443"
            )
        for name in self.spark_conf:
            if not name.startswith("spark.") or name in FIXED:
                reason = "is set by the platform" if name in FIXED else "does not begin with spark."
                raise RivermarkError(
                    f"setting spark_conf (RIVERMARK_SPARK_CONF): {name!r} {reason}; leave it out"
                )
        self.home = self.home.resolve()
        self.lake_root = self.lake_root or str(self.home / "lake")
        self.landing_root = self.landing_root or str(self.home / "landing")
        self.state_root = (self.state_root or self.home / "state").resolve()
        self.pages_url = (self.pages_url or f"http://127.0.0.1:{self.pages_port}").rstrip("/")
        check_scheme(self.lake_root, "setting lake_root (RIVERMARK_LAKE_ROOT)")
        check_scheme(self.landing_root, "setting landing_root (RIVERMARK_LANDING_ROOT)")
        odd = CLOSED_TO_DELTA.search(self.lake_root) if is_local(self.lake_root) else None
        if odd is not None:
            raise RivermarkError(
                f"the lake cannot lie in {self.lake_root!r}: Delta tables cannot be opened below a "
                f"folder with {odd[0]!r} in its name; choose another home (RIVERMARK_HOME, --home)"
            )

    @classmethod
    def _refuse_unknown_variables(cls) -> None:
        """A misspelt setting would be ignored in silence."""
        known = {f"{PREFIX}{name.upper()}" for name in (*cls.model_fields, *NO_SETTINGS)}
        for name in sorted(os.environ):
            if name.startswith(PREFIX) and name not in known:
                settings = [f"{PREFIX}{each.upper()}" for each in cls.model_fields]
                near = did_you_mean(name, settings) or f"; there are {', '.join(settings)}"
                raise RivermarkError(f"{name} in the environment is no setting{near}")

    def lake(self) -> Lake:
        """The lake at `lake_root`; from here on the process syncs and queries by the settings."""
        set_durable(on=self.durable)
        folder = self.query_folder or self.state / "queries"
        limit_queries(QueryLimits(self.query_threads, self.query_memory, str(folder.resolve())))
        return Lake(self.lake_root, timedelta(days=self.promise_days))

    @property
    def state(self) -> Path:
        """`state_root`, never None after construction."""
        return self.state_root or self.home / "state"
