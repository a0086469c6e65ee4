"""Small files beside the tables, on any storage that Arrow reaches (disk, S3, GCS, HDFS)."""

from __future__ import annotations

from pathlib import Path

from pyarrow import fs


def filesystem(uri: str) -> tuple[fs.FileSystem, str]:
    """The file system of a path or URI, and the path inside it."""
    if "://" in uri or uri.startswith("file:"):
        found, path = fs.FileSystem.from_uri(uri)
        return found, path
    return fs.LocalFileSystem(), str(Path(uri).resolve())


def is_local(uri: str) -> bool:
    """Whether the path lies on this machine's own file system."""
    # By the text alone: to open an object store may ask the network where the bucket lies.
    return "://" not in uri or uri.startswith("file:")
