"""The documented `curl` lines of the API: each leads to a route, and each route has a line."""

from __future__ import annotations

import re
from pathlib import Path

from fastapi import FastAPI
from fastapi.routing import APIRoute

from poller.web.api import api_v1
from poller.web.api.contract import problems

DOCS = Path(__file__).parents[2] / "docs"
#: An address of the API in a line: `$API/sites/ams`, up to its query.
ADDRESS = re.compile(r"\$API(/[^\s\"'?]*)")
METHOD = re.compile(r"-X ([A-Z]+)")

Line = tuple[str, str]  # method and path


def documented() -> list[Line]:
    """The method and the path of every `curl` line in the docs."""
    found = []
    for page in sorted(DOCS.glob("*.md")):
        text = page.read_text().replace("\\\n", " ")
        for line in text.splitlines():
            address = ADDRESS.search(line)
            if "curl" in line and address:
                method = METHOD.search(line)
                found.append((method[1] if method else "GET", address[1]))
    return found


def routes() -> dict[Line, re.Pattern[str]]:
    """Every route, with the expression of its paths."""
    app = FastAPI(openapi_url=None)
    api_v1.add_routes(app)
    found = {}
    for route in app.routes:
        if isinstance(route, APIRoute) and route.include_in_schema:
            path = route.path.removeprefix(problems.PREFIX)
            expression = re.compile(re.sub(r"\{[^}]*\}", "[^/]+", path))
            for method in route.methods:
                found[method, path] = expression
    return found


def route_of(line: Line, known: dict[Line, re.Pattern[str]]) -> Line | None:
    """The route of a line: one without parameters before others, as FastAPI chooses."""
    method, path = line
    if line in known:
        return line
    matching = [each for each in known if each[0] == method and known[each].fullmatch(path)]
    return min(matching, key=lambda each: each[1].count("{"), default=None)


def test_every_documented_address_leads_to_a_route() -> None:
    """A line that was copied from the docs works."""
    known = routes()
    lines = documented()
    assert len(lines) > 20
    assert [line for line in lines if route_of(line, known) is None] == []


def test_every_route_has_a_documented_line() -> None:
    """A route that was added without a `curl` line is named here."""
    known = routes()
    shown = {route_of(line, known) for line in documented()}
    assert sorted(set(known) - shown) == []


def test_an_instant_is_a_text_in_every_body() -> None:
    """Only durations are numbers of milliseconds; instants are texts of RFC 3339."""
    app = FastAPI(openapi_url=None)
    api_v1.add_routes(app)
    schemas = api_v1.document(app)["components"]["schemas"]
    names = {name for schema in schemas.values() for name in schema.get("properties", {})}
    assert {name for name in names if name.endswith("_ms")} == {"interval_ms", "timeout_ms"}
