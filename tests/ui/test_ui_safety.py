"""What a page elsewhere, another user, another port's server or a record's text could try, and what comes of it."""

from __future__ import annotations

import os
import re
import socket
import stat
import threading

import pytest
from starlette.routing import Route
from test_ui_markup import Found
from ui_journal import HOSTILE

from fairlead.journal.reading import Reader
from fairlead.peers import user_of_connection
from fairlead.ui.access import TOKEN_HEADER, Access, redirect_file
from fairlead.ui.app import PAGES
from fairlead.ui.guard import RequestGuard, _is_ours

ROUTES = [route for page in PAGES for route in page.ROUTES if isinstance(route, Route)]
READS = [route.path for route in ROUTES if "GET" in (route.methods or ())]
PLAIN = [path for path in READS if not path.endswith("live")]
"""Pages whose answer ends: a feed goes on for ever."""
CHANGES = [route.path for route in ROUTES if "POST" in (route.methods or ())]
ORIGIN = "http://127.0.0.1:8000"


# --- from elsewhere ---------------------------------------------------------------------------------


OTHER_HOSTS = (
    "evil.example", "evil.example:8000", "127.0.0.1.evil.example", "127.0.0.2", "0.0.0.0:8000", "", "localhost.:8000",
    "127.0.0.1:8000@evil.example",
)  # fmt: skip
OTHER_ORIGINS = (
    "https://evil.example", "null", "http://127.0.0.1:9999", "http://localhost:8000", "https://127.0.0.1:8000",
)  # fmt: skip


@pytest.mark.parametrize("host", OTHER_HOSTS)
def test_a_name_that_was_pointed_to_this_machine_is_refused(tab, host):
    assert tab.get("/", host=host).status_code == 421


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost:8000", "127.0.0.1:9999", "localhost", "[::1]:8000"])
def test_any_port_of_a_loopback_name_is_right_since_ssh_may_forward_another(tab, host):
    assert tab.get("/", host=host).status_code == 200


@pytest.mark.parametrize("path", READS)
@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_another_page_gets_nothing_although_the_browser_sends_the_cookie(tab, path, site):
    for mode in ("navigate", "no-cors", "cors"):
        assert tab.get(path, sec_fetch_site=site, sec_fetch_mode=mode).status_code == 403


@pytest.mark.parametrize("path", READS)
@pytest.mark.parametrize("origin", OTHER_ORIGINS)
def test_another_origin_gets_nothing(tab, path, origin):
    assert tab.get(path, origin=origin).status_code == 403


def test_after_rebinding_origin_and_host_agree_and_it_is_refused_all_the_same(tab):
    assert tab.get("/", host="evil.example:8000", origin="http://evil.example:8000").status_code == 421


@pytest.mark.parametrize("path", ["/", "/session", "/sign-in", *CHANGES])
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_what_could_change_something_needs_an_origin(tab, path, method):
    assert tab.client.request(method, path).status_code == 403


@pytest.mark.parametrize("path", ["/", *CHANGES])
def test_the_cookie_alone_changes_nothing(tab, path):
    """A browser sends the cookie to every port of this machine, so another server may have it."""
    assert tab.post(path, x_fairlead_key="").status_code == 403
    assert tab.post(path, x_fairlead_key="guessed").status_code == 403


# --- signing in -------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", READS)
def test_without_signing_in_there_is_nothing(new_tab, path):
    answer = new_tab().get(path)
    assert answer.status_code == 401
    assert "calls" not in answer.text


@pytest.mark.parametrize("cookie", ["fairlead=x", "a=b; ;=", "\xff=\xff", '="'])
def test_a_wrong_cookie_is_none(new_tab, cookie):
    assert new_tab().client.get("/", headers={"cookie": cookie.encode("latin-1")}).status_code == 401


def test_the_address_works_once(new_tab):
    tab = new_tab()
    token = tab.access.address(8000).partition("#")[2]
    assert tab.sign_in().get("/").status_code == 200
    again = tab.client.post("/sign-in", headers={TOKEN_HEADER: token, "origin": ORIGIN})
    assert again.status_code == 403
    assert "set-cookie" not in again.headers


