"""The type that `define_asset_job` returns; Dagster 1.13 has no public name for it."""

from dagster._core.definitions.unresolved_asset_job_definition import (
    UnresolvedAssetJobDefinition as AssetJob,
)

__all__ = ["AssetJob"]
