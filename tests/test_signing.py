"""Signatures: what is signed, what verifies it, and everything that must not."""

from __future__ import annotations

import hashlib
import hmac
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.signing import MAX_AGE, SIGNATURE, TIMESTAMP, BadSignature, sign, verify

SECRET, BODY, NOW = "a shared secret", b'{"event": "before_tool"}', 1_700_000_000.0

quick = settings(deadline=None, max_examples=60, derandomize=True, database=None)


def test_what_was_signed_is_verified():
    verify(SECRET, sign(SECRET, BODY), BODY)


def test_an_answer_is_verified_with_the_signature_of_its_request():
    request = sign(SECRET, BODY)
    verify(SECRET, sign(SECRET, b"{}", answers=request[SIGNATURE]), b"{}", answers=request[SIGNATURE])


def test_an_empty_body_can_be_signed():
    verify(SECRET, sign(SECRET, b""), b"")


@quick
@given(st.text(st.characters(codec="utf-8")), st.binary(), st.text(st.characters(codec="utf-8")))
def test_whatever_was_signed_is_verified(secret: str, body: bytes, answers: str):
    verify(secret, sign(secret, body, answers=answers), body, answers=answers)


# --- for those who write a server in another language --------------------------------------------


def test_a_request_is_signed_over_timestamp_and_body():
    expected = hmac.new(SECRET.encode(), b"1700000000.." + BODY, hashlib.sha256).hexdigest()
    assert sign(SECRET, BODY, now=NOW) == {
        "Fairlead-Timestamp": "1700000000",
        "Fairlead-Signature": f"sha256={expected}",
    }


def test_an_answer_is_signed_over_timestamp_request_and_body():
    expected = hmac.new(SECRET.encode(), b"1700000000.sha256=abc." + BODY, hashlib.sha256).hexdigest()
    assert sign(SECRET, BODY, answers="sha256=abc", now=NOW)[SIGNATURE] == f"sha256={expected}"


def test_the_time_is_that_of_the_wall_clock():
    assert abs(int(sign(SECRET, BODY)[TIMESTAMP]) - time.time()) < 5


@pytest.mark.parametrize("case", [str.lower, str.upper, str.title])
def test_header_names_are_read_in_any_case(case):
    verify(SECRET, {case(name): value for name, value in sign(SECRET, BODY).items()}, BODY)


# --- what is refused -----------------------------------------------------------------------------


def refused(headers: dict[str, str], body: bytes = BODY, *, secret: str = SECRET, answers: str = "") -> str:
    with pytest.raises(BadSignature) as caught:
        verify(secret, headers, body, answers=answers, now=NOW)
    return str(caught.value)


SIGNED = sign(SECRET, BODY, now=NOW)


@pytest.mark.parametrize("headers", [{}, {TIMESTAMP: SIGNED[TIMESTAMP]}, SIGNED | {SIGNATURE: ""}])
def test_what_is_not_signed_is_refused_as_such(headers: dict[str, str]):
    assert "not signed" in refused(headers)


def test_another_secret_is_refused():
    assert "same secret" in refused(SIGNED, secret="another secret")


def test_another_body_is_refused():
    assert "does not match" in refused(SIGNED, BODY + b" ")


def test_another_timestamp_is_refused():
    assert "does not match" in refused(SIGNED | {TIMESTAMP: "1700000001"})


def test_a_signature_without_its_timestamp_is_refused():
    assert "does not match" in refused({SIGNATURE: SIGNED[SIGNATURE]})


def test_the_answer_to_another_request_is_refused():
    assert "does not match" in refused(sign(SECRET, BODY, answers="sha256=one", now=NOW), answers="sha256=two")


def test_a_request_is_not_its_own_answer():
    assert "does not match" in refused(SIGNED, answers=SIGNED[SIGNATURE])


def test_an_answer_is_no_request():
    assert "does not match" in refused(sign(SECRET, BODY, answers="sha256=one", now=NOW))


@pytest.mark.parametrize("cut", ["", "sha256=", "sha1="])
def test_a_signature_counts_only_whole(cut: str):
    assert refused(SIGNED | {SIGNATURE: cut + SIGNED[SIGNATURE].removeprefix("sha256=")[:-1]})


@pytest.mark.parametrize("age", [MAX_AGE, -MAX_AGE, 0])
def test_clocks_may_differ_a_little(age: float):
    verify(SECRET, sign(SECRET, BODY, now=NOW - age), BODY, now=NOW)


@pytest.mark.parametrize("age", [MAX_AGE + 1, -MAX_AGE - 1, 1e9])
def test_what_was_signed_at_another_time_is_refused(age: float):
    assert "clocks" in refused(sign(SECRET, BODY, now=NOW - age))


def test_the_age_is_measured_from_now():
    verify(SECRET, sign(SECRET, BODY), BODY)
    with pytest.raises(BadSignature, match="clocks"):
        verify(SECRET, sign(SECRET, BODY, now=time.time() - MAX_AGE - 10), BODY)


@quick
@given(st.text(st.characters()), st.text(st.characters()))
def test_no_forged_header_is_more_than_a_bad_signature(timestamp: str, signature: str):
    refused({TIMESTAMP: timestamp, SIGNATURE: signature})


@pytest.mark.parametrize("timestamp", ["", "now", "1.5", "9" * 5000])
def test_a_timestamp_that_is_no_number_is_a_bad_signature_even_if_signed(timestamp: str):
    signature = hmac.new(b"secret", timestamp.encode() + b"..{}", hashlib.sha256).hexdigest()
    with pytest.raises(BadSignature):
        verify("secret", {"Fairlead-Timestamp": timestamp, "Fairlead-Signature": f"sha256={signature}"}, b"{}")
