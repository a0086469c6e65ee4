"""Declarations turned into Dagster definitions; `definitions` is the table of contents."""
