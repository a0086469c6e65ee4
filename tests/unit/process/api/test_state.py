"""Values, lists and maps of a key: kept between batches, checked when written, gone when empty."""

from __future__ import annotations

import pytest

from rivermark.process import Context, KeyedProcess, ListState, MapState, ProcessError, ValueState
from rivermark.process.errors import Misuse
from rivermark.testing import ProcessHarness
from tests.unit.process.readings import NOON, Note, Reading, reading


class Keeps(KeyedProcess[Reading, Note]):
    """Does with its state what the reading's value asks for."""

    key = "sensor"
    time = "at"

    last: ValueState[Reading]
    total: ValueState[int]
    values: ListState[int]
    by_time: MapState[int, list[int]]

    def on_event(self, event: Reading, ctx: Context[Note]) -> None:
        if event.value < 0:
            self.last.clear()
            self.total.value = None
            self.values.clear()
            self.by_time.clear()
            return
        self.last.value = event
        self.total.value = self.total.get(0) + event.value
        self.values.append(event.value)
        self.by_time.setdefault(event.at, []).append(event.value)


@pytest.fixture
def keeps() -> ProcessHarness[Reading, Note]:
    return ProcessHarness(Keeps())


def test_each_key_has_states_of_its_own(keeps: ProcessHarness[Reading, Note]) -> None:
    keeps.feed([reading("a", value=1), reading("b", value=5), reading("a", value=2)])

    assert keeps.state_of("a") == {
        "last": reading("a", value=2),
        "total": 3,
        "values": [1, 2],
        "by_time": {NOON: [1, 2]},
    }
    assert keeps.state_of("b")["total"] == 5
    assert keeps.state_of("c") == {"last": None, "total": None, "values": [], "by_time": {}}


def test_a_key_whose_states_are_cleared_is_forgotten(
    keeps: ProcessHarness[Reading, Note],
) -> None:
    keeps.feed([reading("a", value=1), reading("b", value=1)])
    keeps.feed(reading("a", value=-1))
    assert keeps.all_keys() == ["b"]

    keeps.feed(reading("b", value=-1))
    assert keeps.is_empty()


def test_a_value_of_zero_is_a_value(keeps: ProcessHarness[Reading, Note]) -> None:
    class Zero(Keeps):
        def on_event(self, event: Reading, ctx: Context[Note]) -> None:
            self.total.value = 0

    zero = ProcessHarness(Zero())
    zero.feed(reading("a"))

    assert zero.state_of("a")["total"] == 0
    assert not zero.is_empty()


def test_looking_at_empty_state_leaves_none() -> None:
    class Looks(Keeps):
        def on_event(self, event: Reading, ctx: Context[Note]) -> None:
            ctx.emit(Note(f"{self.total.value} {len(self.values)} {self.by_time.get(1)}"))

    looks = ProcessHarness(Looks())

    assert looks.feed(reading("a")) == [Note("None 0 None")]
    assert looks.is_empty()


class Misuses(Keeps):
    """Writes what its declaration does not allow, as the value says."""

    note: ValueState[Note]

    def on_event(self, event: Reading, ctx: Context[Note]) -> None:
        match event.value:
            case 1:
                self.total.value = "three"  # type: ignore[assignment]
            case 2:
                self.total.value = True
            case 3:
                self.values = [1]  # type: ignore[assignment]
            case 4:
                self.total = 3  # type: ignore[assignment]
            case 5:
                self.seen = 1
            case 6:
                self.total.value = 2**70


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (1, "state 'total' holds int, not 'three'"),
        (2, "state 'total' holds int, not True"),
        (3, "would be lost at a restart"),
        (4, "declare it as state and set its value, as in self.total.value"),
        (5, "'seen' of process 'Misuses' would be lost at a restart"),
    ],
)
def test_a_wrong_write_is_refused_at_the_event(value: int, message: str) -> None:
    with pytest.raises(ProcessError, match="key 'a'") as failure:
        ProcessHarness(Misuses()).feed(reading("a", value=value))

    assert message in str(failure.value)
    assert "in on_event: self." in failure.value.line


def test_an_integer_too_large_for_storage_names_its_key() -> None:
    with pytest.raises(Misuse, match="the state of key 'a' cannot be stored"):
        ProcessHarness(Misuses()).feed(reading("a", value=6))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [("values", "state 'values' holds int, not 'x'"), ("by_time", "its keys holds int, not 'x'")],
)
def test_a_wrong_element_is_refused_before_it_is_stored(wrong: str, message: str) -> None:
    class Elements(Keeps):
        def on_event(self, event: Reading, ctx: Context[Note]) -> None:
            if wrong == "values":
                self.values.append("x")  # type: ignore[arg-type]
            else:
                self.by_time["x"] = [1]  # type: ignore[index]

    with pytest.raises(Misuse, match=message):
        ProcessHarness(Elements()).feed(reading("a"))


def test_a_process_is_not_run_by_calling_its_handlers() -> None:
    process = Keeps()

    with pytest.raises(AttributeError):
        process.on_event(reading("a"), None)  # type: ignore[arg-type]


def test_what_is_set_up_in_init_and_open_is_there_in_the_handlers() -> None:
    class Scales(KeyedProcess[Reading, Note]):
        key = "sensor"

        def __init__(self, factor: int) -> None:
            self.factor = factor
            self.closed = False

        def open(self) -> None:
            self.unit = "K"

        def on_event(self, event: Reading, ctx: Context[Note]) -> None:
            ctx.emit(Note(f"{event.value * self.factor} {self.unit}"))

        def close(self) -> None:
            self.closed = True

    process = Scales(3)
    harness = ProcessHarness(process)

    assert harness.feed(reading(value=2)) == [Note("6 K")]
    assert not hasattr(process, "unit")
    harness.close()
    assert not process.closed
