"""One typed settings object, read once at the edge from the environment (prefix RIVERMARK_)."""

from __future__ import annotations

import os
import re
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Final

from pydantic import Field
from pydantic.config import JsonDict
from pydantic_settings import BaseSettings, SettingsConfigDict

from rivermark.connect.notices import check_address
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


BYTES: Final[JsonDict] = {"unit": "bytes"}
Seconds = Annotated[float, Field(gt=0, json_schema_extra={"unit": "seconds"})]
Days = Annotated[float, Field(gt=0, json_schema_extra={"unit": "days"})]
Memory = Annotated[
    str, Field(pattern=r"^[1-9]\d*[mg]$", json_schema_extra={"unit": "GiB (`m`: MiB)"})
]
ADDRESS: Final = re.compile(r"[A-Za-z][\w+.-]+:/")
"""How a URI begins once it was taken for a path, which makes one slash of two."""
LINEAGE: Final = re.compile(r"file:///.|https?://.")
"""How an address of lineage begins."""


class Settings(BaseSettings):
    """Settings of the platform: where it keeps its things, and how large its driver may be.

    Each is the variable RIVERMARK_<NAME> of the environment; a description holds for both, and
    makes docs/operations/settings.md.
    """

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="ignore")

    home: Path = Field(
        default=Path(".rivermark"),
        description="Folder of a deployment. The lake, the landing folder and the state lie in it "
        "unless they are set. A relative path counts from the working folder.",
    )
    lake_root: str = Field(
        default="",
        description="Folder or URI of the lake, which both Spark and Arrow must reach; "
        "`<home>/lake` if not set.",
    )
    landing_root: str = Field(
        default="",
        description="Folder or URI below which the folders of file sources lie; `<home>/landing` "
        "if not set.",
    )
    state_root: Path | None = Field(
        default=None,
        description="Folder of heartbeats, leases and desired states, on a disk that every run, "
        "sensor and console shares; `<home>/state` if not set.",
    )
    master: str = Field(
        default="local[2]",
        description="Spark's master: `local[2]`, `spark://host:7077`, `yarn` or `k8s://...`. "
        "`local[2]` uses two cores of this machine.",
    )
    driver_memory: Memory = Field(
        default="2g",
        description="Heap of the driver's JVM, which with a local master does all the work.",
    )
    executor_memory: Memory = Field(
        default="2g", description="Heap of each executor's JVM, on a cluster."
    )
    executor_python: str = Field(
        default="",
        description="Path of a Python on the cluster's workers that has the packages of this one; "
        "the driver's own path if not set.",
    )
    driver_host: str = Field(
        default="",
        description="Address under which executors reach the driver; Spark's choice if not set, "
        "127.0.0.1 for a master on this machine.",
    )
    spark_conf: dict[str, str] = Field(
        default={},
        description="Further settings by Spark's names, as a JSON object: "
        '`{"spark.executor.cores": "4"}`. Those that days, tables and JARs depend on are refused.',
    )
    shuffle_partitions: int = Field(
        default=2,
        ge=1,
        le=4096,
        description="Tasks of each stateful step. Fixed for a stream at its first start: a change "
        "takes effect after `rivermark reset`.",
    )
    trigger_seconds: Seconds = Field(
        default=2.0,
        description="Least time between the beginnings of two batches of a live stream.",
    )
    files_per_trigger: int = Field(
        default=64,
        ge=1,
        description="Most data files of an input table that a derived stream reads in one batch.",
    )
    batch_bytes: int = Field(
        default=64 << 20,
        ge=1,
        json_schema_extra=BYTES,
        description="Size, as text and for each core, at which a planned batch of an ingest is "
        "closed. A limit declared by the source wins.",
    )
    driver_bytes: int | None = Field(
        default=None,
        ge=0,
        json_schema_extra=BYTES,
        description="Input up to which the driver works by itself, without a job of tasks. If "
        "empty, it admits up to 16 MiB of text and collects results of up to 64 MiB of files.",
    )
    query_threads: int = Field(
        default=1,
        ge=1,
        description="Threads of queries without Spark (checks, comparisons, pages), per process.",
    )
    query_memory: Memory = Field(
        default="1g", description="Memory of queries without Spark, per process."
    )
    query_folder: Path | None = Field(
        default=None,
        description="Folder for what exceeds `query_memory`; `<state_root>/queries` if not set.",
    )
    promise_days: Days = Field(
        default=7,
        le=3650,
        description="Time for which every version of a table stays readable. A table may declare "
        "its own retention.",
    )
    progress_days: Days = Field(
        default=30, description="Time for which `ops/stream_progress` keeps a row."
    )
    savepoints_kept: int = Field(
        default=5,
        ge=1,
        description="Savepoints of each stream that upkeep keeps, the newest ones; and those that "
        "a fork stands on.",
    )
    savepoint_days: Days = Field(
        default=14,
        description="Time for which upkeep keeps a savepoint. So long the inputs of its stream "
        "keep what it has not read.",
    )
    durable: bool = Field(
        default=True,
        description="Sync each commit to the disk. Without it, a power failure may take the "
        "commits of the last half minute and leave empty files, which stop their streams.",
    )
    notify_command: tuple[str, ...] = Field(
        default=(),
        description="Command that is run when a person has to look, as a JSON list: "
        '`["mail-me", "--urgent"]`. It gets the incident and the message as two more arguments.',
    )
    notify_to: tuple[str, ...] = Field(
        default=(),
        repr=False,
        description="Addresses that get the same notices, as a JSON list: `https://...` (JSON), "
        "`slack+https://...`, `teams+https://...`, "
        "`smtp://user:password@host:587/?from=a@example.org&to=b@example.org`, or `smtps://...`.",
    )
    lineage_to: str = Field(
        default="",
        description="Where OpenLineage events of batches and backfills go: a file "
        "(`file:///var/lineage.jsonl`) or a server (`http://host:5000/api/v1/lineage`, with the "
        "key of `OPENLINEAGE_API_KEY`). Empty: nowhere.",
    )
    pages_port: int = Field(
        default=3001,
        ge=1,
        le=65535,
        description="Port of the pages beside Dagster's UI (dashboard, failing rows, Data Docs), "
        "on 127.0.0.1.",
    )
    pages_url: str = Field(
        default="",
        description="Address by which links in Dagster reach these pages; "
        "`http://127.0.0.1:<pages_port>` if not set.",
    )
    ui_hosts: tuple[str, ...] = Field(
        default=(),
        description="Names, as a JSON list, under which `make ui` is reached besides those of this "
        "machine, for example behind a proxy.",
    )

    def model_post_init(self, _context: object) -> None:
        """Derive what was not given from `home`; relative paths count from the working folder.

        Raises:
            RivermarkError: for a lake where tables cannot be opened, an address where a folder on a
                disk is needed, a master that Spark does not have, and a variable of the environment
                that is no setting.
        """
        self._refuse_unknown_variables()
        if not MASTER.fullmatch(self.master):
            raise RivermarkError(
                f"setting master (RIVERMARK_MASTER): {self.master!r} is not a master of Spark; "
                "write one such as local[2], spark://host:7077, yarn or k8s://https://host:443"
            )
        if self.lineage_to and not LINEAGE.match(self.lineage_to):
            raise RivermarkError(
                f"setting lineage_to (RIVERMARK_LINEAGE_TO): {self.lineage_to!r} is neither a file "
                "nor a server: begin it with file:///, http:// or https://"
            )
        for address in self.notify_to:
            check_address(address)
        for name in self.spark_conf:
            if not name.startswith("spark.") or name in FIXED:
                reason = "is set by the platform" if name in FIXED else "does not begin with spark."
                raise RivermarkError(
                    f"setting spark_conf (RIVERMARK_SPARK_CONF): {name!r} {reason}; leave it out"
                )
        for setting in ("home", "state_root", "query_folder"):
            place = str(getattr(self, setting))
            if ADDRESS.match(place):
                raise RivermarkError(
                    f"setting {setting} ({PREFIX}{setting.upper()}): {place!r} is an address, and "
                    "this folder must lie on a disk; name a folder by its path "
                    "(only lake_root and landing_root may be addresses)"
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
