from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest

from rivermark.ingest.split_outcomes import INGEST_FILES
from rivermark.model.errors import DeclarationError
from rivermark.model.ingest import Ingest
from rivermark.monitor.completeness.checks import days_complete, keeps_pace
from rivermark.monitor.completeness.days import all_derived_days, all_ingest_days
from rivermark.monitor.completeness.derived_day import joined
from rivermark.monitor.completeness.expected_volume import Expected, usual_by_hour
from rivermark.monitor.completeness.ingest_day import Day, days_of_ingest, spans_of
from rivermark.monitor.late_statistics import lateness_of_rows
from rivermark.monitor.lateness_proposal import propose_lateness
from rivermark.monitor.time_span import span
from rivermark.monitor.watermarks import watermarks_of
from rivermark.settings import Settings
from rivermark.sources import FileSource, KafkaSource, PerProducer
from tests.oracles.shop import (
    FIRST,
    HOUR,
    LATENESS,
    ORDERS,
    PAID,
    PAYMENTS,
    SHOP,
    START,
    Event,
    File,
    append,
    decide,
    mark,
    sent,
    without_lateness,
    write,
    write_join,
)

DAY = timedelta(days=1)


def days(settings: Settings, last: date = FIRST, ingest: Ingest = ORDERS) -> list[Day]:
    return days_of_ingest(
        settings, SHOP, ingest, FIRST, last, watermarks_of(settings, SHOP.streams)
    )


def test_a_day_without_late_rows_is_complete_when_its_watermark_has_passed(
    settings: Settings,
) -> None:
    write(settings, ORDERS, sent(1, late_from=99))

    first, second = days(settings, FIRST + DAY)

    assert (first.state, first.seen, first.expected, first.short) == ("complete", 1440, 1440, 0)
    assert second.state == "open"


def test_a_day_is_open_while_the_watermark_has_not_reached_its_end(settings: Settings) -> None:
    write(settings, ORDERS, sent(1, late_from=99)[:24])

    (day,) = days(settings)

    assert day.state == "open"
    assert "shop/orders" in day.sentence


def test_a_watermark_exactly_at_the_end_of_a_day_has_passed_it(settings: Settings) -> None:
    write(settings, ORDERS, sent(1, late_from=99)[:24])
    mark(settings, ORDERS, START + DAY, 0)

    assert [d.state for d in days(settings)] == ["complete"]


def test_late_rows_of_a_closed_day_warn_with_their_number_and_their_money(
    settings: Settings,
) -> None:
    landed = write(settings, PAYMENTS, sent(1))

    (day,) = days(settings, ingest=PAYMENTS)

    admitted, late, _ = landed.of(FIRST)
    assert (day.state, day.admitted, day.late) == ("warn", admitted, late)
    assert day.late_money == Decimal("10.00") * late
    assert day.money_share == pytest.approx(late / (admitted + late))


def test_a_lost_row_fails_the_day_of_its_file(settings: Settings) -> None:
    files = sent(2, late_from=99)
    write(settings, ORDERS, files, lose=files[3].events[5])

    first, second = days(settings, FIRST + DAY)

    assert (first.state, first.unaccounted) == ("fail", 1)
    assert second.state == "complete"


def test_a_repeat_is_counted_among_the_admitted(settings: Settings) -> None:
    files = sent(1, late_from=99)
    files[3].events.append(files[3].events[0])
    write(settings, ORDERS, files, manifest=False)

    (day,) = days(settings)

    assert (day.admitted, day.repeats) == (1441, 1)


def test_an_hour_that_a_source_announced_and_did_not_send_is_missing(settings: Settings) -> None:
    write(settings, ORDERS, sent(1, late_from=99, silent=[START + 9 * HOUR]))

    (day,) = days(settings)

    assert (day.state, day.short, day.missing_hours) == ("fail", 60, (START + 9 * HOUR,))
    answer = days_complete(settings, SHOP, ORDERS)
    assert (answer.passed, answer.severity) == (False, "critical")
    assert answer.numbers["hours_missing"] == 1


def test_without_a_manifest_an_empty_hour_is_known_from_the_days_before(
    settings: Settings,
) -> None:
    silent = [START + 3 * DAY + 9 * HOUR]
    write(settings, ORDERS, sent(4, late_from=99, silent=silent), manifest=False)

    found = days(settings, FIRST + 3 * DAY)

    assert [d.state for d in found] == ["complete", "complete", "complete", "warn"]
    assert (found[3].missing_hours, found[3].expected_by) == (tuple(silent), "profile")


