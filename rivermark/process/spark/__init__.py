"""Process functions on Spark: as the `build` of a stream, over live input and over tables alike.

Relied on beyond PySpark's public interface, as of version 4.2.0:

- `pyspark.sql.pandas.types`: the Arrow types of a schema (`reading`, `writing`, `replaying`);
  another version fails when a stream is declared.
- The worker asks a row of a stateful operator for `asDict` and nothing else (`stateful.Packed`);
  another version fails in the first batch.
- The source `rate-micro-batch`, which Spark keeps for its tests (`build.ticks`): streams with
  `clock=True` alone; without it they fail at their start.
- A shuffle places a row by `pmod(murmur3(column, 42), partitions)` (`buckets`): otherwise buckets
  are spread less evenly, and results stay the same.
"""

from __future__ import annotations

from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rivermark.process.spark.build import ProcessBuild, run_process
    from rivermark.process.spark.writing import (
        DEAD_LETTER_SCHEMA,
        Tagged,
        dead_letters,
        main_rows,
        side_rows,
    )

__all__ = [
    "DEAD_LETTER_SCHEMA",
    "ProcessBuild",
    "Tagged",
    "dead_letters",
    "main_rows",
    "run_process",
    "side_rows",
]


def __getattr__(name: str) -> Any:
    """Look a name up when it is first used, so that `stateful` is imported without Arrow."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = "build" if name in {"ProcessBuild", "run_process"} else "writing"
    globals()[name] = public = resolve_name(f"{__name__}.{module}:{name}")
    return public
