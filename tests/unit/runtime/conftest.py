"""A lease that is held is refused soon: what a test holds is not given back meanwhile."""

from __future__ import annotations

from datetime import timedelta

import pytest

from rivermark.runtime.supervision import lease


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease, "PATIENCE", timedelta(milliseconds=50))
