"""Settings shared by the streams of a domain, stated once."""

from __future__ import annotations

from datetime import date
from functools import partial

from rivermark.model.declared import declared
from rivermark.model.names import check_zone
from rivermark.model.stream import Ingest, Stream
from rivermark.model.table import Daily


@declared("domain", lambda values: values.get("group"))
class Domain:
    """The group, the owners and the days that the declarations of a domain have in common.

        TAXI = Domain("taxi_events", owners=("team:taxi",), first_day=date(2020, 1, 1))

        TIPS = TAXI.stream(reads=..., build=..., writes=Table(..., days=TAXI.days("window_start")))

    `ingest`, `stream` and `days` take what `Ingest`, `Stream` and `Daily` take, with these values
    filled in; a declaration that needs another one states it. `zone` is that of the days.
    """

    def __init__(
        self, group: str, *, first_day: date, owners: tuple[str, ...] = (), zone: str = "UTC"
    ) -> None:
        check_zone(f"domain '{group}'", zone)
        # Type checkers know the arguments of a partial, so nothing is listed twice.
        self.ingest = partial(Ingest, group=group, owners=owners)
        self.stream = partial(Stream, group=group, owners=owners)
        self.days = partial(Daily, start=first_day, zone=zone)
