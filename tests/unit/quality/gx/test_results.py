"""What is taken from results of Great Expectations."""

from rivermark.quality.gx.results import WITHHELD, without_values


def test_counts_are_kept_and_values_are_not() -> None:
    counts = {"element_count": 3, "unexpected_percent": 33.3}
    values = {"partial_unexpected_list": ["a"], "details": {"value_counts": [["a", 1]]}}

    assert without_values(counts | values) == counts
    for observed in (["a"], "a", 7):
        numbers = {"observed_value": observed, **counts, **values}
        assert without_values(numbers) == {"observed_value": WITHHELD, **counts}
