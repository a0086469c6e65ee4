"""Seeds of random worlds: few in `make test`, and all in `make stories`."""

import pytest
from _pytest.mark import ParameterSet


def seeds(few: int, count: int) -> list[ParameterSet]:
    """The numbers below `count` as parameters; those from `few` on are long."""
    return [pytest.param(n, marks=() if n < few else pytest.mark.long) for n in range(count)]
