"""R19: arguments of `per_window` in another order are told in one sentence."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from rivermark import DeclarationError
from rivermark.operators import TumblingWindow, per_window

WINDOW = TumblingWindow(timedelta(hours=1))


@pytest.mark.parametrize("given", [(WINDOW, "rows", "at"), ("rows", "at", WINDOW), (1, WINDOW, 2)])
def test_r19_windows_rows_and_times_in_another_order_are_refused(given: tuple[Any, ...]) -> None:
    with pytest.raises(DeclarationError, match="takes the rows, a window and the name of the"):
        per_window(*given)
