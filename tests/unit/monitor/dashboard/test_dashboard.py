"""The page is parsed as a browser and a screen reader would meet it."""

import re
from base64 import b64encode
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from hashlib import sha256
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

import pytest

from rivermark.backfill.registry import Record, register
from rivermark.html.page import pages_of
from rivermark.monitor.checks.history import RecordedResult, newest_results, record
from rivermark.monitor.dashboard.dashboard import draw
from rivermark.monitor.dashboard.drawings import heat_map, step
from rivermark.monitor.dashboard.failing_rows import page_path
from rivermark.monitor.dashboard.formatting import bytes_text
from rivermark.monitor.dashboard.gather import gather
from rivermark.monitor.dashboard.refresh import refresh
from rivermark.quality.gx.offline_docs import StoredRun
from rivermark.settings import Settings
from tests.oracles.shop import (
    FIRST,
    HOUR,
    ORDERS,
    PAID,
    PAYMENTS,
    SECRET,
    SHOP,
    START,
    append,
    sent,
    write,
    write_join,
)
from tests.oracles.stored_runs import store_run

NOW = START + timedelta(days=4, hours=3)
VOID = {"meta", "br", "hr", "input"}


class Page(HTMLParser):
    """Elements with their attributes and texts, and whether each was closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((name, dict(attributes)))
        if name not in VOID:
            self.open.append(name)

    def handle_startendtag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((name, dict(attributes)))

    def handle_endtag(self, name: str) -> None:
        assert self.open.pop() == name

    def handle_data(self, data: str) -> None:
        if self.open:
            self.texts.append((self.open[-1], data))

    def all(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for found, attributes in self.elements if found == name]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Three days, 2 % late, one source silent for two hours, and one recompute."""
    settings = Settings(home=tmp_path_factory.mktemp("home"))
    orders = write(settings, ORDERS, sent(3))
    silent = [START + 30 * HOUR, START + 31 * HOUR]
    payments = write(settings, PAYMENTS, sent(3, late_from=11, silent=silent))
    write_join(settings, orders, payments)
    recompute = {
        "recompute": ["2026-03-02", "2026-03-03"],
        "inputs": {"shop/orders": 7},
        "run": "run-of-a-backfill",
    }
    append(settings, PAID.tables[0], [{"order_id": 999_999, "at": START}], **recompute)
    rehearsed = Record(
        id="20260305-120000-abcd",
        at=NOW,
        kind="rehearsed",
        stream=PAID.name,
        table=PAID.tables[0].name,
        first_day=date(2026, 3, 2),
        last_day=date(2026, 3, 4),
        inputs={"shop/orders": 8},
        version_before=3,
        added=1200,
        changed=7,
        run_id="run-of-a-rehearsal",
    )
    register(settings.lake(), [rehearsed])
    return settings


@pytest.fixture(scope="module")
def page(home: Settings) -> Page:
    return Page(refresh(home, SHOP, NOW).path.read_text())


def test_numbers_that_a_process_gives_itself_stand_on_its_card(home: Settings) -> None:
    facts = gather(home, SHOP, NOW)
    streams = [
        replace(s, status=replace(s.status, metrics={"odd": 2_000})) if s.name == PAID.name else s
        for s in facts.streams
    ]

    assert draw(replace(facts, streams=tuple(streams))).count("Counts odd 2,000.") == 1


