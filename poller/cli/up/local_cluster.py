"""All roles of one `poller up`, from start to stop."""

from __future__ import annotations

import os
import signal
import threading
import time
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from poller import bootstrap, errors
from poller.alerts.receivers import registry as receivers
from poller.bootstrap import Services
from poller.cli.actions import demo_fleet
from poller.cli.commands import flower
from poller.cli.output.log_lines import POLLER, LogLines
from poller.cli.up import (
    embedded_server,
    event_feed,
    home_lock,
    listen_ports,
    role_commands,
    up_summary,
)
from poller.cli.up.plugin_watch import PluginWatch
from poller.cli.up.process_supervisor import Supervisor, any_role
from poller.cli.up.worker_succession import WorkerSuccession
from poller.db import migrate
from poller.db.engine import check_file
from poller.db.inventory import devices
from poller.presentation import formatting
from poller.security import network_exposure, vault_keys
from poller.service.access import login_demand
from poller.service.operations import board_actions
from poller.settings import Settings, load, origins, setting_sources
from poller.sinks import registry
from poller.state.cluster import worker_registry
from poller.state.redis_client import store_errors

#: The time that polls under way have at a stop, at most.
LONGEST_DRAIN_S = 2.5
#: Counting starts after this long without a poll.
START_UP_S = 10.0
#: The time a worker has to finish its polls when it is replaced by one that knows a new plugin.
REPLACE_S = 10.0
WEB_PORT = 8080
#: The logger of events, in lines of the roles.
_EVENT_LOGGER = "poller.event_publisher"
_CHECK_EVERY_S = 0.1


