"""Comparisons and three-valued logic, as Spark has them.

Spark evaluates from left to right and stops where the outcome is certain. A row whose outcome
hangs on a value in doubt is in doubt itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rivermark.ingest.parse.lane.lines import Mask
from rivermark.ingest.parse.rules.literals import inner
from rivermark.ingest.parse.rules.numbers import same_type
from rivermark.ingest.parse.rules.vector import Type, Untranslatable, Vector, both, either

BOOLEAN = Type("boolean")
NOWHERE = np.zeros(1, np.bool_)
NUMPY: dict[str, Callable[[Any, Any], Any]] = {
    "EqualTo": np.equal,
    "LessThan": np.less,
    "LessThanOrEqual": np.less_equal,
    "GreaterThan": np.greater,
    "GreaterThanOrEqual": np.greater_equal,
}
ARROW: dict[str, Callable[[Any, Any], Any]] = {
    "EqualTo": pc.equal,
    "LessThan": pc.less,
    "LessThanOrEqual": pc.less_equal,
    "GreaterThan": pc.greater,
    "GreaterThanOrEqual": pc.greater_equal,
}


def compare(name: str, left: Vector, right: Vector) -> Vector:
    """One of the five comparisons; of texts by their bytes."""
    valid, doubtful = both(left.valid, right.valid), either(left.doubtful, right.doubtful)
    if left.type.kind == "text" and right.type.kind == "text":
        values = ARROW[name](*(scalar_or_all(side.values) for side in (left, right)))
        return Vector(BOOLEAN, bools(values), valid, doubtful)
    left, right = same_type(left, right)
    doubtful = either(either(left.doubtful, right.doubtful), doubtful)
    if left.type.kind == "double":
        # NaN equals itself in Spark, and is larger than any other.
        doubtful = either(doubtful, np.isnan(left.values) | np.isnan(right.values))
    return Vector(BOOLEAN, NUMPY[name](left.values, right.values), valid, doubtful)


def scalar_or_all(texts: pa.Array) -> pa.Array | pa.Scalar:
    """A text that stands for all rows as Arrow's functions take it."""
    return texts[0] if len(texts) == 1 else texts


def bools(values: pa.Array | pa.Scalar) -> Mask:
    """What an Arrow function says of each row, false where it says nothing."""
    if isinstance(values, pa.Scalar):
        return np.array([bool(values.as_py())])
    mask: Mask = pc.fill_null(values, False).to_numpy(zero_copy_only=False)
    return mask


def conjunction(left: Vector, right: Vector) -> Vector:
    """AND: false where one side is, else null where one side is."""
    return _joined(left, right, decisive=False)


def disjunction(left: Vector, right: Vector) -> Vector:
    """OR: true where one side is, else null where one side is."""
    return _joined(left, right, decisive=True)


def _joined(left: Vector, right: Vector, *, decisive: bool) -> Vector:
    """Two conditions of which one value of either decides."""
    if left.type != BOOLEAN or right.type != BOOLEAN:
        raise Untranslatable("a condition that is no boolean")
    values = left.values | right.values if decisive else left.values & right.values
    if left.valid is None and right.valid is None and right.doubtful is None:
        return Vector(BOOLEAN, values, None, left.doubtful)
    decided = [_certainly(side, value=decisive) for side in (left, right)]
    known = both(left.valid, right.valid)
    valid = None if known is None else known | decided[0] | decided[1]
    values = np.where(decided[0] | decided[1], decisive, values)
    doubtful = left.doubtful
    if right.doubtful is not None:
        doubtful = either(doubtful, right.doubtful & ~decided[0])
    return Vector(BOOLEAN, values, valid, doubtful)


def _certainly(side: Vector, *, value: bool) -> Mask:
    """Where a side has a value, without doubt."""
    mask: Mask = side.values if value else ~side.values
    for reason, wanted in ((side.valid, True), (side.doubtful, False)):
        if reason is not None:
            mask = mask & (reason if wanted else ~reason)
    return mask


