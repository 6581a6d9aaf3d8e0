"""Signatures: what is signed, what verifies it, and everything that must not."""

from __future__ import annotations

import hashlib
import hmac
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.signing import MAX_AGE, NONCE, SIGNATURE, TIMESTAMP, BadSignature, Nonces, sign, verify

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


def test_a_request_is_signed_over_timestamp_nonce_and_body():
    expected = hmac.new(SECRET.encode(), b"v2.1700000000.0123456789abcdef.." + BODY, hashlib.sha256).hexdigest()
    assert sign(SECRET, BODY, now=NOW, nonce="0123456789abcdef") == {
        "Fairlead-Timestamp": "1700000000",
        "Fairlead-Nonce": "0123456789abcdef",
        "Fairlead-Signature": f"v2={expected}",
    }


def test_an_answer_is_signed_over_timestamp_nonce_request_and_body():
    message = b"v2.1700000000.0123456789abcdef.v2=abc." + BODY
    expected = hmac.new(SECRET.encode(), message, hashlib.sha256).hexdigest()
    assert sign(SECRET, BODY, answers="v2=abc", now=NOW, nonce="0123456789abcdef")[SIGNATURE] == f"v2={expected}"


def test_no_two_signatures_are_alike():
    """Though both are of the same body, in the same second."""
    signed = [sign(SECRET, BODY, now=NOW) for _ in range(100)]
    assert len({headers[SIGNATURE] for headers in signed}) == len({headers[NONCE] for headers in signed}) == 100


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


SIGNED = sign(SECRET, BODY, now=NOW, nonce="0123456789abcdef")


@pytest.mark.parametrize("headers", [{}, {TIMESTAMP: SIGNED[TIMESTAMP]}, SIGNED | {SIGNATURE: ""}])
def test_what_is_not_signed_is_refused_as_such(headers: dict[str, str]):
    assert "not signed" in refused(headers)


def test_another_secret_is_refused():
    assert "same secret" in refused(SIGNED, secret="another secret")


def test_another_body_is_refused():
    assert "does not match" in refused(SIGNED, BODY + b" ")


def test_another_timestamp_is_refused():
    assert "does not match" in refused(SIGNED | {TIMESTAMP: "1700000001"})


@pytest.mark.parametrize("nonce", ["", "0" * 32, SIGNED[NONCE][:-1], SIGNED[NONCE] + "0", SIGNED[NONCE].upper() + "."])
def test_another_nonce_is_refused(nonce: str):
    assert "does not match" in refused(SIGNED | {NONCE: nonce})


@pytest.mark.parametrize("missing", [TIMESTAMP, NONCE])
def test_a_signature_without_all_that_it_signs_is_refused(missing: str):
    assert "does not match" in refused({name: value for name, value in SIGNED.items() if name != missing})


@pytest.mark.parametrize("nonce", ["", "short", "a.b" * 8, "0" * 129, "é" * 16, "0" * 31 + "\n"])
def test_a_nonce_that_is_none_is_refused_even_if_signed(nonce: str):
    assert "no nonce" in refused(sign(SECRET, BODY, now=NOW, nonce=nonce))


def test_a_signature_of_an_older_version_is_refused_as_such():
    old = hmac.new(SECRET.encode(), b"1700000000.." + BODY, hashlib.sha256).hexdigest()
    assert "update" in refused({TIMESTAMP: "1700000000", SIGNATURE: f"sha256={old}"})


@quick
@given(st.binary(max_size=40), st.data())
def test_no_part_of_a_message_can_be_read_as_another(body: bytes, data: st.DataObject):
    """The parts are joined by dots, which a body may have, too."""
    nonce = "0123456789abcdef"
    signed = sign(SECRET, body, now=NOW, nonce=nonce)
    whole = b"1700000000." + nonce.encode() + b".." + body
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), min_size=2, max_size=2)))
    parts = whole[: cuts[0]], whole[cuts[0] + 1 : cuts[1]], whole[cuts[1] + 1 :]
    headers = signed | {TIMESTAMP: parts[0].decode("latin-1"), NONCE: parts[1].decode("latin-1")}
    if (parts[0], parts[1], parts[2]) != (b"1700000000", nonce.encode(), body):
        refused(headers, parts[2])


