"""The web process: uvicorn serves the application on the real stores until SIGTERM or SIGINT."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Callable, Mapping
from functools import partial

import sqlalchemy as sa
import uvicorn

from poller import bootstrap, errors
from poller.bootstrap import Services
from poller.db import engine
from poller.db.record import stored_rates
from poller.domain.record.overview import Overview
from poller.observability import logs
from poller.presentation import collector_trust, device_state
from poller.state import redis_client
from poller.state.cluster import overview_reader, worker_registry
from poller.web.backend_queries import BackendQueries
from poller.web.pages.collectors_page import CollectorsStatus
from poller.web.routes import create_app

log = logs.get(__name__)

DEFAULT_PORT = 8080
#: A stop waits this long for responses that are being sent.
STOP_S = 1


def run(host: str, port: int | None = None) -> None:
    """Serve until a signal stops the process. Without a port: 8080, or a free one.

    Raises PortInUse, InvalidSetting.
    """
    services = bootstrap.services()
    services.report_errors("web")
    with listen(host, port) as listener:
        bound_host, bound_port = listener.getsockname()[:2]
        log.info("page_served", url=f"http://{bound_host}:{bound_port}/")
        server(backend_queries(services)).run(sockets=[listener])


def server(backend: BackendQueries) -> uvicorn.Server:
    """Create a server of the application; its `run` blocks."""
    stopping = asyncio.Event()
    config = uvicorn.Config(
        create_app(backend, stopping),
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=STOP_S,
    )
    return _Server(config, stopping)


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

    def store_errors() -> Mapping[str, str]:
        return {
            "sql": _error_of(_check_sql, services),
            "redis": _error_of(_check_redis, services),
        }

    def collectors() -> CollectorsStatus:
        now_ms = services.board.now_ms()
        workers = worker_registry.living(services.redis, services.keys, now_ms)
        trust = collector_trust.read(services)
        return CollectorsStatus(services.registry, trust, workers)

    flower = services.settings.flower_url
    return BackendQueries(
        overview=overview,
        store_errors=store_errors,
        links={"Flower": flower} if flower else {},
        rates=partial(stored_rates.of_device, services.engine),
        device_state=partial(device_state.read, services),
        collectors=collectors,
    )


class _Server(uvicorn.Server):
    """Ends the streams before it stops: an open page must not delay the stop until its timeout."""

    def __init__(self, config: uvicorn.Config, stopping: asyncio.Event) -> None:
        super().__init__(config)
        self._stopping = stopping

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._stopping.set()
        await super().shutdown(sockets)


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


def _error_of(check: Callable[[Services], None], services: Services) -> str:
    try:
        check(services)
    except errors.PollerError as error:
        return str(error)
    return ""


def _check_sql(services: Services) -> None:
    with engine.single_read(services.engine) as conn:
        conn.execute(sa.text("select 1"))


def _check_redis(services: Services) -> None:
    with redis_client.store_errors(services.redis):
        services.redis.ping()
