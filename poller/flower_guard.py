"""Makes Flower safe however it is started: `poller flower` and `celery -A poller flower` alike.

Flower's own defaults are every address, no login, and `/metrics` for everyone. The settings of
poller become its defaults, and Flower's command line, environment and configuration file may change
them; the result is checked before Flower listens.

Flower asks the workers for their queues once, when it starts; before that it shows the configured
queues. Workers subscribe to queues as these appear on the board, so the configuration follows it.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from typing import Any

import tornado.options
import tornado.web
from flower import command as flower_command
from flower.app import Flower
from flower.views import monitor
from kombu.entity import Queue

from poller import bootstrap, errors
from poller.domain.access import same_site
from poller.domain.access.scopes import Scope
from poller.security import allowed_hosts, network_exposure, process_memory, trusted_proxies
from poller.security.allowed_hosts import AllowedHosts
from poller.security.trusted_proxies import TrustedProxies
from poller.settings import Settings

MAX_TASKS = 5_000
PURGE_WORKERS_S = 600
QUEUES_EVERY_S = 5.0
#: Paths that need no user: a container's health check.
PUBLIC = ("/healthcheck",)


def install(settings: Settings) -> None:
    """Give Flower our settings as defaults, before it reads its options, and our checks."""
    options: Any = tornado.options.options
    options.address = settings.flower_bind
    options.max_tasks = MAX_TASKS
    options.purge_offline_workers = PURGE_WORKERS_S
    if settings.flower_port is not None:
        options.port = settings.flower_port
    if settings.flower_basic_auth:
        # A password never goes on a command line.
        options.basic_auth = [settings.flower_basic_auth.get_secret_value()]

    flower_command.Flower = GuardedFlower
    process_memory.forbid_core_files()


class GuardedFlower(Flower):  # type: ignore[misc]  # Flower is untyped
    """Flower that checks its options, the Host header, and the login of `/metrics`."""

    def __init__(self, options: Any, capp: Any, **more: Any) -> None:
        _check(options)
        super().__init__(options=options, capp=capp, **more)

        settings = bootstrap.services().settings
        self._hosts = AllowedHosts(settings.flower_hosts, [settings.flower_url])
        self._proxies = _proxies(settings)
        prefix = f"/{options.url_prefix.strip('/')}" if options.url_prefix else ""
        self.add_handlers(r".*", [(f"{prefix}/metrics", PrivateMetrics)])

    def find_handler(self, request: Any, **more: Any) -> Any:
        """Refuse a foreign Host header, and in proxy mode a request without a user.

        With a login Flower itself refuses a foreign Origin; without one its API is closed.
        """
        host = request.headers.get("Host", "")
        if not self._hosts.allows(host):
            text = allowed_hosts.refusal(host, "POLLER_FLOWER_HOSTS")
            return self._refusal(request, allowed_hosts.MISDIRECTED, text)

        if self._proxies.user_header and request.path not in PUBLIC:
            try:
                _check_user(request, self._proxies)
            except errors.NotLoggedIn as error:
                return self._refusal(request, 401, f"{error}\n")
            except errors.NotAllowed as error:
                return self._refusal(request, 403, f"{error}\n")
        return super().find_handler(request, **more)

    def _refusal(self, request: Any, status: int, text: str) -> Any:
        return self.get_handler_delegate(request, Refusal, {"status": status, "text": text})

    def start(self) -> None:
        """Serve until a signal stops the process."""
        threading.Thread(target=_follow_queues, args=(self.capp,), daemon=True).start()
        super().start()


class Refusal(tornado.web.RequestHandler):
    """Answers any method with one line of text."""

    def initialize(self, status: int, text: str) -> None:
        self._status = status
        self._text = text

    def prepare(self) -> None:
        self.set_status(self._status, HTTPStatus(self._status).phrase)
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(self._text)


class PrivateMetrics(monitor.Metrics):  # type: ignore[misc]  # Flower is untyped
    """`/metrics` with the login of all other pages: its labels name workers and tasks."""

    @tornado.web.authenticated
    async def get(self) -> None:
        await super().get()


def _proxies(settings: Settings) -> TrustedProxies:
    """The proxies that name users, as for the page."""
    return trusted_proxies.make(
        settings.trusted_proxies,
        settings.proxy_user_header,
        settings.proxy_groups_header,
        settings.group_roles,
    )


def _check_user(request: Any, proxies: TrustedProxies) -> None:
    """Raise NotLoggedIn or NotAllowed unless a trusted proxy names a user who may do this.

    The peer's address is that of the connection: headers may say another one.
    """
    peer = str(request.connection.context.address[0])
    names = request.headers.get_list(proxies.user_header)
    if not proxies.trust(peer) or not names:
        raise errors.NotLoggedIn("log in at the proxy in front of Flower")
    actor = proxies.actor(names, request.headers.get_list(proxies.groups_header), peer)
    if request.method in same_site.SAFE_METHODS:
        actor.require(Scope.READ)
        return
    fetch_site = request.headers.get("Sec-Fetch-Site", "")
    origin = request.headers.get("Origin", "")
    if same_site.is_foreign(fetch_site, origin, request.headers.get("Host", "")):
        raise errors.NotAllowed("another web site sent this request")
    actor.require(Scope.OPERATE)


def _check(options: Any) -> None:
    """End the process with one line if Flower would be open to a network."""
    by_proxy = bool(bootstrap.services().settings.proxy_user_header)
    has_login = bool(options.basic_auth or options.auth) or by_proxy
    is_local = bool(options.unix_socket)
    try:
        network_exposure.check_flower("127.0.0.1" if is_local else options.address, has_login)
    except errors.InvalidSetting as error:
        print(f"error[{error.code}]: {error}\n  try: {error.hint}", file=sys.stderr)
        raise SystemExit(2) from None


def _follow_queues(app: Any) -> None:
    """Copy the board's queues to the Celery configuration, for ever."""
    board = bootstrap.services().board
    queue: Callable[[str], Any] = Queue
    pause = threading.Event()

    while True:
        with suppress(errors.StoreError):  # Flower itself reports a broker that is away
            names = (app.conf.task_default_queue, *board.queues())
            app.conf.task_queues = [queue(name) for name in names]
        pause.wait(QUEUES_EVERY_S)
