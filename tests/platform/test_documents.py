"""The document server: what Dagster links to opens in a browser, and nothing else does."""

import http.client
import os
import sys
import threading
from collections.abc import Callable, Iterator
from http.client import HTTPResponse
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import pytest

from rivermark.dagster.ui import __main__ as ui
from rivermark.dagster.ui.services import is_free
from rivermark.monitor.dashboard.document_server import DocumentServer, LivePage
from rivermark.monitor.dashboard.failing_rows import page_path
from rivermark.monitor.dashboard.page_links import TOKEN_FILE, page_url
from rivermark.monitor.dashboard.refresh import page_path as dashboard_path
from rivermark.settings import Settings
from rivermark.testing import wait_until
from tests.platform.small_topology import HOURLY

Get = Callable[..., HTTPResponse]
PAGES_PORT = "RIVERMARK_PAGES_PORT"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """A home with a dashboard, failing rows and Data Docs, and a secret beside each folder."""
    settings = Settings(home=tmp_path / "home")
    docs = settings.home / "quality" / "pages" / "validations" / "taxi hourly.html"
    for path in (dashboard_path(settings), page_path(settings, HOURLY.tables[0]), docs):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"page {path.stem}")
    (settings.home / "secret.txt").write_text("secret")
    (settings.home / "quality" / "results.json").write_text("secret")
    (settings.home / "pages" / ".hidden.html").write_text("secret")
    (settings.home / "pages" / "link.html").symlink_to(settings.home / "secret.txt")
    return settings


