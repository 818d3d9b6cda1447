"""The OpenAPI document is true: generated requests of every operation have documented answers.

`POLLER_SCHEMA_EXAMPLES` is the number of requests per operation and actor.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import checks

from poller.bootstrap import Services
from poller.db.inventory import devices
from poller.domain.access import scopes
from poller.domain.access.scopes import Role, Scope
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.web.api import api_v1
from tests.integration import api_clients

EXAMPLES = int(os.environ.get("POLLER_SCHEMA_EXAMPLES", "2"))
#: Scopes, the one site, and answers that the actor gets among others.
ACTORS = {
    "admin": ((Scope.ADMIN,), None, {200, 404, 422}),
    "operator": (scopes.of_role(Role.OPERATOR), None, {200, 403, 404, 422}),
    "reader": ((Scope.READ,), None, {200, 403, 404, 422}),
    "reader of one site": ((Scope.READ,), "ams", {200, 403, 404, 422}),
    "scraper": ((Scope.SCRAPE,), None, {403}),
}
#: The first of them, and the one whose view is the smallest; the others are in between.
IN_EVERY_RUN = ("admin", "reader of one site")
CHECKS = (
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
)


def _marked(names: Iterable[str]) -> list[Any]:
    return [
        name if name in IN_EVERY_RUN else pytest.param(name, marks=pytest.mark.long)
        for name in names
    ]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("actor", _marked(ACTORS))
def test_every_operation_answers_as_documented(services: Services, actor: str) -> None:
    """No operation fails, and no answer is undocumented."""
    draft = DeviceDraft("sw1", address="192.0.2.1", site="ams")
    devices.add(services.engine, draft, [TargetDraft(collector="ping")])
    given_scopes, site, expected = ACTORS[actor]
    app = api_clients.client(services, given_scopes, site, ended=True).app
    problems: list[str] = []
    answered: set[int] = set()
    for operation in _operations(app):
        problems += _faults(operation, answered)
    assert problems == []
    assert expected <= answered


def _operations(app: Any) -> list[Any]:
    document = api_v1.document(app)
    schema = schemathesis.openapi.from_dict(document)
    schema.app = app
    return [found.ok() for found in schema.get_all_operations()]


def _faults(operation: Any, answered: set[int]) -> list[str]:
    faults: list[str] = []

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def ask(case: Any) -> None:
        response = case.call(base_url="http://127.0.0.1")
        answered.add(response.status_code)
        try:
            case.validate_response(response, checks=list(CHECKS))
        except Exception as error:
            faults.append(f"{operation.label}: {response.status_code} {_text(error)}")

    ask()
    return sorted(set(faults))


def _text(error: BaseException) -> str:
    parts = getattr(error, "exceptions", [error])
    return "; ".join(str(part).splitlines()[0] for part in parts)
