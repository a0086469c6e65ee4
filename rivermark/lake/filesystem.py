"""Files on any storage that Arrow reaches (disk, S3, GCS, HDFS), written whole or not at all."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from pyarrow import fs

from rivermark.lake.durable import sync, sync_in
from rivermark.lake.full_disk import naming
from rivermark.model.errors import RivermarkError
from rivermark.model.nearest import did_you_mean

DRAFT: Final = re.compile(
    r"\..*[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}\.tmp(\.crc)?"
)
"""A file that its writer had not named yet: ours, and with dashes and checksums Delta's JVM's."""
SCHEMES: Final = ("file", "s3", "gs", "gcs", "hdfs", "viewfs", "abfs", "abfss", "mock")
"""The file systems of Arrow, by which the library reads and writes."""
DRAFTS_KEPT: Final = timedelta(hours=1)


def filesystem(uri: str) -> tuple[fs.FileSystem, str]:
    """The file system of a path or URI, and the path inside it."""
    if "://" in uri or uri.startswith("file:"):
        check_scheme(uri, "a path")
        store, path = fs.FileSystem.from_uri(uri)
        return store, path
    return fs.LocalFileSystem(), str(Path(uri).resolve())


def check_scheme(uri: str, what: str) -> None:
    """Refuse a URI of a file system that Arrow does not have; `what` begins the message.

    Raises:
        RivermarkError: With the schemes that there are.
    """
    scheme, mark, _ = uri.partition("://")
    if mark and scheme.lower() not in SCHEMES and not scheme.startswith("fsspec+"):
        shown = SCHEMES[:-1]
        raise RivermarkError(
            f"{what}: no file system has the scheme of {uri!r}"
            f"{did_you_mean(scheme, shown) or ';'} there are {', '.join(shown)}"
        )


def is_local(uri: str) -> bool:
    """Returns True if the path lies on this machine's own file system."""
    # By the text alone: to open an object store may ask the network where the bucket lies.
    return "://" not in uri or uri.startswith("file:")


def content_of(store: fs.FileSystem, path: str) -> bytes | None:
    """The content of a file; None where it is missing."""
    try:
        with store.open_input_stream(path) as file:
            return bytes(file.read())
    except FileNotFoundError:
        return None


def write_file(uri: str, content: bytes, *, durable: bool = True) -> None:
    """Put the content into a file in one step: a reader sees the old content or the new one.

    Creates the folders. It outlasts a power failure from here on, unless it can be made again at
    any time (`durable=False`).
    """
    store, path = filesystem(uri)
    folder = path.rsplit("/", 1)[0]
    store.create_dir(folder, recursive=True)
    put_file(store, path, content, durable=durable)


def put_file(
    store: fs.FileSystem,
    path: str,
    content: bytes,
    *,
    durable: bool = True,
    drafts: str | None = None,
) -> None:
    """As `write_file`, into a folder that exists.

    `drafts` is the folder of what is not whole yet, where no reader of the file's own may list it.
    """
    folder, name = path.rsplit("/", 1)
    draft = f"{drafts or folder}/{draft_name(name)}"
    try:
        with naming(path), store.open_output_stream(draft) as file:
            file.write(content)
        if durable:
            sync_in(store, [draft])
        store.move(draft, path)
    except BaseException:
        # On a full disk a draft would keep the space that is missing.
        with suppress(OSError):
            store.delete_file(draft)
        raise
    if durable:
        sync_in(store, [folder])


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A hidden path beside `path` on this machine's disk, for whatever wants to write by itself.

    Synced and renamed to `path` at the end of the block, and removed where the block fails.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(draft_name(path.name))
    try:
        with naming(path):
            yield draft
        sync([draft])
        draft.replace(path)
        sync([path.parent])
    finally:
        draft.unlink(missing_ok=True)


def draft_name(name: str) -> str:
    """A hidden name that no other writer of the same file uses; maintenance removes old ones."""
    return f".{name}.{uuid.uuid4().hex}.tmp"


def abandoned_drafts(store: fs.FileSystem, folder: str, now: datetime) -> list[str]:
    """Paths of the drafts in a folder that killed writers left: an hour without a change."""
    oldest = now.astimezone(UTC) - DRAFTS_KEPT
    files = store.get_file_info(fs.FileSelector(folder, allow_not_found=True))
    return sorted(f.path for f in files if DRAFT.fullmatch(f.base_name) and f.mtime < oldest)