@pytest.fixture
def server(settings: Settings) -> Iterator[DocumentServer]:
    with DocumentServer(settings, 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture
def get(server: DocumentServer) -> Get:
    """Asks for an address, by default with the cookie of a browser that has followed a link."""

    def ask(path: str, *, method: str = "GET", **headers: str) -> HTTPResponse:
        connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
        sent = {"Cookie": f"rivermark_pages={server.token}"} | headers
        connection.request(method, path, headers=sent)
        return connection.getresponse()

    return ask


def test_a_link_of_dagster_opens_once_and_its_cookie_opens_what_it_leads_to(
    settings: Settings, server: DocumentServer, get: Get
) -> None:
    for path in (
        dashboard_path(settings),
        page_path(settings, HOURLY.tables[0]),
        settings.home / "quality" / "pages" / "validations" / "taxi hourly.html",
    ):
        link = urlsplit(page_url(settings, path))
        assert link.netloc == f"127.0.0.1:{settings.pages_port}"
        followed = get(f"{link.path}?{link.query}", Cookie="")
        assert followed.status == 303
        assert followed.headers["Location"] == link.path
        assert "HttpOnly" in followed.headers["Set-Cookie"]
        cookie = followed.headers["Set-Cookie"].partition(";")[0]
        opened = get(link.path, Cookie=cookie)
        assert (opened.status, opened.read()) == (200, f"page {path.stem}".encode())
        assert opened.headers["Content-Type"] == "text/html"


def test_pages_lead_to_each_other_as_on_disk(settings: Settings, get: Get) -> None:
    address = urlsplit(page_url(settings, dashboard_path(settings))).path

    opened = get(urljoin(address, "../quality/pages/validations/taxi%20hourly.html"))

    assert (opened.status, opened.read()) == (200, b"page taxi hourly")


@pytest.mark.parametrize(
    "headers", [{"Cookie": ""}, {"Cookie": "rivermark_pages=guess"}, {"Cookie": "\x7f;=;"}]
)
def test_who_has_no_token_sees_nothing(get: Get, headers: dict[str, str]) -> None:
    refused = get("/pages/dashboard.html", **headers)

    assert refused.status == 403
    assert b"by its link in Dagster" in refused.read()
    assert get("/pages/dashboard.html?token=guess", **headers).status == 403


def test_another_name_of_this_machine_is_refused(get: Get, server: DocumentServer) -> None:
    """A page of another site whose name was made to mean this machine sends its own name."""
    assert get("/pages/dashboard.html", Host="evil.example").status == 421
    assert get("/pages/dashboard.html", Host=f"localhost:{server.server_port}").status == 200


@pytest.mark.parametrize(
    "path",
    [
        "/secret.txt",
        "/pages/../secret.txt",
        "/pages/%2e%2e/secret.txt",
        "/pages/..%2fsecret.txt",
        "/pages//etc/passwd",
        "/pages/%2fetc/passwd",
        "/data_docs/../results.json",
        "/data_docs/%2e%2e/results.json",
        "/quality/results.json",
        "/quality/pages/../results.json",
        "/pages/.hidden.html",
        "/pages/link.html",
        "/pages/a%00b",
        "/pages/",
        "/pages",
        "/nothing",
    ],
)
def test_only_what_the_folders_hold_is_served(get: Get, path: str) -> None:
    answer = get(path)

    assert answer.status == 404
    assert b"secret" not in answer.read()


def test_a_redirect_stays_on_this_server(get: Get, server: DocumentServer) -> None:
    followed = get(f"//evil.example/x?token={server.token}", Cookie="")

    assert followed.headers["Location"] == "/evil.example/x"
    assert get("/").headers["Location"] == "/pages/dashboard.html"


def test_the_dashboard_is_drawn_while_somebody_looks_and_has_the_token(
    settings: Settings, tmp_path: Path
) -> None:
    """A page that is asked for goes on, and says what keeps it from going on."""
    page, marks = dashboard_path(settings), tmp_path / "drawn"
    drawing = LivePage(settings)
    vars(drawing)["_command"] = (
        *(sys.executable, "-c"),
        f"import sys; open({str(marks)!r}, 'a').write('x'); sys.exit('no lake: \u00e9 is read')",
    )
    with DocumentServer(settings, 0, drawing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()

        def ask(path: str, cookie: str) -> HTTPResponse:
            connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
            connection.request("HEAD", path, headers={"Cookie": cookie})
            return connection.getresponse()

        own = f"rivermark_pages={server.token}"
        assert ask("/pages/dashboard.html", own).headers["Last-Modified"]
        assert not marks.exists(), "it is of just now"
        os.utime(page, (1, 1))
        assert ask("/pages/dashboard.html", "").status == 403
        assert ask("/pages/bad_rows/taxi.hourly.html", own).status == 200
        assert not marks.exists()

        old = ask("/pages/dashboard.html", own)
        assert old.headers["Last-Modified"] == "Thu, 01 Jan 1970 00:00:01 GMT"
        told = wait_until(
            lambda: ask("/pages/dashboard.html", own).headers["Rivermark-Problem"], 60
        )
        assert told == "no lake: ? is read"
        ask("/pages/dashboard.html", own)
        assert marks.read_text() == "x", "not again at once"
        server.shutdown()


def test_it_answers_head_and_refuses_to_write(get: Get) -> None:
    head = get("/pages/dashboard.html", method="HEAD")

    assert (head.status, head.read()) == (200, b"")
    assert head.headers["Content-Length"] == str(len("page dashboard"))
    assert get("/pages/dashboard.html", method="POST").status == 501


def test_it_listens_on_the_loopback_address_and_its_token_is_the_owners(
    settings: Settings, server: DocumentServer
) -> None:
    assert server.server_address[0] == "127.0.0.1"
    token = settings.state / TOKEN_FILE
    assert token.stat().st_mode & 0o077 == 0
    assert len(token.read_text()) >= 32
    assert DocumentServer.file_of(server, "/pages/dashboard.html") is not None


def test_links_are_made_for_the_address_that_is_set(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, pages_url="https://rivermark.example/docs/")

    assert page_url(settings, dashboard_path(settings)) == (
        "https://rivermark.example/docs/pages/dashboard.html"
    )
    assert page_url(settings, Path("/elsewhere/x.html")) == "file:///elsewhere/x.html"
    assert not (settings.state / TOKEN_FILE).exists(), "no token is made by a link"


def start_ui(monkeypatch: pytest.MonkeyPatch, home: Path, *words: str, **settings: str) -> int:
    """The exit code of `make ui` in a home, where it ends before it starts anything."""

    def started(*_: object) -> None:
        raise AssertionError("it was started")

    with monkeypatch.context() as patch:
        for name, value in {"RIVERMARK_HOME": str(home), **settings}.items():
            patch.setenv(name, value)
        patch.setattr(ui, "on_interrupt", lambda _: None)
        patch.setattr(ui, "ServiceSupervisor", started)
        patch.setattr("sys.argv", ["ui", *words])
        return ui.main()


@pytest.mark.parametrize("of_page", [True, False])
def test_a_port_in_use_ends_the_ui_with_one_line(
    of_page: bool,
    server: DocumentServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    port = str(server.server_port)
    assert not is_free("127.0.0.1", server.server_port)
    words, settings = (["--port", port], {}) if of_page else (["--port", "0"], {PAGES_PORT: port})

    assert start_ui(monkeypatch, tmp_path / "other", *words, **settings) == 1
    other = "make ui UI_PORT=..." if of_page else "RIVERMARK_PAGES_PORT=... make ui"
    assert capsys.readouterr().out == (
        f"rivermark: port {port} of 127.0.0.1 is taken by another program; end it, or choose "
        f"another port: {other}\n"
    )


def test_what_the_ui_cannot_start_with_is_said_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file"
    file.touch()

    assert start_ui(monkeypatch, file / "home") == 1
    assert start_ui(monkeypatch, tmp_path, RIVERMARK_PAGES_PORT="0") == 1
    assert start_ui(monkeypatch, tmp_path, RIVERMARK_PAGE_PORT="1") == 1

    unwritable, odd, misspelt = capsys.readouterr().out.splitlines()
    assert unwritable.startswith(f"rivermark: {file}")
    assert unwritable.endswith("(RIVERMARK_HOME, --home), or change who owns it")
    assert odd.startswith("rivermark: setting pages_port (RIVERMARK_PAGES_PORT): ")
    assert misspelt.startswith("rivermark: RIVERMARK_PAGE_PORT in the environment is no setting; ")