@pytest.mark.parametrize("token", ["", "wrong", "\xff", "x" * 10_000])
def test_a_wrong_token_gives_nothing_and_does_not_use_up_the_right_one(new_tab, token):
    tab = new_tab()
    wrong = tab.client.post("/sign-in", headers={TOKEN_HEADER: token.encode("latin-1"), "origin": ORIGIN})
    assert wrong.status_code == 403
    assert tab.sign_in().get("/").status_code == 200


def test_enter_gives_another_address_and_those_who_are_signed_in_stay_so(new_tab):
    tab = new_tab()
    first = tab.access.address(8000)
    tab.sign_in()
    tab.access.renew()
    assert tab.access.address(8000) != first
    assert tab.get("/").status_code == 200
    assert tab.sign_in().get("/").status_code == 200


def test_the_token_has_256_bits_and_is_behind_the_hash():
    address, _, token = Access().address(8000).partition("#")
    assert "?" not in address
    assert len(token) >= 43


def test_scripts_cannot_see_the_cookie_and_other_sites_do_not_send_it(new_tab):
    one, other = new_tab(), new_tab()
    cookies = []
    for tab in (one, other):
        token = tab.access.address(8000).partition("#")[2]
        cookies.append(
            tab.client.post("/sign-in", headers={TOKEN_HEADER: token, "origin": ORIGIN}).headers["set-cookie"]
        )
    for cookie in cookies:
        assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
    names = [cookie.partition("=")[0] for cookie in cookies]
    assert names[0] != names[1]


def test_the_file_that_opens_the_browser_is_private_and_goes_away():
    with redirect_file("http://127.0.0.1:1/sign-in#secret") as path:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) & 0o077 == 0
        assert "#secret" in path.read_text()
        assert "secret" not in path.name
    assert not path.exists()


# --- other users ------------------------------------------------------------------------------------


