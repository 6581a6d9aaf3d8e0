"""The API is what its OpenAPI document says, for whatever fits the document and for whatever does not."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, settings
from machines import Daemon, Machine
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from fairlead.lifecycle import EVENTS
from fairlead.samples import every_step
from fairlead.server.openapi import document
from fairlead.server.tokens import SCOPES, Tokens
from fairlead.wire.steps import encode_step

schema = schemathesis.openapi.from_dict(document()).exclude(path="/v1/stop")  # it does
DISPATCH = jsonschema.Draft202012Validator(document()["components"]["schemas"]["Dispatch"])
quick = settings(max_examples=5, deadline=None, suppress_health_check=list(HealthCheck))
thorough = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def token(shared: Machine) -> str:
    return Tokens(shared.state).add("everything", [*SCOPES])


@pytest.fixture(scope="module")
def session() -> requests.Session:
    made = requests.Session()
    made.trust_env = False  # no proxy is asked
    return made


def check(case: Any, daemon: Daemon, session: requests.Session, token: str) -> None:
    response = case.call(base_url=daemon.url, session=session, headers={"Authorization": f"Bearer {token}"})
    # A folder that is not there cannot be told by a schema; and what reads is more lenient than what is written down:
    # an unknown parameter is ignored, and a step may leave out its version.
    case.validate_response(response, excluded_checks=[positive_data_acceptance, negative_data_rejection])


@schema.exclude(path="/v1/dispatch").parametrize()  # whose steps take long to think up; garbage for it is elsewhere
@quick
def test_the_api_is_what_its_document_says(case: Any, daemon: Daemon, session: requests.Session, token: str) -> None:
    check(case, daemon, session, token)


@pytest.mark.soak
@schema.parametrize()
@thorough
def test_the_api_is_what_its_document_says_at_length(
    case: Any, daemon: Daemon, session: requests.Session, token: str
) -> None:
    check(case, daemon, session, token)


def test_the_document_is_openapi() -> None:
    schemathesis.openapi.from_dict(document()).validate()


def test_the_document_is_served(daemon: Daemon) -> None:
    assert daemon.ask("GET", "/v1/openapi.json", tcp=True).body == json.loads(json.dumps(document()))


def test_every_route_is_in_the_document() -> None:
    from fairlead.server import app

    source = Path(app.__file__).read_text()
    routes = {path.replace(":path", "") for path in re.findall(r'Route\("([^"]+)"', source)}
    assert routes == set(document()["paths"])


@pytest.mark.parametrize("given", every_step(), ids=lambda step: step.event)
def test_a_step_of_every_event_is_one_by_the_document(given: Any) -> None:
    assert DISPATCH.is_valid({"step": json.loads(encode_step(given))})


def test_the_document_knows_every_event() -> None:
    steps = document()["components"]["schemas"]["Dispatch"]["properties"]["step"]["oneOf"]
    assert [one["properties"]["event"]["const"] for one in steps] == list(EVENTS)
