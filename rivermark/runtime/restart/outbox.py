"""Messages for people, in a durable queue: one for each cause, and one more when it is over.

Who finds trouble only writes it down, which takes no time; `notification` sends it, in a process of
its own. Each notice is a file, so that a kill between any two steps loses none; one may come twice.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from rivermark.runtime.supervision import state_file
from rivermark.runtime.supervision.state_file import UnreadableState

WAITS: Final = tuple(timedelta(seconds=s) for s in (5, 15, 60, 300, 900, 1800))
"""How long a message that could not be sent waits before its next try; the last one repeats."""
LOCK_SECONDS: Final = 5.0
FORGOTTEN: Final = timedelta(days=2)
"""How long the end of a trouble is tried to be sent: later it is no help any more."""


@dataclass(frozen=True, kw_only=True)
class Trouble:
    """Something that a person has to see. The same `cause` is one message, whatever it stops.

    `about` names the stream, group or check. What is `within` other causes, all of which are open,
    is sent with these.
    """

    cause: str
    about: str
    message: str
    within: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Notice:
    """One message and how far it has come. `owners` are those who say that its cause goes on.

    `taken` are the receivers that have it, where others do not yet.
    """

    cause: str
    message: str
    at: datetime
    owners: tuple[str, ...]
    over_at: datetime | None = None
    sent: bool = False
    tries: int = 0
    due: datetime
    error: str = ""
    taken: tuple[str, ...] = ()

    @property
    def waits(self) -> bool:
        """True if it is to be sent: as it began, or that it is over."""
        return not self.sent or self.over_at is not None

    @property
    def text(self) -> str:
        """The words that are sent."""
        if self.over_at is None or not self.sent:
            return self.message
        return f"over since {self.over_at:%Y-%m-%d %H:%M} UTC: {self.message}"


class Outbox:
    """The notices of a deployment, in `<state root>/notices`."""

    def __init__(self, state_root: str | Path) -> None:
        self.folder = Path(state_root) / "notices"

    def update(
        self,
        owner: str,
        troubles: Iterable[Trouble],
        now: datetime | None = None,
        *,
        all_seen: bool = True,
    ) -> list[Notice]:
        """Write down all that an owner finds wrong now; what it no longer finds is over.

        Nothing is over while the owner has not looked at all (`all_seen`), as after its start. What
        was over before it was sent is not sent at all. Returns the notices that are new.
        """
        now = now or datetime.now(UTC)
        troubles = list(troubles)
        if not troubles and not self.folder.is_dir():
            return []
        with self._locked():
            notices = {notice.cause: notice for notice in self._read()}
            going_on = {cause for cause, each in notices.items() if each.over_at is None}
            messages = _by_cause(troubles, going_on)
            new = [cause for cause in messages if cause not in notices]
            for cause, notice in notices.items():
                if all_seen or cause in messages:
                    self._revise(owner, notice, messages.get(cause), now)
            for cause in new:
                self._write(
                    Notice(cause=cause, message=messages[cause], at=now, owners=(owner,), due=now)
                )
            return [notice for notice in self._read() if notice.cause in new]

    def due(self, now: datetime | None = None) -> list[Notice]:
        """The notices to be sent now, the oldest first."""
        now = now or datetime.now(UTC)
        notices = [each for each in self._read() if each.waits and each.due <= now]
        return sorted(notices, key=lambda notice: notice.at)

    def notices(self) -> list[Notice]:
        """All that is open, or not yet sent to be over."""
        return sorted(self._read(), key=lambda notice: notice.at)

    def tried(
        self,
        notice: Notice,
        error: str | None,
        now: datetime | None = None,
        *,
        taken: Iterable[str] = (),
    ) -> None:
        """Record that a notice was sent, or why not: then it is due again after a growing wait.

        `taken` are the receivers that have it all the same.
        """
        now = now or datetime.now(UTC)
        with self._locked():
            try:
                current = state_file.read(self._path(notice.cause), Notice)
            except UnreadableState:
                return
            if current is None:
                return
            if error is not None:
                wait = WAITS[min(current.tries, len(WAITS) - 1)]
                failed = replace(current, tries=current.tries + 1, due=now + wait, error=error)
                if notice.over_at == current.over_at:
                    failed = replace(failed, taken=tuple(sorted(taken)))
                forgotten = current.sent and now - (current.over_at or now) > FORGOTTEN
                self._remove(current) if forgotten else self._write(failed)
            elif not notice.sent:
                self._write(replace(current, sent=True, tries=0, due=now, error="", taken=()))
            elif current.over_at is not None:
                self._remove(current)

    def _revise(self, owner: str, notice: Notice, message: str | None, now: datetime) -> None:
        """Write a notice again where its owner finds more or less of it than before."""
        others = tuple(each for each in notice.owners if each != owner)
        if message is not None:
            owners = notice.owners if owner in notice.owners else (*notice.owners, owner)
            if owners != notice.owners or notice.over_at is not None:
                self._write(replace(notice, owners=owners, over_at=None))
        elif owner not in notice.owners:
            return
        elif others:
            self._write(replace(notice, owners=others))
        elif not notice.sent:
            self._remove(notice)
        else:
            over = replace(notice, owners=(), over_at=now, tries=0, due=now, error="", taken=())
            self._write(over)

    def _read(self) -> Iterator[Notice]:
        for path in sorted(self.folder.glob("*.json")):
            try:
                notice = state_file.read(path, Notice)
            except UnreadableState:
                # Its cause is found again at the next look, under the same name.
                path.unlink(missing_ok=True)
                continue
            if notice is not None:
                yield notice

    def _write(self, notice: Notice) -> None:
        state_file.write(self._path(notice.cause), notice)

    def _remove(self, notice: Notice) -> None:
        self._path(notice.cause).unlink(missing_ok=True)

    def _path(self, cause: str) -> Path:
        return self.folder / f"{hashlib.sha256(cause.encode()).hexdigest()[:24]}.json"

    @contextmanager
    def _locked(self) -> Iterator[None]:
        descriptor = state_file.lock(self.folder / ".lock", LOCK_SECONDS)
        try:
            yield
        finally:
            if descriptor is not None:
                os.close(descriptor)


def _by_cause(troubles: Iterable[Trouble], going_on: set[str]) -> dict[str, str]:
    """The message of each cause; others of the same cause are named behind the first."""
    first: dict[str, Trouble] = {}
    also: dict[str, list[str]] = {}
    for trouble in troubles:
        within = trouble.within if trouble.within and going_on.issuperset(trouble.within) else ()
        for cause in within or (trouble.cause,):
            if cause not in first:
                first[cause] = trouble
            elif trouble.about != first[cause].about:
                also.setdefault(cause, []).append(trouble.about)
    return {
        cause: trouble.message
        + (f" (also {', '.join(dict.fromkeys(also[cause]))})" if cause in also else "")
        for cause, trouble in first.items()
    }