@pytest.fixture
def connection():
    """Both ends of a connection to a port of this machine."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        accepted, address = server.accept()
        with client, accepted:
            yield {"client": address, "server": server.getsockname()}


def test_the_kernel_says_whose_connection_it_is(connection):
    assert user_of_connection(connection["client"], connection["server"]) in (None, os.geteuid())
    assert _is_ours(connection)


@pytest.mark.skipif(not os.path.exists("/proc/net/tcp"), reason="this kernel does not say")
def test_a_connection_of_another_user_gets_nothing(connection, monkeypatch, new_tab):
    monkeypatch.setattr(os, "geteuid", lambda: 65533)
    monkeypatch.setattr("fairlead.ui.guard.user_of_connection", lambda client, server: 65534)
    assert not _is_ours(connection)
    tab = new_tab()
    guard: RequestGuard = tab.client.app
    tab.sign_in()
    guard._is_ours = _is_ours
    assert tab.get("/").status_code == 403


@pytest.mark.skipif(not os.path.exists("/proc/net/tcp"), reason="this kernel does not say")
def test_a_connection_that_the_kernel_does_not_know_gets_nothing():
    assert not _is_ours({"client": ("127.0.0.1", 1), "server": ("127.0.0.1", 2)})


def test_a_journal_that_this_user_may_not_read_is_not_shown(new_tab, tmp_path):
    path = tmp_path / "theirs.db"
    path.write_bytes(b"not a journal")
    answer = new_tab(path).sign_in().get("/")
    assert answer.status_code == 400
    assert "cannot be read" in answer.text


# --- what an answer says ----------------------------------------------------------------------------


@pytest.mark.parametrize("path", [*PLAIN, "/sign-in", "/assets/ui.js", "/assets/ui.css", "/assets/icon.svg", "/none"])
def test_every_answer_forbids_scripts_of_others_frames_and_caches(tab, path):
    headers = tab.get(path).headers
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
    assert headers["cross-origin-resource-policy"] == headers["cross-origin-opener-policy"] == "same-origin"
    assert "server" not in headers


def test_an_answer_to_a_refused_request_has_the_same_headers(new_tab):
    for answer in (new_tab().get("/"), new_tab().get("/", host="evil.example")):
        assert answer.headers["cache-control"] == "no-store"
        assert "script-src 'self'" in answer.headers["content-security-policy"]


def test_a_mistake_of_fairlead_shows_no_traceback_and_has_the_headers(tab, monkeypatch):
    monkeypatch.setattr("fairlead.ui.pages.sessions.newest_sessions", lambda *_, **__: 1 / 0)
    answer = tab.get("/")
    assert answer.status_code == 500
    assert "ZeroDivisionError" not in answer.text
    assert answer.headers["cache-control"] == "no-store"


def test_no_page_reads_a_file_outside_of_the_package(tab):
    for name in ("..%2f..%2fapp.py", "%2e%2e/app.py", "ui.py", "../app.py"):
        assert tab.get(f"/assets/{name}").status_code == 404


# --- texts of records -------------------------------------------------------------------------------


@pytest.fixture
def hostile_pages(tab, journal):
    """Every page that shows the hostile session, and the details of its moments."""
    with Reader(journal) as reader:
        (session,) = reader.db.execute("SELECT session FROM records WHERE session LIKE 'hostile%'").fetchone()
        seqs = [seq for (seq,) in reader.db.execute("SELECT seq FROM records WHERE session = ?", (session,))]
    pages = [tab.client.get("/session", params={"id": session}), tab.get("/")]
    pages += [tab.get(f"/{page}={seq}") for seq in seqs for page in ("decision?id", "moment?record")]
    assert all(page.status_code == 200 for page in pages)
    return [page.text for page in pages]


def test_a_text_of_a_record_never_becomes_an_element_or_a_handler(hostile_pages):
    seen = 0
    for page in hostile_pages:
        found = Found(page)
        seen += "onerror=alert(1)" in found.text
        for tag, attributes in found.elements:
            assert tag != "img"
            assert tag != "script" or attributes == {"type": "module", "src": "/assets/ui.js"}
            assert not any(name.startswith("on") or name == "style" for name in attributes)
    assert seen == len(hostile_pages)  # so that the test cannot pass on pages without the text


def test_escape_sequences_and_marks_of_direction_are_spelled_out(hostile_pages):
    for page in hostile_pages:
        assert "\x1b" not in page
        assert "\u202e" not in page
        assert "\\x1b" in page
        assert "\\u202e" in page


def test_a_hostile_name_stays_one_value_in_an_address(hostile_pages):
    addresses = [a for page in hostile_pages for a in re.findall(r'(?:href|data-src)="([^"]*)"', page)]
    assert addresses
    assert all(address.startswith(("/", "#")) and not address.startswith("//") for address in addresses)
    assert HOSTILE not in addresses


# --- the process ------------------------------------------------------------------------------------


def test_it_listens_on_this_machine_only_and_on_a_port_of_its_own():
    from fairlead.ui.serving import _listen

    with _listen(0) as one, _listen(0) as other:
        assert one.getsockname()[0] == other.getsockname()[0] == "127.0.0.1"
        assert one.getsockname()[1] != other.getsockname()[1]


def test_a_port_that_is_taken_is_said(fairlead, journal):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, _, error = fairlead("ui", "--no-open", "--journal", str(journal), "--port", str(port))
    assert code == 1
    assert f"port {port} cannot be used" in error
    assert "--port" in error


def test_over_ssh_it_says_how_to_reach_the_port():
    from fairlead.ui.serving import instructions

    said = "\n".join(
        instructions("http://127.0.0.1:8123/sign-in#t", 8123, {"SSH_CONNECTION": "1.2.3.4 5 box.example 22"})
    )
    assert "ssh -N -L 8123:127.0.0.1:8123 box.example" in said
    assert "ssh" not in "\n".join(instructions("http://127.0.0.1:8123/sign-in#t", 8123, {}))


def test_the_browser_is_started_without_the_token_in_its_arguments(monkeypatch, home):
    from fairlead.ui import serving

    opened = threading.Event()
    named: list[str] = []

    def open_browser(address: str) -> None:
        named.append(address)
        opened.set()

    monkeypatch.setattr(serving.webbrowser, "open", open_browser)
    access = Access()
    with serving._opened(access, 8123):
        assert opened.wait(10)
        path = named[0].removeprefix("file://")
        with open(path) as file:
            token = re.search(r"#([^\"&]+)", file.read())[1]
    assert token not in named[0]
    assert access.sign_in(token)
    assert not os.path.exists(path)
