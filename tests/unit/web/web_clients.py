"""HTTP clients of the web application, with queries that a test chooses instead of the stores."""

from __future__ import annotations

import warnings

import web_overviews as fleet

from poller.bootstrap import Services
from poller.domain.record.overview import Overview
from poller.web.backend_queries import BackendQueries
from poller.web.routes import create_app

with warnings.catch_warnings():
    # Starlette's test client wants a newer httpx than FastAPI requires.
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient


def _healthy() -> Overview:
    return fleet.HEALTHY


def create(services: Services | None = None, **queries: object) -> TestClient:
    """A client of the application. The default queries are those of a healthy fleet.

    The API is there with services, which are not used for what the queries answer.
    """
    queries = {"overview": _healthy} | queries
    app = create_app(BackendQueries(**queries), services=services)  # type: ignore[arg-type]
    return TestClient(app, base_url="http://127.0.0.1")