def test_the_page_is_whole_and_needs_nothing_else(page: Page) -> None:
    assert page.open == []
    assert not page.all("link")
    assert not page.all("img")
    (policy,) = [m["content"] for m in page.all("meta") if m.get("http-equiv")]
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    [script] = [text for at, text in page.texts if at == "script"]
    digest = b64encode(sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy, "no other script runs"
    links = [a["href"] or "" for a in page.all("a")]
    assert all(link.startswith("#") for link in links)
    assert not any("url(" in text or "@import" in text for at, text in page.texts if at == "style")


def test_every_link_has_its_target(page: Page) -> None:
    ids = [a["id"] for _, a in page.elements if a.get("id")]
    assert len(ids) == len(set(ids))
    assert {(a["href"] or "")[1:] for a in page.all("a")} <= set(ids)


def test_it_is_read_out_as_headings_and_tables(page: Page) -> None:
    assert page.all("html") == [{"lang": "en"}]
    assert len(page.all("h1")) == 1
    assert len(page.all("main")) == 1
    levels = [int(name[1]) for name, _ in page.elements if re.fullmatch("h[1-6]", name)]
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert len(page.all("caption")) == len(page.all("table")) > 5
    assert all(h.get("scope") in ("col", "row") for h in page.all("th"))
    regions = [d for d in page.all("div") if d.get("role") == "region"]
    assert all(d.get("tabindex") == "0" and d.get("aria-label") for d in regions)


def test_every_picture_says_in_words_what_it_shows(page: Page) -> None:
    pictures = page.all("svg")
    assert all(s.get("aria-label") or s.get("aria-hidden") == "true" for s in pictures)
    labels = " ".join(str(s.get("aria-label")) for s in pictures)
    assert "Rows of shop/payments by hour of event time (UTC), 4 days" in labels
    assert "2 hours missing" in labels


def test_numbers_with_a_unit_are_sorted_by_their_size(home: Settings, page: Page) -> None:
    """As `page.js` reads them: by `data-v`, else by the text, without signs and what follows of."""
    text = (home.home / "pages" / "dashboard.html").read_text()
    tables = re.findall(r'<table class="sortable">(.*?)</table>', text, re.DOTALL)
    cells = [
        (re.findall(r' data-v="([^"]*)"', attributes), shown)
        for table in tables
        for attributes, shown in re.findall(r'<td([^>]* class="n"[^>]*)>([^<]*)</td>', table)
    ]
    # Added, removed and changed rows are three numbers in a cell.
    keys = [value[0] if value else shown for value, shown in cells if shown and "/" not in shown]
    numbers = [re.sub("[,%]| of .*", "", key) for key in keys]

    assert any(" d" in shown for _, shown in cells), "a lag of days"
    assert any(" kB" in shown for _, shown in cells)
    assert [number for number in numbers if not re.fullmatch(r"-?[\d.]+", number)] == []


def test_it_fits_a_phone_and_both_schemes(page: Page) -> None:
    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in page.all(
        "meta"
    )
    style = "".join(text for at, text in page.texts if at == "style")
    assert "prefers-color-scheme:dark" in style
    names = set(re.findall(r"var\((--\w+)\)", style))
    assert names <= set(re.findall(r"(--\w+):", style.split("@media")[0]))


def test_no_value_of_a_personal_column_is_on_it(home: Settings, page: Page) -> None:
    text = (home.home / "pages" / "dashboard.html").read_text()
    assert SECRET not in text
    assert "Ada" not in text


def test_it_tells_what_the_tables_hold(page: Page) -> None:
    text = " ".join(text for _, text in page.texts)
    assert "days_are_complete" in text
    assert "120 of" in text, "two hours of one event a minute lack"
    assert "06:00, 07:00" in text, "and which"
    assert "2026-03-02 to 2026-03-03" in text
    assert "2026-03-02 to 2026-03-04" in text
    assert "1,200 / 0 / 7" in text
    assert "shop/orders at 7" in text
    assert "run-of-a-bac" in text
    assert f"{FIRST}" in text


def test_what_is_broken_comes_first_and_what_there_is_nothing_of_is_left_out(
    home: Settings, page: Page
) -> None:
    facts = gather(home, SHOP, NOW)
    calm = replace(facts.streams[0], name="calm/stream", days=(), derived_days=())
    calm = replace(calm, status=replace(calm.status, group="calm"))
    text = draw(replace(facts, streams=(calm, *facts.streams), recomputes=(), suites=()))

    groups = re.findall(r'<details class="fold" id="group-(\w+)"( open)?', text)
    assert groups == [("shop", " open"), ("calm", "")]
    assert "Recomputed days" not in text
    assert "Expectations" not in text
    assert "Recomputed days" in " ".join(text for _, text in page.texts)
    checks = len(facts.checks)
    held = sum(results[-1].passed for results in facts.checks)
    assert f"{held} of {checks} checks held" in text
    assert f"of {checks} checks; error: " in text


def test_a_failed_suite_needs_attention_and_leads_to_its_failing_rows(home: Settings) -> None:
    at = NOW - HOUR
    runs = (
        StoredRun("shop/orders", "version-3", at, False, 9, 1, "a.html", critical=1),
        StoredRun("shop/paid", "version-4", at, False, 9, 2, "b.html"),
        StoredRun("shop/unpaid", "version-4", at, True, 9, 0, "c.html"),
    )
    facts = replace(gather(home, SHOP, NOW), checks=(), suites=tuple((run,) for run in runs))
    pages = {"shop/orders": "bad_rows/shop.orders.html"}

    text = draw(replace(facts, failing_pages=pages))

    assert '<a href="bad_rows/shop.orders.html">shop/orders</a> 1 of 9 rules' in text
    assert '<a href="#suites">shop/paid</a> 2 of 9 rules do not hold at version-4' in text
    assert text.index("1 of 9 rules") < text.index("2 of 9 rules")
    assert "<b>2 failed</b><span>of 3 suites</span>" in text
    assert "1 of 3 suites held" in text


def test_pages_of_failing_rows_are_linked_from_beside_them_only(
    settings: Settings, tmp_path: Path
) -> None:
    write(settings, ORDERS, sent(1))
    page = page_path(settings, ORDERS.admitted)
    page.parent.mkdir(parents=True)
    page.write_text("")

    beside = refresh(settings, SHOP, NOW, evaluate=False)
    elsewhere = refresh(settings, SHOP, NOW, evaluate=False, to=tmp_path / "mailed.html")

    assert (beside.path.parent / beside.facts.failing_pages["shop/orders"]).resolve() == page
    assert elsewhere.facts.failing_pages == {}


def test_a_suite_and_its_table_lead_to_the_data_docs_of_the_newest_run(
    settings: Settings, tmp_path: Path
) -> None:
    write(settings, ORDERS, sent(1))
    _, docs = (store_run(settings.home / "quality", "shop/orders", version) for version in (1, 2))

    beside = refresh(settings, SHOP, NOW, evaluate=False)
    elsewhere = refresh(settings, SHOP, NOW, evaluate=False, to=tmp_path / "mailed.html")

    hrefs = [a["href"] or "" for a in Page(beside.path.read_text()).all("a")]
    [to_docs, of_table] = [href for href in hrefs if href.endswith(".html")]
    assert to_docs == of_table
    assert (beside.path.parent / unquote(to_docs)).resolve() == docs
    assert elsewhere.facts.data_docs == {}


def test_a_stream_that_replays_an_archive_has_no_lag(home: Settings) -> None:
    facts = gather(home, SHOP, NOW)
    live = next(s for s in facts.streams if s.name == "shop/payments")
    newest = live.status.last_batch_at
    assert newest is not None
    old = replace(live, status=replace(live.status, watermark=newest - timedelta(days=2523)))

    assert (live.archived, old.archived) == (False, True)
    assert "2523 d" not in draw(replace(facts, streams=(old,)))


def test_a_second_look_is_kept_beside_the_first(settings: Settings) -> None:
    write(settings, ORDERS, sent(1))
    refresh(settings, SHOP, NOW)
    before = newest_results(settings, 30)
    refresh(settings, SHOP, NOW + HOUR)

    after = newest_results(settings, 30)

    assert len(after) == 2 * len(before) > 0
    assert len(newest_results(settings, 1)) == len(before)


def test_a_claim_with_markup_in_its_answer_stays_text(home: Settings, tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    record(
        settings,
        [
            RecordedResult(
                NOW, "shop/orders", "shop/orders", "odd", "error", "<script>alert(1)</script>"
            )
        ],
    )

    text = draw(gather(settings, SHOP, NOW))

    assert text.count("<script>") == 1, "the page's own"
    assert "&lt;script&gt;alert(1)" in text


def test_a_home_without_anything_still_has_a_page(tmp_path: Path) -> None:
    found = Page(refresh(Settings(home=tmp_path), SHOP, datetime.now(UTC)).path.read_text())

    assert found.open == []
    assert "No day has any row yet." in [text for _, text in found.texts]


HOSTILE = "\"><script>alert(1)</script><b x='"


def test_hostile_names_and_values_stay_text(home: Settings) -> None:
    facts = gather(home, SHOP, NOW)
    stream = facts.streams[0]
    hostile = replace(
        facts,
        streams=(
            replace(stream, name=HOSTILE, description=HOSTILE, zone="UTC"),
            *(replace(s, status=replace(s.status, state=HOSTILE)) for s in facts.streams[1:]),
        ),
        checks=((RecordedResult(NOW, HOSTILE, HOSTILE, HOSTILE, "error", HOSTILE),),),
        tables=tuple(replace(t, name=HOSTILE) for t in facts.tables),
        recomputes=tuple(replace(r, inputs=HOSTILE, run=HOSTILE) for r in facts.recomputes),
    )

    found = Page(draw(hostile))

    assert found.open == []
    assert len(found.all("script")) == 1
    assert not found.all("b") or all(not attributes for attributes in found.all("b"))
    assert sum(HOSTILE in text for _, text in found.texts) > 5
    assert any(
        svg.get("aria-label", "") and HOSTILE in str(svg["aria-label"]) for svg in found.all("svg")
    )


def test_a_table_without_rows_says_so() -> None:
    template = pages_of("rivermark.monitor.dashboard").from_string(
        '{% from "macros.html" import table %}{% call(r) table("Rows", ["a"], []) %}{% endcall %}'
    )

    assert "Rows: nothing yet." in template.render()


def test_an_hour_without_rows_is_told_without_colour() -> None:
    drawn = heat_map([FIRST], {(FIRST, 9): "miss", (FIRST, 10): "h2"}, "one day")

    assert "cross" in drawn.paths
    assert (step(0, 10), step(1, 10), step(10, 10)) == ("h0", "h1", "h4")


def test_sizes_have_units() -> None:
    assert [bytes_text(n) for n in (0, 999, 1_500, 2_000_000)] == ["0 B", "999 B", "1.5 kB", "2 MB"]
