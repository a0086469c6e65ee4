"""Process functions on Spark: as the `build` of a stream, over live input and over tables alike."""

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