def test_a_dump_has_no_watermark_to_wait_for(settings: Settings) -> None:
    dump = without_lateness(ORDERS)
    write(settings, dump, sent(1, late_from=99)[:24], manifest=False)

    assert [d.state for d in days(settings, ingest=dump)] == ["complete"]


@pytest.mark.parametrize(
    ("expected", "seen", "short"),
    [
        pytest.param(Expected(60, "manifest"), 59, 1, id="a source counts each row"),
        pytest.param(Expected(60, "profile"), 31, 0, id="a profile does not"),
        pytest.param(Expected(60, "profile"), 29, 31, id="but it knows half"),
        pytest.param(Expected(60, "profile", weekly=False), 29, 0, id="days are no weeks"),
        pytest.param(Expected(60, "profile", weekly=False), 0, 60, id="an empty hour is one"),
        pytest.param(Expected(9, "profile"), 0, 0, id="few rows may be none by chance"),
    ],
)
def test_what_is_short(expected: Expected, seen: int, short: int) -> None:
    assert expected.short(seen) == short


def test_a_profile_is_the_median_of_the_same_weekdays_hour() -> None:
    hour = START + 28 * DAY
    seen = {START + n * 7 * DAY: rows for n, rows in enumerate((100, 300, 110, 120))}

    assert usual_by_hour(seen, [hour]) == {hour: Expected(115, "profile")}
    assert usual_by_hour({hour - DAY: 5}, [hour]) == {}, "one day says nothing"


def test_a_source_that_stands_still_is_named_with_what_waits_for_it(settings: Settings) -> None:
    """Case B005: rides up to 12:00, fares up to 10:00; a join of both."""
    mark(settings, ORDERS, START + 12 * HOUR, 0)
    mark(settings, PAYMENTS, START + 10 * HOUR, 0)

    answer = keeps_pace(settings, SHOP, PAID)

    assert not answer.passed
    assert "results wait for shop/payments" in answer.observed
    assert "shop/payments at 2026-03-02 10:00, shop/orders" not in answer.observed
    assert answer.numbers["most_seconds_behind"] == 7200
    assert [o["input"] for o in answer.examples] == ["shop/payments"]

    mark(settings, PAYMENTS, START + 11 * HOUR + timedelta(minutes=45), 0)
    assert keeps_pace(settings, SHOP, PAID).passed


def test_an_input_without_any_row_is_named_too(settings: Settings) -> None:
    mark(settings, ORDERS, START, 0)

    answer = keeps_pace(settings, SHOP, PAID)

    assert not answer.passed
    assert "shop/payments without a row yet" in answer.observed


def test_how_late_rows_are_and_from_which_file(settings: Settings) -> None:
    files = [
        File("north/1.json", [Event(n, START + timedelta(minutes=n)) for n in range(60)]),
        File("north/2.json", [Event(60, START + timedelta(minutes=61))]),
        File("south/1.json", [Event(61, START), Event(62, START + timedelta(minutes=40))]),
    ]
    write(settings, PAYMENTS, files, manifest=False)

    found = lateness_of_rows(settings, PAYMENTS)

    # The watermark of the third file is 00:51.
    assert (found.late, found.valid) == (2, 63)
    assert (found.p50_ms, found.max_ms) == (11 * 60_000, 51 * 60_000)
    assert [(s.source, s.late, s.valid) for s in found.by_folder] == [("south/", 2, 2)]
    assert [s.source for s in found.by_file] == ["south/1.json"]
    assert found.money == Decimal("20.00")


def test_a_lateness_is_proposed_that_leaves_one_row_in_a_thousand(settings: Settings) -> None:
    landed = write(settings, ORDERS, sent(2))
    assert landed.late

    found = propose_lateness(settings, ORDERS)

    # An event held back for two hours comes in a file behind that of the hour before its own.
    assert found.lateness == LATENESS
    assert found.proposed == 2 * HOUR
    shares = {c.lateness: c.share for c in found.curve}
    now = sum(e.at <= w for _, e, w in decide(sent(2)).late) / found.rows
    assert shares[LATENESS] == pytest.approx(now)
    assert shares[2 * HOUR] == 0
    assert shares[timedelta(minutes=5)] >= shares[LATENESS]


def test_a_proposal_keeps_a_lateness_that_fits(settings: Settings) -> None:
    write(settings, ORDERS, sent(1, late_from=99))

    assert propose_lateness(settings, ORDERS).proposed == timedelta(seconds=1)
    assert propose_lateness(settings, PAYMENTS).proposed is None
    assert "no rows to learn from" in propose_lateness(settings, PAYMENTS).sentence


