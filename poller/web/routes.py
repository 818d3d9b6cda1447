"""The FastAPI application and its routes: probes, metrics, API, pages, log-ins, static files."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import (
    JSONResponse,
    PlainTextResponse,
    Response,
    StreamingResponse,
)
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import poller
from poller.bootstrap import Services
from poller.domain.access import scopes as access_scopes
from poller.domain.access.actor import Actor, ActorKind
from poller.security import allowed_hosts
from poller.security.allowed_hosts import AllowedHosts
from poller.service.discovery.unsaved_devices import UnsavedDevices
from poller.web import assets, error_responses
from poller.web.access import access_policy, login_routes, provider_routes, visitor
from poller.web.access.access_control import AccessControl
from poller.web.access.actor_finder import ActorFinder
from poller.web.access.login_routes import LoginPages
from poller.web.api import api_v1, live_stream, metrics, overview_json
from poller.web.api.contract.body_limit import BodyLimit
from poller.web.api.contract.needs import READ_PAGE, SCRAPE_PAGE
from poller.web.api.job_metrics import JobReadings
from poller.web.api.live_stream import FrameTexts, StreamSlots
from poller.web.api.record.event_viewers import EventFeed
from poller.web.api.snapshot import FleetReads, Snapshot, Snapshots
from poller.web.backend_queries import BackendQueries
from poller.web.exporter import exporter_routes
from poller.web.exporter.exporter_routes import Exporter
from poller.web.page_routes.access import (
    account_routes,
    audit_routes,
    credential_routes,
    token_routes,
    user_routes,
)
from poller.web.page_routes.alerts import (
    alert_routes,
    maintenance_routes,
    notification_routes,
)
from poller.web.page_routes.cluster import (
    collectors_routes,
    drain_routes,
    settings_routes,
    sink_routes,
    workers_routes,
)
from poller.web.page_routes.device import device_pages, device_routes
from poller.web.page_routes.fleet import (
    bulk_routes,
    devices_routes,
    overview_routes,
    sites_routes,
)
from poller.web.page_routes.inventory import (
    device_edit_routes,
    import_routes,
    new_device_routes,
    new_target_routes,
    pause_routes,
)
from poller.web.page_routes.record import event_routes
from poller.web.page_routes.work import job_forms, job_routes, letter_routes
from poller.web.pages.frame.html import PageRenderer
from poller.web.prometheus import readings_routes

#: Headers of every response: nothing from other hosts, nothing inline, no framing, no sniffing.
SECURITY_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; base-uri 'none'; form-action 'self'; "
        "frame-ancestors 'none'; object-src 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not "no-referrer": browsers then send forms with `Origin: null`, as foreign pages do.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
#: For static files, whose names change with their content.
CACHE_FOREVER = "public, max-age=31536000, immutable"
#: Level 9, the default, takes ten times as long for a tenth less.
GZIP_LEVEL = 4
#: Live pages at the same time, unless the settings say otherwise.
MOST_STREAMS = 200


class SecurityHeaders:
    """Adds the security headers. Plain ASGI, so that a stream passes through unbuffered."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(SECURITY_HEADERS)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        is_http = scope["type"] == "http"
        await self._app(scope, receive, send_with_headers if is_http else send)


class HostCheck:
    """Refuses requests under a foreign name: another site may read the page with them."""

    def __init__(self, app: ASGIApp, hosts: AllowedHosts) -> None:
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._app
        if scope["type"] == "http":
            host = Headers(scope=scope).get("host", "")
            if not self._hosts.allows(host):
                text = allowed_hosts.refusal(host, "POLLER_WEB_HOSTS")
                app = PlainTextResponse(text, status_code=allowed_hosts.MISDIRECTED)
        await app(scope, receive, send)


