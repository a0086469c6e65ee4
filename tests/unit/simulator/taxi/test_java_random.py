"""Expected numbers were printed by java.util.Random and java.lang.StrictMath of OpenJDK 17."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.taxi.java_random import JavaRandom
from simulator.taxi.java_random_many import JavaRandoms
from simulator.taxi.strict_log import strict_log

STRICT_LOG_OF_200_000_DOUBLES = 8853812402177994574
ANY_SEED = st.integers(min_value=-(2**63), max_value=2**63 - 1)


def test_whole_numbers_below_a_bound_are_those_of_java() -> None:
    random = JavaRandom(42)

    assert [random.next_int(100) for _ in range(5)] == [30, 63, 48, 84, 70]


def test_a_bound_that_is_a_power_of_two_takes_the_high_bits() -> None:
    random = JavaRandom(42)

    assert [random.next_int(8) for _ in range(5)] == [5, 0, 5, 0, 2]


def test_numbers_of_the_incomplete_last_run_are_drawn_again() -> None:
    random = JavaRandom(5)

    # With this bound nearly half of all draws are refused.
    drawn = [random.next_int((1 << 30) + 1) for _ in range(6)]
    assert drawn == [379250092, 189533474, 1049914506, 991787854, 963357722, 918177321]


def test_doubles_are_those_of_java() -> None:
    random = JavaRandom(7)

    assert [random.next_double() for _ in range(4)] == [
        0.7306990420600421,
        0.7491696031336331,
        0.34830970303125697,
        0.8972771427421047,
    ]


def test_gaussian_numbers_are_those_of_java() -> None:
    random = JavaRandom(0)

    assert [random.next_gaussian() for _ in range(3)] == [
        0.8025330637390305,
        -0.9015460884175122,
        2.080920790428163,
    ]


def test_a_negative_seed_is_a_seed() -> None:
    random = JavaRandom(-3)

    assert (random.next_int(1000), random.next_gaussian()) == (164, -0.6811953534758975)


@pytest.mark.parametrize(
    ("seed", "shuffled"),
    [
        (0, [5, 3, 2, 4, 1]),
        (5, [4, 2, 5, 1, 3]),
        (10, [5, 3, 1, 2, 4]),
        (15, [3, 1, 5, 4, 2]),
    ],
)
def test_a_shuffle_is_that_of_java_collections(seed: int, shuffled: list[int]) -> None:
    items = [1, 2, 3, 4, 5]

    JavaRandom(seed).shuffle(items)

    assert items == shuffled


@pytest.mark.parametrize("bound", [0, -1, 1 << 31])
def test_a_bound_that_java_does_not_know_is_refused(bound: int) -> None:
    with pytest.raises(ValueError, match="bound"):
        JavaRandom(1).next_int(bound)


def test_the_logarithm_is_that_of_strict_math() -> None:
    random = JavaRandom(99)
    drawn = np.array([random.next_double() for _ in range(200_000)])
    folded = 0
    for bits in strict_log(drawn).view(np.int64).tolist():
        folded = (folded * 31 + bits) % (1 << 64)

    assert folded == STRICT_LOG_OF_200_000_DOUBLES
    assert (strict_log(drawn) != np.log(drawn)).any()


@given(st.lists(ANY_SEED, min_size=1, max_size=20))
def test_many_sequences_side_by_side_are_each_their_own(seeds: list[int]) -> None:
    alone = [JavaRandom(seed) for seed in seeds]
    together = JavaRandoms(np.array(seeds, dtype=np.int64))

    for _ in range(5):
        assert together.next_gaussian().tolist() == [random.next_gaussian() for random in alone]
    assert together.next_int(200).tolist() == [random.next_int(200) for random in alone]


def test_sequences_that_are_not_kept_do_not_disturb_the_others() -> None:
    together = JavaRandoms(np.arange(6))
    together.next_gaussian()

    together.keep(np.array([False, True, False, False, True, False]))

    kept = [JavaRandom(1), JavaRandom(4)]
    for random in kept:
        random.next_gaussian()
    for _ in range(3):
        assert together.next_gaussian().tolist() == [random.next_gaussian() for random in kept]


def test_a_refused_number_is_drawn_again_in_its_own_sequence() -> None:
    bound = (1 << 30) + 1
    alone = [JavaRandom(seed) for seed in range(50)]

    together = JavaRandoms(np.arange(50)).next_int(bound)

    assert together.tolist() == [random.next_int(bound) for random in alone]
