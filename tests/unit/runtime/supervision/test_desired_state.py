from datetime import UTC, datetime
from pathlib import Path

import pytest

from rivermark.model.errors import UnknownStream
from rivermark.runtime.supervision.desired_state import DesiredStore


def test_a_group_that_nobody_set_rests(tmp_path: Path) -> None:
    wish = DesiredStore(tmp_path).get("taxi")

    assert wish.state == "paused"
    assert wish.at is None
    assert DesiredStore(tmp_path).all() == {}


def test_a_wish_is_kept_with_its_author_time_and_reason(tmp_path: Path) -> None:
    before = datetime.now(UTC)
    DesiredStore(tmp_path).set("taxi", "run", by="ada", reason="the demo")

    # Another store, as another process would open it.
    wish = DesiredStore(tmp_path).get("taxi")
    assert (wish.state, wish.by, wish.reason) == ("run", "ada", "the demo")
    assert wish.at is not None
    assert before <= wish.at <= datetime.now(UTC)


def test_the_last_wish_holds(tmp_path: Path) -> None:
    store = DesiredStore(tmp_path)
    store.set("taxi", "run", by="ada", reason="")
    store.set("taxi", "paused", by="ben", reason="maintenance")
    store.set("web", "run", by="ada", reason="")

    assert {group: wish.state for group, wish in store.all().items()} == {
        "taxi": "paused",
        "web": "run",
    }


@pytest.mark.parametrize("damage", ['{"state": "ru', '"sprint"'], ids=["cut", "unknown words"])
def test_a_damaged_wish_lets_the_group_rest_and_says_why(tmp_path: Path, damage: str) -> None:
    store = DesiredStore(tmp_path)
    store.set("taxi", "run", by="ada", reason="")
    path = tmp_path / "desired" / "taxi.json"
    path.write_text(damage if damage[0] == "{" else path.read_text().replace('"run"', damage))

    wish = store.get("taxi")
    assert wish.state == "paused"
    assert wish.problem is not None
    assert "taxi.json" in wish.problem

    store.set("taxi", "run", by="ada", reason="again")
    assert store.get("taxi").problem is None


def test_a_group_that_would_leave_the_state_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownStream):
        DesiredStore(tmp_path).set("../taxi", "run", by="ada", reason="")
