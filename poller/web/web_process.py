"""The web process: uvicorn serves the application on the real stores until SIGTERM or SIGINT."""

from __future__ import annotations

import asyncio
import errno
import socket
from contextlib import suppress
from functools import partial
from typing import Any

import uvicorn

from poller import bootstrap, errors
from poller.bootstrap import Services
from poller.db.record import stored_rates
from poller.domain.record.overview import Overview, Worker
from poller.observability import logs
from poller.presentation import collector_trust, job_states
from poller.presentation.job_states import JobList
from poller.presentation.store_check import StoreCheck
from poller.security import network_exposure, process_memory, tls_files
from poller.security.allowed_hosts import AllowedHosts
from poller.service import job_actions, job_listing
from poller.service.access import login_demand
from poller.service.cluster import collector_figures
from poller.service.cluster.recent_times import RecentTimes
from poller.service.fleet import age_picture, fleet_picture
from poller.service.job_listing import ShownJob
from poller.state.cluster import (
    beat_registry,
    job_totals,
    overview_reader,
    worker_registry,
)
from poller.state.cluster.beat_registry import BeatInstance
from poller.web import http_connections
from poller.web.api import job_metrics
from poller.web.api.job_metrics import JobReading
from poller.web.backend_queries import BackendQueries
from poller.web.http_connections import LimitedProtocol, WaitingConnections
from poller.web.pages.cluster.collectors_page import CollectorsStatus
from poller.web.routes import MOST_STREAMS, create_app
from poller.web.tls_listener import TlsListener
from poller.workers.process import process_limits

log = logs.get(__name__)

DEFAULT_PORT = 8080
#: An open connection waits this long for the next request.
KEEP_ALIVE_S = 5
#: A stop waits this long for responses that are being sent.
STOP_S = 1
#: The date of responses is renewed this often.
TICK_S = 1.0


def run(host: str, port: int | None = None) -> None:
    """Serve until a signal stops the process. Without a port: 8080, or a free one.

    Raises PortInUse, InvalidSetting.
    """
    services = bootstrap.services()
    settings = services.settings
    login_demand.check_exposure(services)
    tls_files.check(settings.web_tls_cert, settings.web_tls_key)
    process_memory.forbid_core_files()
    process_limits.raise_file_limit()  # for the streams
    services.report_errors("web")
    services.publish_metrics("web")
    hosts = AllowedHosts(settings.web_hosts, [settings.web_url])
    with listen(host, port) as listener:
        _log_address(listener, bool(settings.web_tls_cert))
        backend = backend_queries(services)
        server(backend, hosts, settings.web_streams, services=services).run(sockets=[listener])


def server(
    backend: BackendQueries,
    hosts: AllowedHosts | None = None,
    most_streams: int = MOST_STREAMS,
    waiting: WaitingConnections | None = None,
    services: Services | None = None,
) -> uvicorn.Server:
    """Create a server of the application; its `run` blocks."""
    stopping = asyncio.Event()
    app = create_app(backend, stopping, hosts, most_streams, services)
    scrapes = app.state.exporter.recent if services else None
    unfinished = waiting or WaitingConnections()
    protocol: Any = partial(LimitedProtocol, waiting=unfinished, scrapes=scrapes)
    settings = services.settings if services else None
    config = uvicorn.Config(
        app,
        http=protocol,
        ssl_certfile=(settings.web_tls_cert or None) if settings else None,
        ssl_keyfile=(settings.web_tls_key or None) if settings else None,
        ws="none",
        limit_concurrency=http_connections.limit(most_streams),
        timeout_keep_alive=KEEP_ALIVE_S,
        proxy_headers=False,  # uvicorn would believe every local peer; see access/request_origin.py
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=STOP_S,
    )
    return _Server(config, stopping, unfinished)


