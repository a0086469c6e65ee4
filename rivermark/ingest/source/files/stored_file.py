"""A landed file's bytes, with faults of the store told apart from faults of the file."""

from __future__ import annotations

import io
from typing import Any

from pyarrow import fs


class StoreFault(Exception):
    """The store did not deliver a file's bytes. It says nothing about the file, and may pass."""


class _Bytes(io.RawIOBase):
    """A file of a store; decoders raise errors of every type, OSError included."""

    def __init__(self, store: fs.FileSystem, path: str) -> None:
        try:
            self._file = store.open_input_file(path)
        except OSError as error:
            raise fault(error) from error

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            content = self._file.read(len(buffer))
        except OSError as error:
            raise fault(error) from error
        buffer[: len(content)] = content
        return len(content)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._file.seek(offset, whence)
        position: int = self._file.tell()
        return position

    def tell(self) -> int:
        position: int = self._file.tell()
        return position

    def close(self) -> None:
        if not self.closed:
            file = getattr(self, "_file", None)
            if file is not None:
                file.close()
        super().close()


def open_stored(store: fs.FileSystem, path: str) -> io.BufferedReader:
    """Open a file for reading.

    Raises:
        StoreFault: here and at every read, where the store raises OSError.
    """
    return io.BufferedReader(_Bytes(store, path), 1 << 16)


def fault(error: OSError) -> StoreFault:
    """The fault by its name where the system has one for it, else by its message."""
    named = isinstance(error, PermissionError | FileNotFoundError | IsADirectoryError)
    return StoreFault(type(error).__name__ if named else str(error))
