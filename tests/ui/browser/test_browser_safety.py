"""What the browser itself does: the token, the cookie, the policy, and a page of another port."""

from __future__ import annotations

import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from fairlead.journal.reading import Reader


def test_the_token_leaves_the_address_and_works_once(new_context, inspector, journal):
    running = inspector(journal)
    token = running.address.partition("#")[2]
    context = new_context()
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(running.address)
    page.wait_for_url(lambda address: "/sign-in" not in address)
    assert token not in page.url
    seen = "document.cookie + JSON.stringify(history.state) + JSON.stringify({...localStorage})"
    assert token not in page.evaluate(seen)
    assert not any(token in url.partition("#")[0] for url in asked)
    other = new_context()
    second = other.new_page()
    second.goto(running.address)
    second.get_by_text("used already").wait_for()
    assert second.goto(running.base).status == 401


def test_scripts_do_not_see_the_cookie(open_page):
    page = open_page("/")
    assert page.evaluate("document.cookie") == ""
    (cookie,) = page.context.cookies()
    assert cookie["httpOnly"]
    assert cookie["sameSite"] == "Strict"


def test_a_text_of_a_record_runs_nothing(open_page, journal):
    with Reader(journal) as reader:
        (session,) = reader.db.execute("SELECT session FROM records WHERE session LIKE 'hostile%'").fetchone()
    page = open_page("/")
    alerts: list[str] = []
    page.on("dialog", lambda dialog: (alerts.append(dialog.message), dialog.dismiss()))
    page.get_by_role("link", name=re.compile("onerror")).first.click()
    page.wait_for_url("**/session?id=hostile*")
    for summary in page.locator("#rows summary").all():
        summary.click()
        summary.hover()
    page.locator(".details").first.wait_for()
    assert session.startswith("hostile")
    assert page.locator("main img").count() == 0
    assert alerts == []


INJECTED = """() => {
  const main = document.querySelector("main");
  main.innerHTML += '<img src=x onerror="window.ran=1"><p style="color:red">x</p>';
  main.append(Object.assign(document.createElement("script"), { textContent: "window.ran=2" }));
}"""


def test_the_policy_blocks_a_handler_that_got_into_a_page(new_context, inspector, journal):
    """If escaping had a mistake, this would still stop it. The console must say so, so this test has its own tab."""
    running = inspector(journal)
    context = new_context()
    page = context.new_page()
    page.goto(running.address)
    page.wait_for_url(lambda address: "/sign-in" not in address)
    blocked: list[str] = []
    page.on("console", lambda message: blocked.append(message.text))
    page.evaluate(INJECTED)
    page.wait_for_timeout(200)
    assert page.evaluate("window.ran") is None
    assert any("Content Security Policy" in text for text in blocked)


@pytest.fixture
def other_port():
    """A page of another port of this machine: to the browser it is the same site."""

    class Page(BaseHTTPRequestHandler):
        cookies: list[str] = []

        def do_GET(self) -> None:
            self.cookies.append(self.headers.get("cookie", ""))
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>other</title><link rel=icon href=data:,><p>other")

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", Page.cookies
    server.shutdown()
    server.server_close()


ATTACKS = """async (base) => {
  const got = [];
  for (const [path, options] of [
    ["/", {credentials: "include"}],
    ["/", {credentials: "include", mode: "no-cors"}],
    ["/sign-in", {method: "POST", credentials: "include", mode: "no-cors"}],
    ["/", {method: "POST", credentials: "include", mode: "no-cors", headers: {"content-type": "text/plain"}}],
  ]) {
    try { const answer = await fetch(base + path, options); got.push(answer.type + (await answer.text()).length); }
    catch { got.push("refused"); }
  }
  const feed = await new Promise((done) => {
    const source = new EventSource(base + "/live", {withCredentials: true});
    source.onerror = () => done("refused"); source.onopen = () => done("open");
  });
  const frame = await new Promise((done) => {
    const element = document.createElement("iframe");
    element.onload = () => done(element.contentDocument?.body?.innerText ?? "nothing");
    element.src = base + "/"; document.body.append(element); setTimeout(() => done("nothing"), 1000);
  });
  return [...got, feed, frame];
}"""


def test_a_page_of_another_port_sees_and_changes_nothing(new_context, inspector, journal, other_port):
    running = inspector(journal)
    address, cookies = other_port
    context = new_context()
    page = context.new_page()
    page.goto(running.address)
    page.wait_for_url(lambda address: "/sign-in" not in address)
    evil = context.new_page()
    evil.goto(address)
    assert any("fairlead_" in cookie for cookie in cookies)  # why the cookie alone must not change anything
    answers: list[int] = []
    evil.on("response", lambda response: answers.append(response.status) if running.base in response.url else None)
    got = evil.evaluate(ATTACKS, running.base)
    assert got == ["refused", "refused", "refused", "refused", "refused", "nothing"]
    assert set(answers) == {403}


def test_a_link_on_another_page_opens_nothing(new_context, inspector, journal, other_port):
    running = inspector(journal)
    context = new_context()
    page = context.new_page()
    page.goto(running.address)
    page.wait_for_url(lambda address: "/sign-in" not in address)
    evil = context.new_page()
    evil.goto(other_port[0])
    with evil.expect_navigation() as navigation:
        evil.evaluate(f"location.href = '{running.base}/session?id=calls'")
    assert navigation.value.status == 403