# --- a request that comes again ------------------------------------------------------------------


def test_a_request_is_accepted_once():
    seen = Nonces()
    verify(SECRET, SIGNED, BODY, seen=seen, now=NOW)
    with pytest.raises(BadSignature, match="before"):
        verify(SECRET, SIGNED, BODY, seen=seen, now=NOW)


def test_another_request_with_the_same_body_is_accepted():
    seen = Nonces()
    for _ in range(10):
        verify(SECRET, sign(SECRET, BODY, now=NOW), BODY, seen=seen, now=NOW)


@pytest.mark.parametrize("signed", [NOW - MAX_AGE, NOW, NOW + MAX_AGE])
@pytest.mark.parametrize("later", [0, MAX_AGE, 2 * MAX_AGE, 2 * MAX_AGE + 1, 1e6])
def test_a_request_is_refused_for_as_long_as_its_time_is_good(signed: float, later: float):
    seen, headers = Nonces(), sign(SECRET, BODY, now=signed)
    verify(SECRET, headers, BODY, seen=seen, now=NOW)
    for other in range(5):
        verify(SECRET, sign(SECRET, b"%d" % other, now=NOW + later), b"%d" % other, seen=seen, now=NOW + later)
    with pytest.raises(BadSignature):
        verify(SECRET, headers, BODY, seen=seen, now=NOW + later)


def test_what_is_not_signed_is_not_remembered():
    """Or an attacker could make a server refuse a request that is on its way."""
    seen = Nonces()
    with pytest.raises(BadSignature):
        verify("another secret", SIGNED, BODY, seen=seen, now=NOW)
    verify(SECRET, SIGNED, BODY, seen=seen, now=NOW)


def test_old_nonces_are_forgotten():
    seen = Nonces()
    for second in range(5000):
        seen.add(str(second), NOW + second)
    assert len(seen._until) <= 2 * MAX_AGE + 2


def test_of_many_copies_at_once_one_is_accepted():
    seen = Nonces()
    with ThreadPoolExecutor(8) as pool:
        accepted = list(pool.map(lambda _: seen.add("one", NOW), range(200)))
    assert accepted.count(True) == 1


def test_the_answer_to_another_request_is_refused():
    assert "does not match" in refused(sign(SECRET, BODY, answers="v2=one", now=NOW), answers="v2=two")


def test_a_request_is_not_its_own_answer():
    assert "does not match" in refused(SIGNED, answers=SIGNED[SIGNATURE])


def test_an_answer_is_no_request():
    assert "does not match" in refused(sign(SECRET, BODY, answers="v2=one", now=NOW))


@pytest.mark.parametrize("cut", ["", "v2=", "v1=", "v3=", "sha256="])
@pytest.mark.parametrize("whole", [True, False])
def test_a_signature_counts_only_whole(cut: str, whole: bool):
    digest = SIGNED[SIGNATURE].removeprefix("v2=")
    if not (whole and cut == "v2="):
        assert refused(SIGNED | {SIGNATURE: cut + (digest if whole else digest[:-1])})


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
@given(st.text(st.characters()), st.text(st.characters()), st.text(st.characters()))
def test_no_forged_header_is_more_than_a_bad_signature(timestamp: str, nonce: str, signature: str):
    refused({TIMESTAMP: timestamp, NONCE: nonce, SIGNATURE: signature})
    refused({TIMESTAMP: timestamp, NONCE: nonce, SIGNATURE: f"v2={signature}"})


@pytest.mark.parametrize("timestamp", ["", "now", "1.5", "9" * 5000])
def test_a_timestamp_that_is_no_number_is_a_bad_signature_even_if_signed(timestamp: str):
    signature = hmac.new(b"secret", f"v2.{timestamp}.{'0' * 32}..{{}}".encode(), hashlib.sha256).hexdigest()
    with pytest.raises(BadSignature, match="no time"):
        verify("secret", {TIMESTAMP: timestamp, NONCE: "0" * 32, SIGNATURE: f"v2={signature}"}, b"{}")
