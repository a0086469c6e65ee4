"""Expected numbers were printed by java.util.Random and java.lang.StrictMath of OpenJDK 17."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.taxi.java_random import INCREMENT, MULTIPLIER, STATE_MASK, JavaRandom
from simulator.taxi.java_random_many import DOUBLE_UNIT, JavaRandoms
from simulator.taxi.strict_log import strict_log

STRICT_LOG_OF_200_000_DOUBLES = 8853812402177994574
ANY_SEED = st.integers(min_value=-(2**63), max_value=2**63 - 1)
HALF_ARE_REFUSED = (1 << 30) + 1
"""With this bound nearly half of all draws are refused and drawn again."""


@pytest.mark.parametrize(
    ("seed", "bound", "drawn"),
    [
        (42, 100, [30, 63, 48, 84, 70]),
        (42, 8, [5, 0, 5, 0, 2]),
        (
            5,
            HALF_ARE_REFUSED,
            [379250092, 189533474, 1049914506, 991787854, 963357722, 918177321],
        ),
    ],
)
def test_whole_numbers_below_a_bound_are_those_of_java(
    seed: int, bound: int, drawn: list[int]
) -> None:
    random = JavaRandom(seed)

    assert [random.next_int(bound) for _ in drawn] == drawn


@pytest.mark.parametrize("bound", [0, -1, 1 << 31])
def test_a_bound_that_java_does_not_know_is_refused(bound: int) -> None:
    with pytest.raises(ValueError, match="bound"):
        JavaRandom(1).next_int(bound)


def test_gaussian_numbers_are_those_of_java() -> None:
    random = JavaRandoms(np.array([0]))
    negative = JavaRandoms(np.array([-3]))

    assert [random.next_gaussian()[0] for _ in range(3)] == [
        0.8025330637390305,
        -0.9015460884175122,
        2.080920790428163,
    ]
    assert (negative.next_int(1000)[0], negative.next_gaussian()[0]) == (164, -0.6811953534758975)


def doubles(seed: int, count: int) -> list[float]:
    """What `nextDouble` of one sequence gives."""
    state, found = (seed ^ MULTIPLIER) & STATE_MASK, []
    for _ in range(count):
        high = state = (state * MULTIPLIER + INCREMENT) & STATE_MASK
        state = (state * MULTIPLIER + INCREMENT) & STATE_MASK
        found.append((((high >> 22) << 27) + (state >> 21)) * DOUBLE_UNIT)
    return found


def test_the_logarithm_is_that_of_strict_math() -> None:
    drawn = np.array(doubles(99, 200_000))
    folded = 0
    for bits in strict_log(drawn).view(np.int64).tolist():
        folded = (folded * 31 + bits) % (1 << 64)

    assert folded == STRICT_LOG_OF_200_000_DOUBLES
    assert (strict_log(drawn) != np.log(drawn)).any()


@given(st.lists(ANY_SEED, min_size=1, max_size=20))
def test_many_sequences_side_by_side_are_each_their_own(seeds: list[int]) -> None:
    alone = [JavaRandoms(np.array([seed], dtype=np.int64)) for seed in seeds]
    together = JavaRandoms(np.array(seeds, dtype=np.int64))

    for _ in range(5):
        assert together.next_gaussian().tolist() == [random.next_gaussian()[0] for random in alone]
    assert together.next_int(200).tolist() == [random.next_int(200)[0] for random in alone]


def test_sequences_that_are_not_kept_do_not_disturb_the_others() -> None:
    together = JavaRandoms(np.arange(6))
    together.next_gaussian()

    together.keep(np.array([False, True, False, False, True, False]))

    kept = [JavaRandoms(np.array([seed])) for seed in (1, 4)]
    for random in kept:
        random.next_gaussian()
    for _ in range(3):
        assert together.next_gaussian().tolist() == [random.next_gaussian()[0] for random in kept]


def test_a_refused_number_is_drawn_again_in_its_own_sequence() -> None:
    alone = [JavaRandom(seed) for seed in range(50)]

    together = JavaRandoms(np.arange(50)).next_int(HALF_ARE_REFUSED)

    assert together.tolist() == [random.next_int(HALF_ARE_REFUSED) for random in alone]
