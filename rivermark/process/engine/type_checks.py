"""Whether what one event left could be stored and written: asked where an event can be set aside.

Without dead letters the same is found when the batch ends, and the batch fails.
"""

from __future__ import annotations

from itertools import islice

from rivermark.process.api.side_outputs import Outputs
from rivermark.process.engine.binding import Binding
from rivermark.process.engine.bucket import Bucket
from rivermark.process.engine.undo import Undo


class Verifier:
    """Looks at the records that a handler was given and at the rows that it wrote."""

    def __init__(self, binding: Binding, bucket: Bucket, outputs: Outputs) -> None:
        """Look into this bucket and these outputs."""
        declared = binding.declaration
        self._binding = binding
        self._bucket = bucket
        sides = [(outputs.sides[tag], spec.row) for tag, spec in declared.sides.items()]
        self._written = [(outputs.main, declared.out), *sides]

    def __call__(self, undo: Undo) -> None:
        """Raise Misuse for what could not be stored or is not of the declared types."""
        for key in undo.touched:
            record = self._bucket.records.get(key)
            if record.__class__ is list:
                self._binding.verify(key, record)
        for (rows, row), size in zip(self._written, undo.sizes, strict=True):
            if row is not None:
                for each in islice(rows, size, None):
                    row.verify_deeply(each)
