"""Metadata of our commits: JSON as Delta's `userMetadata`, read back by `CommitLog`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from deltalake import CommitProperties


def user_metadata(metadata: Mapping[str, Any]) -> str:
    """The text of a commit's `userMetadata`."""
    return json.dumps(metadata, separators=(",", ":"))


def commit_properties(metadata: Mapping[str, Any], **more: Any) -> CommitProperties:
    """The same, for a commit of delta-rs; `more` are keys of the log that it does not write."""
    return CommitProperties(custom_metadata={"userMetadata": user_metadata(metadata), **more})
