"""The web application without a server, over an overview that a test chooses."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from poller.domain.record.overview import Overview
from poller.presentation.health import Stores

# For web_overviews and its neighbours, which the browser tests share.
sys.path.insert(0, str(Path(__file__).parent))

import web_clients

ALL_STORES_ANSWER = Stores()

CreateClient = Callable[..., web_clients.TestClient]


@pytest.fixture
def create_client() -> CreateClient:
    """A function that creates a client of the application."""

    def create(
        overview: Overview | Callable[[], Overview],
        stores: Stores = ALL_STORES_ANSWER,
        links: Mapping[str, str] | None = None,
        **queries: Any,
    ) -> web_clients.TestClient:
        def read_overview() -> Overview:
            return overview() if callable(overview) else overview

        return web_clients.create(
            overview=read_overview,
            stores=lambda _overview, error: dataclasses.replace(stores, redis_error=error),
            links=links or {},
            **queries,
        )

    return create
