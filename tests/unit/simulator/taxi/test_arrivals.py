from simulator.taxi.arrivals import (
    BLOCK,
    rides_as_they_arrive,
    rides_by_event_time,
    rides_in_blocks,
)


def test_the_first_blocks_are_shuffled_as_in_the_training() -> None:
    starts = [event.ride_id for event in rides_as_they_arrive(20) if event.is_start]

    # [5 3 2 4 1], [4 2 5 1 3], [5 3 1 2 4] and [3 1 5 4 2] are Java's shuffles with seeds 0 to 15.
    assert starts == [5, 3, 2, 4, 1, 9, 7, 10, 6, 8, 15, 13, 11, 12, 14, 18, 16, 20, 19, 17]


def test_before_a_block_come_the_ends_due_by_its_latest_start() -> None:
    released_until = None
    *blocks, rest = rides_in_blocks(500)
    for block in blocks:
        ends, starts = block[:-BLOCK], block[-BLOCK:]
        latest_start = max(start.event_time for start in starts)
        assert all(start.is_start for start in starts)
        assert not any(end.is_start for end in ends)
        assert all(end.event_time <= latest_start for end in ends)
        if released_until is not None:
            assert all(end.event_time > released_until for end in ends)
        released_until = latest_start
    assert all(released_until and end.event_time > released_until for end in rest)


def test_a_few_ends_come_before_their_start() -> None:
    position = {event.key: i for i, event in enumerate(rides_as_they_arrive(1000))}

    early = [i for i in range(1, 1001) if position[i, False] < position[i, True]]

    assert 0 < len(early) < 100


def test_every_event_arrives_once() -> None:
    keys = [event.key for event in rides_as_they_arrive(123)]

    assert sorted(keys) == [(i, is_start) for i in range(1, 124) for is_start in (False, True)]


def test_by_event_time_nothing_is_out_of_order() -> None:
    events = list(rides_by_event_time(1, 400))

    times = [event.event_time for event in events]
    assert times == sorted(times)
    assert set(events) == set(rides_as_they_arrive(400))
    assert len(events) == 800


def test_by_event_time_a_start_comes_before_its_end() -> None:
    position = {event.key: i for i, event in enumerate(rides_by_event_time(1, 1000))}

    assert all(position[i, True] < position[i, False] for i in range(1, 1001))
