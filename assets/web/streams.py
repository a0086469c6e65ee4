"""The streams of page views."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from assets.web.ingest import FIRST_DAY, GROUP, OWNERS, PAGE_VIEWS
from assets.web.sessions import UserSessions
from assets.web.suites import SESSIONS_SUITE
from rivermark.model.stream import AnyStream, Stream
from rivermark.model.table import Daily, Table
from rivermark.process.spark import run_process

SESSIONS_SHOWN: Final = (
    "Sessions of visitors: events and purchases, ended by ten silent minutes on a phone and thirty "
    "on a desktop."
)

SESSIONS: Final = Stream(
    name="web/sessions",
    reads=(PAGE_VIEWS,),
    build=run_process(UserSessions),
    writes=Table(
        name="web/sessions",
        schema=StructType(
            [
                StructField("user_id", StringType(), True),
                StructField("session_start", TimestampType(), True),
                StructField("session_end", TimestampType(), True),
                StructField("events", LongType(), True),
                StructField("purchases", LongType(), True),
            ]
        ),
        description=SESSIONS_SHOWN,
        event_time="session_end",
        keys=("user_id", "session_start"),
        days=Daily(column="session_start", start=FIRST_DAY),
        personal=("user_id",),
    ),
    description=SESSIONS_SHOWN,
    group=GROUP,
    # A session that lasts longer over midnight would be cut in a day that is computed again.
    margin=timedelta(hours=6),
    suite=SESSIONS_SUITE,
    owners=OWNERS,
)

WEB_STREAMS: Final[tuple[AnyStream, ...]] = (PAGE_VIEWS, SESSIONS)