class OpenDoor:
    """Admits every request as the local actor: for an application without stores."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            client = scope.get("client")
            address = client[0] if client else ""
            actor = Actor("local", ActorKind.LOCAL, address)
            scope.setdefault("state", {})["actor"] = actor
            visitor.welcome(actor, "")
        await self._app(scope, receive, send)


def create_app(
    backend: BackendQueries,
    stopping: asyncio.Event | None = None,
    hosts: AllowedHosts | None = None,
    most_streams: int = MOST_STREAMS,
    services: Services | None = None,
) -> FastAPI:
    """Create the application. Set `stopping` to end all streams, so that a server stops at once.

    The API needs the services; a test of pages has none.
    """
    files = assets.load()
    page = PageRenderer(files, backend.links)
    finder = (
        ActorFinder(services, access_policy.of_settings(services.settings)) if services else None
    )
    door = Middleware(OpenDoor)
    if finder is not None:
        refuse = partial(error_responses.for_request, page=page)
        door = Middleware(AccessControl, finder, refuse)
    app = FastAPI(
        title="poller",
        version=poller.__version__,
        docs_url=None,  # the documentation pages load scripts from another host
        redoc_url=None,
        openapi_url=None,
        middleware=[
            Middleware(SecurityHeaders),
            Middleware(HostCheck, hosts or AllowedHosts()),
            Middleware(BodyLimit),
            door,
            Middleware(GZipMiddleware, minimum_size=1024, compresslevel=GZIP_LEVEL),
        ],
    )
    reads = FleetReads(backend.fleet, backend.ages, backend.queue_times)
    snapshots = Snapshots(backend.overview, backend.stores, reads=reads)
    slots = StreamSlots(most_streams)
    ending = stopping or asyncio.Event()
    app.state.backend, app.state.snapshots = backend, snapshots
    app.state.stream_slots = slots
    error_responses.add(app, page)
    _add_probes(app, snapshots)
    _add_metrics(app, snapshots, JobReadings(backend.job_readings), backend.process_metrics)
    _add_overview_api(app, snapshots)
    _add_stream(app, snapshots, files.build, slots, ending)
    overview_routes.add(app, page, snapshots)
    sites_routes.add(app, page, snapshots)
    collectors_routes.add(app, backend, page)
    workers_routes.add(app, backend, page)
    device_routes.add(app, backend)
    job_routes.add(app, backend, page)
    _add_static_files(app, files)
    if services is not None and finder is not None:
        app.state.finder = finder
        login_pages = LoginPages(services, finder, page)
        app.state.login_throttle = login_pages.throttle
        login_routes.add(app, login_pages)
        provider_routes.add(app, login_pages)
        devices_routes.add(app, page)
        device_pages.add(app, page, snapshots)
        pause_routes.add(app, page)
        device_edit_routes.add(app, page)
        new_target_routes.add(app, page)
        import_routes.add(app, page)
        bulk_routes.add(app, page)
        alert_routes.add(app, page)
        maintenance_routes.add(app, page)
        letter_routes.add(app, page)
        event_routes.add(app, page)
        sink_routes.add(app, page)
        notification_routes.add(app, page)
        settings_routes.add(app, page)
        job_forms.add(app, backend, page)
        drain_routes.add(app, page)
        collectors_routes.add_forms(app, page)
        credential_routes.add(app, page)
        user_routes.add(app, page)
        token_routes.add(app, page)
        account_routes.add(app, page, login_pages.throttle)
        audit_routes.add(app, page)
        api_v1.add(app, services)
        readings_routes.add(app, services)
        exporter = Exporter(services, finder)
        exporter.recent.extra_headers = _header_bytes()
        app.state.exporter = exporter
        exporter_routes.add(app, services, exporter)
        new_device_routes.add(app, page, UnsavedDevices(services, exporter.sender))
        app.state.event_feed = EventFeed(services, ending)
    return app


def _header_bytes() -> bytes:
    """The headers of every response, for responses that are written from memory."""
    headers = {**SECURITY_HEADERS, "Cache-Control": "no-store"}
    return "".join(f"{name.lower()}: {value}\r\n" for name, value in headers.items()).encode()


def _add_probes(app: FastAPI, snapshots: Snapshots) -> None:
    @app.get("/healthz")
    async def healthz() -> dict[str, str]:
        """Liveness: the process responds."""
        return {"status": "ok"}

    @app.get("/readyz")
    async def readyz(request: Request) -> JSONResponse:
        """Readiness: 200 when all stores can be used, else 503.

        The reasons are for those who may read all sites: they name servers.
        """
        snapshot = await snapshots.get()
        verdict = snapshot.health
        stores = snapshot.stores
        status_code = 200 if verdict.is_ready else 503
        word = "ready" if verdict.is_ready else "not ready"
        actor: Actor | None = request.state.actor
        sees_every_site = actor is not None and actor.site is None
        if actor is None or not sees_every_site or not actor.may(access_scopes.Scope.READ):
            return JSONResponse({"status": word}, status_code)
        body = {
            "status": word,
            "sql": stores.sql_error or "ok",
            "redis": stores.redis_error or stores.write_error or "ok",
            "leader": _leader(snapshot),
            "level": verdict.level.value,
            "verdict": verdict.text,
        }
        return JSONResponse(body, status_code)


def _add_metrics(
    app: FastAPI,
    snapshots: Snapshots,
    job_readings: JobReadings,
    process_metrics: Callable[[], bytes],
) -> None:
    @app.get("/metrics", dependencies=[SCRAPE_PAGE])
    async def scrape() -> Response:
        """Metrics for Prometheus."""
        snapshot = await snapshots.get()
        overview = None if snapshot.error else snapshot.overview
        jobs = await job_readings.get() if overview else None
        level = snapshot.health.level
        # In a thread: a thousand jobs are 30,000 lines, for which the live pages must not wait.
        alerts = snapshot.stores.alerts if overview else None
        text = await run_in_threadpool(metrics.render, overview, level, jobs, alerts)
        of_processes = await run_in_threadpool(process_metrics)
        return Response(text + of_processes, media_type=metrics.CONTENT_TYPE)


def _add_overview_api(app: FastAPI, snapshots: Snapshots) -> None:
    @app.get("/api/overview", dependencies=[READ_PAGE])
    async def overview() -> JSONResponse:
        """The overview as JSON; 503 while the board cannot be read."""
        snapshot = await snapshots.get()
        if snapshot.overview is None or snapshot.error:
            body = {"error": {"message": snapshot.error}}
            return JSONResponse(body, status_code=503)
        jobs, alerts = snapshot.stores.jobs, snapshot.stores.alerts
        document = overview_json.document(snapshot.overview, snapshot.health, jobs, alerts)
        return JSONResponse(document)


def _add_stream(
    app: FastAPI, snapshots: Snapshots, build: str, slots: StreamSlots, stopping: asyncio.Event
) -> None:
    texts = FrameTexts(build)

    @app.get("/api/stream", dependencies=[READ_PAGE, Depends(slots.taken)])
    async def live() -> StreamingResponse:
        """The changes of the overview page as server-sent events; 503 if too many are open."""
        frames = live_stream.frames(snapshots, texts, stopping)
        return StreamingResponse(
            frames, media_type=live_stream.MEDIA_TYPE, headers=live_stream.HEADERS
        )


def _add_static_files(app: FastAPI, files: assets.Assets) -> None:
    @app.get("/static/{path}")
    async def static(path: str) -> Response:
        """A static file, by its name with the hash."""
        asset = files.by_path.get(path)
        if asset is None:
            raise HTTPException(404, "no such file")
        headers = {"Cache-Control": CACHE_FOREVER}
        return Response(asset.body, media_type=asset.media_type, headers=headers)


def _leader(snapshot: Snapshot) -> str:
    """Whether there is a leader, in one word."""
    if snapshot.overview is None or snapshot.error:
        return "unknown"
    return "present" if snapshot.overview.leader else "absent"