def listen(host: str, port: int | None) -> socket.socket:
    """Open a listening socket. Only the default port gives way to a free one.

    Raises PortInUse, InvalidSetting.
    """
    wanted_port = DEFAULT_PORT if port is None else port
    try:
        return _bind(host, wanted_port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE and port is None:
            return _bind(host, 0)
        raise _listen_error(error, f"{host}:{wanted_port}") from None


def backend_queries(services: Services) -> BackendQueries:
    """The queries of the web role on the real stores."""

    def overview() -> Overview:
        return overview_reader.read(services.redis, services.keys)

    def collectors() -> CollectorsStatus:
        workers = living()
        trust = collector_trust.read(services)
        figures = collector_figures.read(services)
        return CollectorsStatus(services.registry, trust, workers, figures)

    job_cache = job_states.cache(services)

    def living() -> list[Worker]:
        now_ms = services.board.now_ms()
        return worker_registry.living(services.redis, services.keys, now_ms)

    def known_workers() -> list[Worker] | None:
        try:
            return living()
        except errors.StoreError:
            return None  # the jobs are in SQL

    def jobs() -> JobList:
        return job_cache.get(known_workers())

    def job_readings() -> list[JobReading]:
        totals = job_totals.read(services.redis, services.keys)
        return job_metrics.readings(jobs(), totals)

    def job(name: str) -> ShownJob:
        return job_listing.show(services, name, known_workers())

    def beats() -> list[BeatInstance]:
        return beat_registry.listing(services.redis, services.keys, services.board.now_ms())

    flower = services.settings.flower_url
    return BackendQueries(
        overview=overview,
        stores=StoreCheck(services, jobs=job_cache).check,
        links={"Flower": flower} if flower else {},
        rates=partial(stored_rates.of_device, services.engine),
        collectors=collectors,
        slow_targets=partial(collector_figures.slowest, services),
        job_readings=job_readings,
        jobs=jobs,
        expire_jobs=job_cache.expire,
        job=job,
        job_runs=partial(job_listing.runs, services),
        job_row=partial(job_actions.row, services),
        beats=beats,
        fleet=partial(fleet_picture.picture, services),
        ages=partial(age_picture.picture, services),
        queue_times=RecentTimes(services).at,
        process_metrics=partial(_process_metrics, services),
    )


def _process_metrics(services: Services) -> bytes:
    """The metrics of the processes of this host, unless they have a place of their own."""
    settings = services.settings
    has_own_place = settings.metrics_port is not None or settings.metrics_file is not None
    if services.metrics is None or has_own_place:
        return b""
    return services.metrics.text()


class _Server(uvicorn.Server):
    """Ends the streams before it stops: an open page must not delay the stop until its timeout."""

    def __init__(
        self, config: uvicorn.Config, stopping: asyncio.Event, unfinished: WaitingConnections
    ) -> None:
        super().__init__(config)
        self._stopping = stopping
        self._unfinished = unfinished
        self._tls: TlsListener | None = None
        self._exit: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def should_exit(self) -> bool:
        """Set by a signal, or by a thread."""
        return self._should_exit

    @should_exit.setter
    def should_exit(self, value: bool) -> None:
        self._should_exit = value
        if value and self._loop is not None and self._exit is not None:
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._exit.set)

    async def main_loop(self) -> None:
        """Wait for the end. uvicorn looks ten times a second, which an idle process pays for."""
        self._loop, self._exit = asyncio.get_running_loop(), asyncio.Event()
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                async with asyncio.timeout(TICK_S):
                    await self._exit.wait()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        if self.config.ssl is None:
            await super().startup(sockets)
            return
        await super().startup([])
        self._tls = TlsListener(self.config.ssl, self._unfinished)
        for listener in sockets or []:
            self._tls.start(listener, self._protocol)

    def _protocol(self) -> Any:
        """The protocol of a connection, as uvicorn makes it for its own sockets."""
        make: Any = self.config.http_protocol_class
        return make(
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._stopping.set()
        if self._tls is not None:
            self._tls.stop()
        await super().shutdown(sockets)


def _log_address(listener: socket.socket, has_tls: bool) -> None:
    """Say where the page is, and that passwords cross a network without TLS."""
    host, port = listener.getsockname()[:2]
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    scheme = "https" if has_tls else "http"
    if has_tls or network_exposure.is_loopback(host):
        log.info("page_served", url=f"{scheme}://{address}/")
    else:
        log.warning("page_served_without_tls", address=address, advice="POLLER_WEB_TLS_CERT")


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family)


def _listen_error(error: OSError, address: str) -> errors.ConfigError:
    if error.errno == errno.EADDRINUSE:
        hint = "set POLLER_WEB_PORT to another port"
        return errors.PortInUse(f"web_port: {address} is in use", hint=hint)

    message = f"web_bind: cannot listen on {address}"
    reason = error.strerror or str(error)
    return errors.InvalidSetting(message, reason, "set POLLER_WEB_BIND")
