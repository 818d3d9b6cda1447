"""A browser without a screen: the application over an overview that a test chooses."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from poller.domain.record.overview import Overview
from poller.web.backend_queries import Sources
from poller.web.routes import create_app

with warnings.catch_warnings():
    warnings.simplefilter(
        "ignore"
    )  # Starlette's client asks for a newer httpx than FastAPI's users have
    from starlette.testclient import TestClient

sys.path.insert(0, str(Path(__file__).parent))  # for web_overviews, which the browser tests share

READY = {"sql": "", "redis": ""}

Ask = Callable[..., TestClient]


@pytest.fixture
def ask() -> Ask:
    def client(
        overview: Overview | Callable[[], Overview],
        ready: Mapping[str, str] = READY,
        links: Mapping[str, str] | None = None,
    ) -> TestClient:
        read = overview if callable(overview) else lambda: overview
        return TestClient(create_app(Sources(read, lambda: ready, links or {})))

    return client
