"""The API `/api/v1`: its routers, its OpenAPI document and the explanation of its error codes."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import FastAPI, Path
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel

import poller
from poller.bootstrap import Services
from poller.presentation import code_explanations
from poller.web.api.access import audit_api, sessions_api, tokens_api, users_api
from poller.web.api.alerts import (
    alerts_api,
    maintenances_api,
    notifications_api,
    parents_api,
    rules_api,
)
from poller.web.api.cluster import cluster_api, collectors_api, overview_api, sinks_api, sizes_api
from poller.web.api.contract import api_hints, idempotency, problems
from poller.web.api.contract.needs import Reading
from poller.web.api.inventory import (
    credentials_api,
    devices_api,
    filters_api,
    inventory_files_api,
    sites_api,
    targets_api,
    why_api,
)
from poller.web.api.operations import (
    board_api,
    breakers_api,
    drain_api,
    jobs_api,
    letters_api,
    polls_api,
    release_api,
    scheduler_health_api,
)
from poller.web.api.record import events_api, readings_api, reports_api, runs_api, series_api

DOCUMENT = f"{problems.PREFIX}/openapi.json"
#: Routers of all resources, in the order of the document.
ROUTERS = (
    sites_api.router,
    devices_api.router,
    targets_api.of_device_router,
    targets_api.router,
    why_api.router,
    filters_api.router,
    credentials_api.router,
    credentials_api.kinds_router,
    inventory_files_api.router,
    inventory_files_api.export_router,
    scheduler_health_api.router,
    users_api.router,
    tokens_api.router,
    sessions_api.own_router,
    sessions_api.router,
    audit_api.router,
    runs_api.router,
    runs_api.of_target_router,
    events_api.router,
    breakers_api.router,
    letters_api.router,
    polls_api.router,
    board_api.router,
    jobs_api.router,
    jobs_api.scheduler_router,
    release_api.router,
    rules_api.router,
    readings_api.router,
    readings_api.of_target_router,
    series_api.router,
    series_api.of_target_router,
    reports_api.router,
    alerts_api.router,
    maintenances_api.router,
    parents_api.router,
    overview_api.router,
    cluster_api.workers_router,
    drain_api.router,
    cluster_api.domains_router,
    collectors_api.router,
    sinks_api.router,
    notifications_api.router,
    sizes_api.router,
    cluster_api.settings_router,
)

_DESCRIPTION = (
    "Everything that the command `poller` does. Errors are application/problem+json with the codes "
    "of `poller explain`. Lists have pages: send `next` of a page as `cursor`."
)


class CodeBody(BaseModel):
    """The meaning of a code, and what to do about it."""

    code: str
    kind: str
    meaning: str
    hint: str


def add(app: FastAPI, services: Services) -> None:
    """Add the API to the application."""
    app.state.services = services
    add_routes(app)


def add_routes(app: FastAPI) -> None:
    """Add the routes alone, which are enough for the OpenAPI document."""
    for router in ROUTERS:
        app.router.routes.extend(router.routes)
    _add_documents(app)


def _add_documents(app: FastAPI) -> None:
    @app.get(DOCUMENT, include_in_schema=False)
    def openapi_document(call: Reading) -> JSONResponse:
        """The OpenAPI document of this API."""
        return JSONResponse(document(app))

    @app.get(f"{problems.PREFIX}/errors/{{code}}", responses=problems.COMMON, tags=["errors"])
    def explain_code(call: Reading, code: Annotated[str, Path(max_length=50)]) -> CodeBody:
        """Explain a code of a run, an error or an exit."""
        found = code_explanations.find(code, code_explanations.by_code())
        named = {key: found[key] for key in ("code", "kind", "meaning")}
        return CodeBody(**named, hint=api_hints.for_api(found["try"]))


def document(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document, which is made once."""
    if app.openapi_schema is None:
        routes = [route for route in app.routes if _is_ours(route)]
        found = get_openapi(
            title="poller", version=poller.__version__, description=_DESCRIPTION, routes=routes
        )
        _complete(found)
        app.openapi_schema = found
    made: dict[str, Any] = app.openapi_schema
    return made


def _is_ours(route: Any) -> bool:
    return isinstance(route, APIRoute) and route.path.startswith(problems.PREFIX + "/")


def _complete(found: dict[str, Any]) -> None:
    """Add the error body, the ways to log in, and the header of repeated requests."""
    components = found.setdefault("components", {})
    template = "#/components/schemas/{model}"
    problem = problems.Problem.model_json_schema(ref_template=template)
    schemas = components.setdefault("schemas", {})
    schemas |= problem.pop("$defs", {})
    schemas["Problem"] = problem
    components["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer"},
        "session": {"type": "apiKey", "in": "cookie", "name": "poller_session"},
    }
    found["security"] = [{"token": []}, {"session": []}]
    for path in found["paths"].values():
        operation = path.get("post")
        if operation is not None and not operation.pop("x-holds-secret", False):
            operation.setdefault("parameters", []).append(idempotency.PARAMETER)
