"""Determinism of key functions: one key for an event, wherever and whenever it is computed.

The task that reads an event sends it to the bucket of its key, and the worker that has the bucket
asks for the key again. A function of the clock, of chance or of the process (`hash`, `id`) gives
another one there, and the state of a key would lie in several buckets.
"""

from __future__ import annotations

from typing import Final

from rivermark.process.api.inputs import Arrivals, key_getter
from rivermark.process.errors import Misuse, ProcessError
from rivermark.process.spark.buckets import bucket_of
from rivermark.process.spark.reading import InputReader

SAMPLE: Final = 64
"""How many events of a batch and bucket are looked at, spread over it, the first among them."""


def check_keys(reader: InputReader, arrivals: Arrivals, bucket: int, buckets: int) -> None:
    """Raise ProcessError where the key of an event is not the one that it was sent by."""
    spec = reader.spec
    if spec.key is None or not arrivals.keys:
        return
    get = key_getter(spec.key)
    for place in range(0, len(arrivals.keys), -(-len(arrivals.keys) // SAMPLE)):
        key, event = arrivals.keys[place], arrivals.rows[place]
        try:
            sent = bucket_of(key, buckets)
        except TypeError:
            continue  # of a wrong type, which is reported when it is handled
        if sent != bucket or get(event) != key:
            at = 0 if arrivals.times is None else arrivals.times[place]
            problem = Misuse(
                f"the key of input '{spec.name}' is not deterministic: the worker computes another "
                "one for this event than the task that read it. A key depends on its event alone, "
                "not on the clock, on chance, on hash() or on id(). State of such a key lies in "
                "several buckets: correct the function, then start over with rivermark reset"
            )
            raise ProcessError(reader.process, key, event, at, problem)
