"""The web process: the application on the real stores, behind uvicorn, until SIGTERM or SIGINT."""

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
from poller.web.backend_queries import Sources
from poller.web.pages.collectors_page import Found
from poller.web.routes import create_app

log = logs.get(__name__)

DEFAULT_PORT = 8080
#: How long an answer that is on its way may hold up a stop.
STOP_S = 1


def run(host: str, port: int | None = None) -> None:
    """Serve until told to stop. Without a port: 8080, or a free one. Raises PortInUse, InvalidSetting."""
    bootstrap.services().report_errors("web")
    with listen(host, port) as listener:
        where = ":".join(map(str, listener.getsockname()[:2]))
        log.info("page_served", url=f"http://{where}/")
        server(sources(bootstrap.services())).run(sockets=[listener])


def server(given: Sources) -> uvicorn.Server:
    """A server of the application; its `run` blocks."""
    stopping = asyncio.Event()
    app = create_app(given, stopping)
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=STOP_S,
    )
    return _Server(config, stopping)


def listen(host: str, port: int | None) -> socket.socket:
    """A listening socket. A port that was asked for is taken or refused, never replaced."""
    try:
        return _bound(host, DEFAULT_PORT if port is None else port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE and port is None:
            return _bound(host, 0)
        raise _refusal(error, host, port) from None


def sources(services: Services) -> Sources:
    """The real stores as the web role sees them."""

    def read() -> Overview:
        return overview_reader.read(services.redis, services.keys)

    def ready() -> Mapping[str, str]:
        checks = {"sql": lambda: _ask_sql(services), "redis": lambda: _ask_redis(services)}
        return {name: _reason(check) for name, check in checks.items()}

    def collectors() -> Found:
        living = worker_registry.living(services.redis, services.keys, services.board.now_ms())
        return Found(services.registry, collector_trust.read(services), living)

    flower = services.settings.flower_url
    links = {"Flower": flower} if flower else {}
    of_device = partial(stored_rates.of_device, services.engine)
    return Sources(read, ready, links, of_device, collectors, partial(device_state.read, services))


class _Server(uvicorn.Server):
    """Ends the streams first: an open page must not hold the process until a time-out."""

    def __init__(self, config: uvicorn.Config, stopping: asyncio.Event) -> None:
        super().__init__(config)
        self._stopping = stopping

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._stopping.set()
        await super().shutdown(sockets)


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family)


def _refusal(error: OSError, host: str, port: int | None) -> errors.ConfigError:
    where = f"{host}:{DEFAULT_PORT if port is None else port}"
    if error.errno == errno.EADDRINUSE:
        return errors.PortInUse(
            f"web_port: {where} is in use", hint="set POLLER_WEB_PORT to another port"
        )
    reason = error.strerror or str(error)
    return errors.InvalidSetting(
        f"web_bind: cannot listen on {where}", reason, "set POLLER_WEB_BIND"
    )


def _reason(check: Callable[[], None]) -> str:
    try:
        check()
    except errors.PollerError as error:
        return str(error)
    return ""


def _ask_sql(services: Services) -> None:
    with engine.single_read(services.engine) as conn:
        conn.execute(sa.text("select 1"))


def _ask_redis(services: Services) -> None:
    with redis_client.store_errors(services.redis):
        services.redis.ping()
