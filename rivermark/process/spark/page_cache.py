"""Pages of state that a Python worker has read already: Spark would send them again each batch."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

MOST_BYTES: Final = 512 * 1024 * 1024


class PageCache:
    """The pages that were used last, by their identity: a hash of what is in them.

    So what is here can't be out of date, whichever buckets, batches, attempts and streams a worker
    is given. It holds `most` bytes.
    """

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most = most
        self._pages: OrderedDict[bytes, bytes] = OrderedDict()
        self._bytes = 0

    def get(self, identity: bytes, read: Callable[[], bytes | None]) -> bytes | None:
        """The pages of this identity, by `read` where they are not here."""
        pages = self._pages.get(identity)
        if pages is None:
            pages = read()
            if pages is not None:
                self._keep(identity, pages)
        else:
            self._pages.move_to_end(identity)
        return pages

    def _keep(self, identity: bytes, pages: bytes) -> None:
        self._pages[identity] = pages
        self._bytes += len(pages)
        while self._bytes > self._most:
            self._bytes -= len(self._pages.popitem(last=False)[1])


CACHE: Final = PageCache()
"""That of this process."""
