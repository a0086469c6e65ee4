import pytest

from rivermark.cli.deployment import members, selected
from rivermark.model.errors import UnknownStream
from tests.unit.cli.conftest import SHOP


def names(*streams: str, groups: tuple[str, ...] = (), upstream: bool = False) -> list[str]:
    return [s.name for s in selected(SHOP, streams, groups, upstream=upstream)]


def test_nothing_said_means_every_stream() -> None:
    assert names() == ["shop/orders", "shop/hourly", "shop/busiest"]


def test_streams_come_in_the_order_in_which_they_depend() -> None:
    assert names("shop/busiest", "shop/orders") == ["shop/orders", "shop/busiest"]


def test_a_group_and_a_stream_together_are_each_there_once() -> None:
    assert names("shop/orders", groups=("shop",)) == ["shop/orders", "shop/hourly"]


def test_upstream_brings_all_that_is_read_however_far() -> None:
    assert names("shop/busiest", upstream=True) == ["shop/orders", "shop/hourly", "shop/busiest"]
    assert names(groups=("reports",), upstream=True) == names()


def test_unknown_names_are_answered_with_the_known_ones() -> None:
    with pytest.raises(UnknownStream, match="shop/hourly"):
        names("shop/daily")
    with pytest.raises(UnknownStream, match="there are: reports, shop"):
        members(SHOP, "kitchen")
