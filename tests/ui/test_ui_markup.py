"""HTML cannot be made without escaping."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.ui.markup import UnsafeMarkup, h, join


class Found(HTMLParser):
    """The elements and texts of some HTML, as a browser would read it."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.text += data


@given(st.text())
def test_a_text_never_becomes_an_element(value):
    found = Found(h.p(value, title=value))
    assert [tag for tag, _ in found.elements if tag != "span"] == ["p"]
    assert set(found.elements[0][1]) == {"title"}
    assert all(attributes == {"class": "unseen"} for tag, attributes in found.elements if tag == "span")


@given(st.text(alphabet=st.characters(categories=["L", "N", "P", "S"])))
def test_a_printable_text_is_shown_as_it_is(value):
    assert Found(h.p(value)).text == value


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("\x1b[31m", "\\x1b[31m"),
        ("a\u202eb", "a\\u202eb"),
        ("\u200b", "\\u200b"),
        ("\ud800", "\\ud800"),
        ("\x00", "\\x00"),
    ],
)
def test_what_would_not_be_seen_is_spelled_out(value, shown):
    assert Found(h.p(value)).text == shown
    assert Found(h.p(title=value)).elements[0][1] == {"title": shown}


def test_lines_and_tabs_stay():
    assert Found(h.pre("a\n\tb")).text == "a\n\tb"


def test_a_child_can_be_left_out_and_can_be_many():
    assert h.p(None, False, [h.b("a"), "b"], 3) == "<p><b>a</b>b3</p>"
    assert join("<", h.br()) == "&lt;<br>"


@pytest.mark.parametrize("name", ["onclick", "onmouseover", "style", "ONLOAD"])
def test_a_script_or_style_in_an_attribute_is_refused(name):
    with pytest.raises(UnsafeMarkup):
        h.p("x", **{name: "alert(1)"})


@pytest.mark.parametrize(
    "address", ["javascript:alert(1)", "//evil.example", "https://evil.example", "data:text/html,x", ""]
)
def test_an_address_leads_to_a_page_of_the_inspector(address):
    with pytest.raises(UnsafeMarkup):
        h.a("x", href=address)


@pytest.mark.parametrize("name", ["script", "style", "iframe", "base"])
def test_an_element_that_runs_or_embeds_something_is_refused(name):
    with pytest.raises(UnsafeMarkup):
        getattr(h, name)("alert(1)")
