"""The web application without a server, over an overview that a test chooses."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from poller.domain.record.overview import Overview

# For web_overviews and its neighbours, which the browser tests share.
sys.path.insert(0, str(Path(__file__).parent))

import web_clients

ALL_STORES_ANSWER = {"sql": "", "redis": ""}

CreateClient = Callable[..., web_clients.TestClient]


@pytest.fixture
def create_client() -> CreateClient:
    """A function that creates a client of the application."""

    def create(
        overview: Overview | Callable[[], Overview],
        store_errors: Mapping[str, str] = ALL_STORES_ANSWER,
        links: Mapping[str, str] | None = None,
    ) -> web_clients.TestClient:
        def read_overview() -> Overview:
            return overview() if callable(overview) else overview

        return web_clients.create(
            overview=read_overview,
            store_errors=lambda: store_errors,
            links=links or {},
        )

    return create
