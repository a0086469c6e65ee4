"""Declarations turned into Dagster definitions: assets, checks, jobs, sensors and resources."""
