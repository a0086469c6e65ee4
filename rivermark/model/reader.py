"""What reads the text of a value."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column

Reader = Callable[[Column], Column]
"""Turns the text of a value into the field's type; null for a text that it cannot read."""
