"""Records and timers of a large bucket in pages, of which a batch decodes those that it touches."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final
from zlib import crc32

import msgspec
from msgspec import Raw

from rivermark.process.engine.stored_form import PAGED, Paged, Pages, PagesEnvelope, TimerPages
from rivermark.process.evolution.shapes import TypeShape
from rivermark.process.stored_timers import Due

PAGE_FROM: Final = 64 * 1024
"""Bytes from which a stream keeps a bucket's state in pages: all of it is cheaper below."""

GONE: Final = Raw(msgspec.msgpack.encode(None))
"""In place of a record that was removed since the pages were written."""

_PER_PAGE: Final = 8
_encode: Final = msgspec.msgpack.Encoder().encode


class RecordPages:
    """Stored records by key; a page is decoded when one of its keys is asked for."""

    __slots__ = ("_count", "_decode", "_opened", "_pages")

    def __init__(self, pages: Paged, decode: Callable[[memoryview], dict[Any, Raw]]) -> None:
        self._pages = pages
        self._count = len(pages.ends)
        self._decode = decode
        self._opened: dict[int, dict[Any, Raw]] = {}

    def get(self, key: Any) -> Raw | None:
        """The record of a key; None where the pages have none."""
        number = crc32(_encode(key)) % self._count
        page = self._opened.get(number)
        if page is None:
            page = self._opened[number] = self._decode(self._pages[number])
        return page.get(key)

    def items(self) -> Iterator[tuple[Any, Raw]]:
        """Every key with its record."""
        for number in range(self._count):
            yield from self._decode(self._pages[number]).items()


def finds_keys(key: TypeShape) -> bool:
    """True if equal keys of this type are stored alike, as pages need it: 1.5 and 1.50 are not."""
    inside = (*key.inside, *(each.shape for each in key.fields))
    return key.kind not in ("decimal", "datetime") and all(map(finds_keys, inside))


def written(records: dict[Any, Any], calendars: Sequence[Due]) -> tuple[bytes, bytes]:
    """Pages of all records and timers: their identity, and their stored form."""
    count = max(1, len(records) // _PER_PAGE)
    pages: list[dict[Any, Any]] = [{} for _ in range(count)]
    for key, record in records.items():
        pages[crc32(_encode(key)) % count][key] = record
    first, second, third, fourth = map(_timer_pages, calendars)
    body = _encode(Pages(Paged.of([*map(_encode, pages)]), (first, second, third, fourth)))
    identity = hashlib.blake2b(body, digest_size=16).digest()
    return identity, _encode(PagesEnvelope(PAGED, identity, memoryview(body)))


def _timer_pages(due: Due) -> TimerPages:
    """Timers in pages of some entries; an instant lies in one, however many keys it has."""
    firsts, pages = [], []
    page: Due = {}
    entries = 0
    for at in sorted(due):
        if not page:
            firsts.append(at)
        page[at] = due[at]
        entries += len(due[at])
        if entries >= _PER_PAGE:
            pages.append(_encode(page))
            page, entries = {}, 0
    if page:
        pages.append(_encode(page))
    return TimerPages(firsts, Paged.of(pages), len(due))