def negation(side: Vector) -> Vector:
    """NOT."""
    if side.type != BOOLEAN:
        raise Untranslatable("a condition that is no boolean")
    return Vector(BOOLEAN, ~side.values, side.valid, side.doubtful)


def is_null(side: Vector) -> Vector:
    """Whether there is no value."""
    nothing = NOWHERE if side.valid is None else ~side.valid
    return Vector(BOOLEAN, nothing, None, side.doubtful)


def null_safe_equal(left: Vector, right: Vector) -> Vector:
    """Whether both are the same value, or both null."""
    equal = compare("EqualTo", left, right)
    if equal.valid is None:
        return equal
    none = is_null(left).values & is_null(right).values
    return Vector(BOOLEAN, np.where(equal.valid, equal.values, none), None, equal.doubtful)


def is_in(value: Vector, candidates: Sequence[Vector]) -> Vector:
    """IN: true where one equals, else null where one is null."""
    outcome = compare("EqualTo", value, candidates[0])
    for candidate in candidates[1:]:
        outcome = disjunction(outcome, compare("EqualTo", value, candidate))
    # A value that is null is compared with nothing; the doubt of one candidate is that of all.
    return outcome


def is_in_set(value: Vector, constants: Sequence[str | None]) -> Vector:
    """IN of many constants, which are texts as Spark writes its own values.

    Raises:
        Untranslatable: constants of doubles, of which two zeros are equal, and of no Unicode.
    """
    texts = [text for text in constants if text is not None]
    if any("\ufffd" in text for text in texts):
        raise Untranslatable("texts that were replaced")
    if value.type.kind == "text":
        holds = bools(pc.is_in(value.values, pa.array(texts, pa.string())))
    else:
        holds = np.isin(value.values, np.array([inner(value.type, t) for t in texts], np.int64))
    # Beside a null, what equals none of the others may equal that.
    valid = value.valid if len(texts) == len(constants) else both(holds, value.valid)
    return Vector(BOOLEAN, holds, valid, value.doubtful)


def first_true(branches: Sequence[tuple[Vector, Vector]], otherwise: Vector | None) -> Vector:
    """CASE WHEN: the value of the first condition that is true; null for none without ELSE."""
    kind = branches[0][1].type
    valid: Mask | None
    doubtful: Mask | None
    if any(v.type != kind for v in [b[1] for b in branches] + ([otherwise] if otherwise else [])):
        raise Untranslatable("branches of several types")
    if otherwise is None:
        values, valid, doubtful = branches[0][1].values, NOWHERE, None
    else:
        values, valid, doubtful = otherwise.values, otherwise.valid, otherwise.doubtful
    for condition, value in reversed(branches):
        holds = _certainly(condition, value=True)
        values = choose(holds, value.values, values)
        valid = _chosen(holds, value.valid, valid, missing=True)
        doubtful = _chosen(holds, value.doubtful, doubtful, missing=False)
        doubtful = either(doubtful, condition.doubtful)
    return Vector(kind, values, valid, doubtful)


def coalesce(values: Sequence[Vector]) -> Vector:
    """The first value that is not null."""
    branches = [(negation(is_null(value)), value) for value in values[:-1]]
    return first_true(branches, values[-1]) if branches else values[0]


def choose(holds: Mask, yes: Any, no: Any) -> Any:
    """The values of one side where a condition holds, else those of the other."""
    if not isinstance(yes, pa.Array):
        return np.where(holds, yes, no)
    if len(holds) == 1:
        return yes if holds[0] else no
    return pc.if_else(pa.array(holds), scalar_or_all(yes), scalar_or_all(no))


def _chosen(holds: Mask, yes: Mask | None, no: Mask | None, *, missing: bool) -> Mask | None:
    if yes is None and no is None:
        return None
    mask: Mask = np.where(holds, missing if yes is None else yes, missing if no is None else no)
    return mask