def test_a_lateness_is_proposed_before_rows_carry_the_watermark_of_producers(
    settings: Settings,
) -> None:
    write(settings, ORDERS, sent(1, late_from=99))
    turned = replace(
        ORDERS,
        source=FileSource(folder="orders", producers=r"^([^/]+)/"),
        watermark=PerProducer(idle=HOUR),
    )

    assert propose_lateness(settings, turned) == propose_lateness(settings, ORDERS)


def test_rows_of_a_topic_are_compared_with_the_batches_before_theirs(settings: Settings) -> None:
    topic = replace(ORDERS, source=KafkaSource(brokers="localhost:9092", topics="orders"))
    splits = [(batch, f"orders-{partition}") for batch in range(3) for partition in range(4)]
    rows = [
        {
            "order_id": minute,
            "at": START + batch * HOUR + timedelta(minutes=minute),
            "_ingest_batch": batch,
            "_file": name,
            "_row": minute,
        }
        for batch, name in splits
        for minute in range(60)
    ]
    append(settings, topic.admitted, rows)
    append(settings, topic.late, [])
    outcomes = [
        {"stream": topic.name, "ingest_batch": b, "file": n, "path": n, "modified_at": START}
        for b, n in splits
    ]
    append(settings, INGEST_FILES, outcomes)

    proposal = propose_lateness(settings, topic)

    assert proposal.rows == 2 * 4 * 60
    assert {point.share for point in proposal.curve} == {0}
    assert proposal.proposed == timedelta(seconds=1)


def test_a_join_tells_what_is_matched_left_alone_and_waiting(settings: Settings) -> None:
    orders = write(settings, ORDERS, sent(1))
    payments = write(settings, PAYMENTS, sent(1, late_from=11))
    append(settings, PAID.tables[0], [{"order_id": 0, "at": START}])

    found = joined(settings, PAID, FIRST, FIRST)[FIRST]

    admitted, paid = orders.of(FIRST)[0], payments.of(FIRST)[0]
    assert found.matched == 1
    assert found.pending == {"shop/orders": admitted - 1, "shop/payments": paid - 1}


def test_a_day_of_a_join_is_as_its_sources_are(settings: Settings) -> None:
    orders = write(settings, ORDERS, sent(1, late_from=99))
    payments = write(settings, PAYMENTS, sent(1, late_from=99))
    matched, _, _ = write_join(settings, orders, payments)
    assert matched == 1500

    found = all_derived_days(settings, SHOP, all_ingest_days(settings, SHOP, 7), 7)["shop/paid"]

    assert [(d.day, d.state, d.rows) for d in found] == [
        (FIRST, "complete", 1440),
        (FIRST + DAY, "open", 60),
    ]


def test_money_is_a_decimal_field() -> None:
    with pytest.raises(DeclarationError, match="no decimal field 'customer'"):
        replace(ORDERS, money="customer")


@pytest.mark.parametrize(
    ("milliseconds", "told"),
    [(1500, "1.5 s"), (90_000, "1.5 min"), (5_400_000, "1 h 30 min"), (90_000_000, "1 d 1 h")],
)
def test_spans_are_told_in_people_s_units(milliseconds: int, told: str) -> None:
    assert span(milliseconds) == told


def test_nothing_is_said_of_a_lake_without_tables(settings: Settings) -> None:
    assert days(settings) == []
    assert days_complete(settings, SHOP, ORDERS).passed
    assert all_ingest_days(settings, SHOP, 7) == {}


def test_b062_the_days_of_an_accepted_gap_fail(settings: Settings) -> None:
    write(settings, ORDERS, sent(3, late_from=99))
    assert [d.state for d in days(settings, FIRST + 2 * DAY)] == ["complete"] * 3
    # Planned where day two begins, before the hours that follow.
    gap = {"stream": ORDERS.name, "file": "t/0/5-9/lost", "path": "t", "ingest_batch": 24}
    append(settings, INGEST_FILES, [gap | {"status": "lost", "reason": "offsets_deleted"}])

    first, second, third = days(settings, FIRST + 2 * DAY)
    assert [d.state for d in (first, second, third)] == ["fail", "fail", "complete"]
    assert "records were gone before they were read (1 accepted gaps)" in first.sentence
    result = days_complete(settings, SHOP, ORDERS)
    assert (result.passed, result.severity) == (False, "critical")


def test_hours_that_follow_one_another_are_one_span() -> None:
    hours = [datetime(2026, 3, 2, hour, tzinfo=UTC) for hour in (0, 1, 2, 5, 22, 23)]

    assert spans_of(hours) == ["00:00 to 03:00", "05:00 to 06:00", "22:00 to 00:00"]
    assert spans_of([]) == []
