"""The routes, and nothing else: each asks one module and answers. All are GET; nothing here writes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import FastAPI, HTTPException, Query
from fastapi.responses import HTMLResponse, JSONResponse, Response
from fastapi.sse import EventSourceResponse, ServerSentEvent
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware

import poller
from poller.web import assets, collector_routes, device_routes, error_responses
from poller.web.api import live_stream, metrics, overview_json
from poller.web.api.snapshot import Snapshots
from poller.web.backend_queries import Sources
from poller.web.headers import SecurityHeaders
from poller.web.pages.html import Page, Wishes
from poller.web.pages.themes import ChosenTheme, keep

FOR_EVER = "public, max-age=31536000, immutable"


def create_app(sources: Sources, stopping: asyncio.Event | None = None) -> FastAPI:
    """The application. Set `stopping` to end all streams, so that a server can stop at once."""
    app = FastAPI(
        title="poller",
        version=poller.__version__,
        docs_url=None,  # these pages load scripts from elsewhere
        redoc_url=None,
        openapi_url=None,
        middleware=[Middleware(SecurityHeaders), Middleware(GZipMiddleware, minimum_size=1024)],
    )
    snapshots = Snapshots(sources.overview)
    _add_probes(app, sources, snapshots)
    _add_data(app, snapshots, stopping or asyncio.Event())
    _add_page(app, sources, snapshots)
    return app


def _add_probes(app: FastAPI, sources: Sources, snapshots: Snapshots) -> None:
    @app.get("/healthz")
    async def healthz() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/readyz")
    async def readyz() -> JSONResponse:
        reasons = await run_in_threadpool(sources.ready)
        ready = not any(reasons.values())
        body = {"status": "ready" if ready else "not ready"}
        body |= {name: reason or "ok" for name, reason in reasons.items()}
        body["leader"] = await _leader(snapshots)
        return JSONResponse(body, status_code=200 if ready else 503)

    @app.get("/metrics")
    async def scrape() -> Response:
        snapshot = await snapshots.get()
        overview = None if snapshot.trouble else snapshot.overview
        return Response(metrics.render(overview), media_type=metrics.CONTENT_TYPE)


def _add_data(app: FastAPI, snapshots: Snapshots, stopping: asyncio.Event) -> None:
    build = assets.load().build

    @app.get("/api/overview")
    async def overview() -> JSONResponse:
        snapshot = await snapshots.get()
        if snapshot.overview is None or snapshot.trouble:
            return JSONResponse({"error": {"message": snapshot.trouble}}, status_code=503)
        return JSONResponse(overview_json.of(snapshot.overview))

    @app.get("/api/stream", response_class=EventSourceResponse)
    async def live() -> AsyncIterator[ServerSentEvent]:
        async for frame in live_stream.frames(snapshots, build, stopping):
            yield frame


def _add_page(app: FastAPI, sources: Sources, snapshots: Snapshots) -> None:
    files = assets.load()
    page = Page(files, sources.links)
    device_routes.add(app, sources, page, snapshots)
    collector_routes.add(app, sources, page)
    error_responses.add(app, page)

    @app.get("/", response_class=HTMLResponse)
    async def overview_page(
        theme: ChosenTheme, refresh: Annotated[int, Query(ge=0, le=3600)] = 0
    ) -> HTMLResponse:
        snapshot = await snapshots.get()
        return keep(theme, HTMLResponse(page.render(snapshot.view, Wishes(theme.shown, refresh))))

    @app.get("/static/{path}")
    async def static(path: str) -> Response:
        asset = files.by_path.get(path)
        if asset is None:
            raise HTTPException(404, "no such file")
        return Response(
            asset.body, media_type=asset.media_type, headers={"Cache-Control": FOR_EVER}
        )


async def _leader(snapshots: Snapshots) -> str:
    snapshot = await snapshots.get()
    if snapshot.overview is None or snapshot.trouble:
        return "unknown"
    return "present" if snapshot.overview.leader else "absent"