class LocalCluster:
    """All roles of one `poller up`, from start to stop."""

    def __init__(self, settings: Settings, lines: LogLines) -> None:
        self.settings = settings
        self.lines = lines
        self.env: dict[str, str] = {"PYTHONUNBUFFERED": "1", **_same_settings(settings)}
        self.supervisor = Supervisor(settings.home / "logs", self._print_line)
        self.stopping = threading.Event()
        self.reader_gone = False  # the program that reads the output has ended
        self.home_configured = "POLLER_HOME" in os.environ
        self.first: up_summary.Mark | None = None

    def run(self, workers: int, demo_size: int, seconds: float | None) -> dict[str, Any]:
        """Run until a signal or until `seconds` have passed. Returns the summary."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._on_signal)

        try:
            services = self._prepare()
            if demo_size:
                self._start_demo(services, demo_size)
            since_ms = int(services.redis.time()[0] * 1000)
            self._start_roles(services, workers)
            counted_mono = self._watch(services, seconds)
            report = self._stop_and_report(services, since_ms, counted_mono)
        finally:
            self._stop_all()

        if self.reader_gone:
            raise BrokenPipeError

        return report

    def _prepare(self) -> Services:
        """Start the server, upgrade the database, and publish where both are."""
        settings = self.settings
        flower.check(settings)
        registry.check(settings.sinks, settings.sink)
        receivers.check(settings.receiver)
        self._choose_ports()

        redis_url = settings.broker_url
        if origins(os.environ)["redis_url"] == "default":
            redis_url = self._start_server(settings.home / "valkey")

        flower_url = settings.flower_url or self._flower_address()
        drain_s = min(settings.worker_drain_s, LONGEST_DRAIN_S)
        self.env["POLLER_REDIS_URL"] = redis_url
        self.env["POLLER_FLOWER_URL"] = flower_url
        self.env["POLLER_WORKER_DRAIN_S"] = str(drain_s)
        os.environ.update(self.env)

        services = Services(load())
        bootstrap.services.cache_clear()

        with store_errors(services.redis):
            services.redis.ping()

        before, after = migrate.upgrade(services.engine)
        if before != after:
            self._note(f"database upgraded to revision {after}")

        login_demand.check_exposure(services)
        problem = services.key_problem()
        if problem:
            self._note(f"warning: {problem}; {vault_keys.RIGHT_KEY_HINT}")
        services.keyring  # noqa: B018  made now, so that the roles do not race for it

        published = {
            "redis_url": redis_url,
            "web_url": self._page_address(),
            "flower_url": flower_url,
            "sinks": list(settings.sinks),
            "sink": settings.sink,
            "receiver": settings.receiver,
            "route": settings.route,
        }
        home_lock.publish(settings.home, published)
        return services

    def _start_server(self, folder: Path) -> str:
        """Start the embedded server and return its URL. Damaged data is set aside.

        The board is rebuilt from SQL then; only states, counters and openings by hand are lost.
        """
        role, redis_url = embedded_server.prepare(folder, listen_ports.free_port())
        server = self.supervisor.add(role)
        try:
            embedded_server.wait_ready(redis_url, server)
        except embedded_server.DamagedData as damaged:
            aside = embedded_server.set_data_aside(folder)
            paths = " and ".join(str(path) for path in aside)
            self._note(f"{damaged}; set aside as {paths}: starting with an empty board")
            server.start()
            embedded_server.wait_ready(redis_url, server)
        return redis_url

    def _choose_ports(self) -> None:
        settings = self.settings
        self.web_port = listen_ports.choose_port(
            "web_port", settings.web_port, WEB_PORT, settings.web_bind, self._note
        )
        self.flower_port = listen_ports.choose_port(
            "flower_port",
            settings.flower_port,
            flower.DEFAULT_PORT,
            settings.flower_bind,
            self._note,
        )

    def _start_demo(self, services: Services, size: int) -> None:
        """Start the simulator and put its devices into the inventory."""
        ports = demo_fleet.ports(services)
        simulator = role_commands.simulator(
            self.env, size, ports.snmp, ports.routeros, ports.routeros_tls
        )
        self.supervisor.add(simulator)
        changed = demo_fleet.install(services, size, ports)
        already = "" if changed else " (already there)"
        self._note(f"demo fleet: {formatting.counted(size, 'simulated device')}{already}")
        if ports.routeros != demo_fleet.ROUTEROS_PORT:
            self._note(f"demo fleet: the plain API of its routers is at port {ports.routeros}")

    def _start_roles(self, services: Services, workers: int) -> None:
        """Start scheduler, workers, page, Flower and, if configured, the trap listener."""
        self.supervisor.add(role_commands.beat(self.env))
        for number in range(1, workers + 1):
            self.supervisor.add(role_commands.worker(number, self.env))

        self.supervisor.add(role_commands.web(self.env, self.web_port))
        self.supervisor.add(role_commands.flower(self.env, self.flower_port))
        if self.settings.trap_listener:
            self.supervisor.add(role_commands.traps(self.env))

        self.lines.addresses(self._page_address(), self._flower_address(), self.settings.home)
        self._note_exposure()
        self._note(f"next    {self._next(services)}")

    def _note_exposure(self) -> None:
        """Say the real addresses of what other machines reach."""
        settings = self.settings
        if not network_exposure.is_loopback(settings.web_bind):
            address = f"{settings.web_bind}:{self.web_port}"
            self._note(f"open    the page listens on {address} and asks for a login")
        if not network_exposure.is_loopback(settings.flower_bind):
            address = f"{settings.flower_bind}:{self.flower_port}"
            self._note(f"open    Flower listens on {address}")

    def _next(self, services: Services) -> str:
        """The command to type in a second terminal, which finds this process by its home."""
        where = f"POLLER_HOME={self.settings.home} " if self.home_configured else ""
        if devices.count(services.engine):
            return f"in another terminal here: {where}poller status"
        return f"nothing to poll yet; in another terminal here: {where}poller device add --help"

    def _watch(self, services: Services, seconds: float | None) -> float:
        """Restart ended processes until the end. Returns the instant at which counting started.

        Raises StoreUnavailable if the SQLite file is deleted or replaced.

        Counting starts with the first poll, or after START_UP_S without one. A run of one interval
        then reaches every target once, and start-up does not distort the rate or the CPU per poll.
        """
        counted_mono = time.monotonic() + START_UP_S
        polls_before = up_summary.mark(services, {}).polls
        plugin_watch = PluginWatch()
        ready_pids = partial(_ready_pids, services)
        succession = WorkerSuccession(self.supervisor, REPLACE_S, ready_pids)
        event_feed.start(services, partial(self._print_line, "events"), self.stopping)

        while not self.stopping.wait(_CHECK_EVERY_S):
            self.supervisor.check()
            check_file(services.engine)
            if self.supervisor.all_misconfigured(_is_worker):
                raise errors.InvalidSetting(
                    "no worker can run as it is configured", hint="what their own lines say"
                )

            changes = plugin_watch.changes(time.monotonic())
            if changes:
                self._note(f"{changes}: workers and page start again")
                self.supervisor.replace(_is_web, REPLACE_S)
                succession.begin(_is_worker)
            succession.check()

            if self.first is None:
                self.first = self._mark_if_polling(services, polls_before)
                if self.first:
                    counted_mono = min(counted_mono, self.first.at_mono)

            if seconds is not None and time.monotonic() >= counted_mono + seconds:
                self._note("time is over, stopping")
                break

        return min(counted_mono, time.monotonic())

    def _mark_if_polling(self, services: Services, polls_before: int) -> up_summary.Mark | None:
        """The counters once the first poll is counted; None before that."""
        try:
            mark = up_summary.mark(services, self.supervisor.cpu_ms())
        except errors.StoreError:
            return None  # the server is starting again
        return mark if mark.polls > polls_before else None

    def _stop_and_report(
        self, services: Services, since_ms: int, counted_mono: float
    ) -> dict[str, Any]:
        """Read the counters, stop polling, and build the summary."""
        last = up_summary.mark(services, self.supervisor.cpu_ms())
        board = board_actions.places(services)
        seconds = time.monotonic() - counted_mono
        self._stop_polling()
        cpu = up_summary.cpu_per_poll(self.first, last)

        return up_summary.summarise(services, since_ms, seconds, cpu, board)

    def _stop_polling(self) -> None:
        """Stop scheduling first; then let the workers finish."""
        self.supervisor.stop(_is_beat, 1.0)
        self.supervisor.stop(_is_worker, 5.0)

    def _stop_all(self) -> None:
        """Stop every process, the server last, within nine seconds."""
        self._stop_polling()
        self.supervisor.stop(_is_not_server, 1.0)
        self.supervisor.kill(_is_not_server)
        self.supervisor.stop(any_role, 1.5)
        self.supervisor.kill(any_role)

    def _page_address(self) -> str:
        scheme = "https" if self.settings.web_tls_cert else "http"
        return f"{scheme}://{_host(self.settings.web_bind)}:{self.web_port}/"

    def _flower_address(self) -> str:
        return f"http://{_host(self.settings.flower_bind)}:{self.flower_port}/"

    def _note(self, text: str) -> None:
        self._print_line(POLLER, text)

    def _print_line(self, role: str, text: str) -> None:
        """Print a line. Events have lines of their own, and are in the log files as well.

        A closed output (`poller up | head`) stops everything instead of failing.
        """
        if _EVENT_LOGGER in text:
            return
        try:
            self.lines.line(role, text)
        except (BrokenPipeError, SystemExit):  # Rich turns the first into the second
            self.reader_gone = True
            self.stopping.set()
        except OSError:
            return  # the output is a file on a disk that is full: there is no place to say so

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        """Stop at the first signal; later signals change nothing."""
        if not self.stopping.is_set():
            self._note(f"{signal.Signals(number).name}: stopping")
        self.stopping.set()


def _is_worker(name: str) -> bool:
    return name.startswith("worker")


def _is_beat(name: str) -> bool:
    return name == "beat"


def _is_not_server(name: str) -> bool:
    return name != "valkey"


def _is_web(name: str) -> bool:
    return name == "web"


def _ready_pids(services: Services) -> set[int]:
    """The processes of the workers that sent a heartbeat; none while Redis does not answer."""
    try:
        return {each.pid for each in worker_registry.registered(services.redis, services.keys)}
    except errors.StoreError:
        return set()


def _same_settings(settings: Settings) -> dict[str, str]:
    """The environment that gives child processes this process's settings.

    With POLLER_HOME set, settings search no configuration file above the working directory. A file
    that this process found there is therefore passed on.
    """
    env = {"POLLER_HOME": str(settings.home)}
    config = setting_sources.config_file(os.environ)
    if config.is_absolute() and config.is_file():
        env["POLLER_CONFIG"] = str(config)
    return env


def _host(bind: str) -> str:
    """The host of a URL for a bind address: loopback for all addresses, IPv6 in brackets."""
    if bind in ("0.0.0.0", "::"):  # noqa: S104
        return "127.0.0.1"
    return f"[{bind}]" if ":" in bind else bind
