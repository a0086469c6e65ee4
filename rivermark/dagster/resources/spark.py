"""The Spark session of a run: dagster-pyspark's lazy one, with the platform's own configuration."""

from typing import Any, Self

import dagster as dg
from dagster_pyspark import LazyPySparkResource
from dagster_pyspark.resources import spark_session_from_config
from pydantic import Field, PrivateAttr

from rivermark.dagster.resources.settings import SettingsResource
from rivermark.runtime.spark.class_cache import remember_classes
from rivermark.runtime.spark.cluster import check_executors, is_cluster
from rivermark.runtime.spark.jvm import Kind
from rivermark.runtime.spark.session import prepare_workers, spark_conf


class SparkResource(LazyPySparkResource):
    """Starts the engine when a step first asks for it, so that checks and sensors never do.

    The JVM is that for short runs, unless `for_run` asks for another one before. What
    `spark_config` names wins over the platform's own. The session is never stopped here: it ends
    with the run's process, and in one process there is only ever one.
    """

    platform: dg.ResourceDependency[SettingsResource]
    spark_config: dict[str, Any] = Field(default={})
    _kind: Kind = PrivateAttr(default="short")
    _slots: int = PrivateAttr(default=0)

    def for_run(self, kind: Kind, slots: int = 0) -> Self:
        """This resource, whose engine will be one for such a run where none has begun yet.

        `slots` are those that queries in real time occupy.
        """
        self._kind, self._slots = kind, slots
        return self

    def _init_session(self) -> None:
        if self._spark_session is None:
            settings = self.platform.settings()
            prepare_workers(settings)
            ours = spark_conf(settings, self._kind, self._slots)
            config = ours | self.spark_config
            self._spark_session = spark_session_from_config(config)  # type: ignore[no-untyped-call]
            remember_classes(self._spark_session)
            if is_cluster(settings):
                check_executors(self._spark_session, settings)
