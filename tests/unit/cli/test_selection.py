import pytest

from rivermark.cli.deployment import selected
from rivermark.model.errors import UnknownStream
from tests.unit.cli.conftest import SHOP

ALL = ["shop/orders", "shop/hourly", "shop/busiest"]


@pytest.mark.parametrize(
    ("streams", "groups", "upstream", "names"),
    [
        pytest.param((), (), False, ALL, id="nothing said means every stream"),
        pytest.param(
            ("shop/busiest", "shop/orders"), (), False, ["shop/orders", "shop/busiest"],
            id="in the order in which they depend",
        ),
        pytest.param(
            ("shop/orders",), ("shop",), False, ["shop/orders", "shop/hourly"],
            id="a group and a stream together, each once",
        ),
        pytest.param(("shop/busiest",), (), True, ALL, id="all that is read however far"),
        pytest.param((), ("reports",), True, ALL, id="all that a group reads"),
    ],
)  # fmt: skip
def test_streams_are_selected(
    streams: tuple[str, ...], groups: tuple[str, ...], upstream: bool, names: list[str]
) -> None:
    assert [s.name for s in selected(SHOP, streams, groups, upstream=upstream)] == names


def test_unknown_names_are_answered_with_the_known_ones() -> None:
    with pytest.raises(UnknownStream, match="shop/hourly"):
        selected(SHOP, ["shop/daily"], (), upstream=False)
    with pytest.raises(UnknownStream, match="there are: reports, shop"):
        SHOP.group("kitchen")
