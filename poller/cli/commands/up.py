"""`poller up`: every role in one terminal, on an embedded server unless you bring your own."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Mapping
from types import FrameType
from typing import Annotated, Any

import typer

from poller import bootstrap, errors
from poller.bootstrap import Services
from poller.cli.commands import demo, flower
from poller.cli.output.log_lines import LogView
from poller.cli.up import embedded_server, home_lock, role_commands, up_summary
from poller.cli.up.plugin_watch import Installed
from poller.cli.up.process_supervisor import Supervisor
from poller.db import migrate
from poller.db.inventory import devices
from poller.presentation import formatting
from poller.settings import Settings, load, origins, setting_sources
from poller.state.redis_client import store_errors

DEMO_DEVICES = 200
LONGEST_DRAIN_S = 2.5
START_UP_S = 10.0
#: What a worker may take to finish its polls when it makes room for one that knows a new plugin.
REPLACE_S = 10.0
WEB_PORT = 8080


def command(
    workers: Annotated[
        int | None, typer.Option(min=1, help="Worker processes.", show_default="one per core")
    ] = None,
    with_demo: Annotated[
        bool, typer.Option("--demo", help="Add a simulated fleet to the inventory and poll it.")
    ] = False,
    devices: Annotated[
        int, typer.Option(min=1, max=100_000, help="Size of the simulated fleet.")
    ] = DEMO_DEVICES,
    seconds: Annotated[
        float | None, typer.Option("--for", min=1, help="Stop by itself after so many seconds.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a summary as one JSON object on the last line.")
    ] = False,
) -> None:
    """Run everything: server, migrations, scheduler, workers, page and Flower. Ctrl-C stops it all."""
    settings = load()
    with home_lock.occupied(settings.home):
        Up(settings, LogView(to_stderr=as_json)).run(
            workers or os.cpu_count() or 1, devices if with_demo else 0, seconds, as_json
        )


class Up:
    """One run from start to stop."""

    def __init__(self, settings: Settings, view: LogView) -> None:
        self.settings = settings
        self.view = view
        self.env: dict[str, str] = {"PYTHONUNBUFFERED": "1", **_same_settings(settings)}
        self.supervisor = Supervisor(settings.home / "logs", self._say)
        self.stopping = threading.Event()
        self.unread = False  # nobody reads what we say
        self.home_given = "POLLER_HOME" in os.environ
        self.first: up_summary.Mark | None = None

    def run(self, workers: int, demo_size: int, seconds: float | None, as_json: bool) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._on_signal)
        try:
            services = self._prepare()
            if demo_size:
                self._start_demo(services, demo_size)
            since_ms, began = self._start_roles(services, workers)
            counted_from = self._watch(services, seconds, began)
            report = self._stop_and_report(services, since_ms, counted_from)
        finally:
            self._stop_all()
        if self.unread:
            raise BrokenPipeError
        self.view.summary(report)
        if as_json:
            print(json.dumps(report), flush=True)

    def _prepare(self) -> Services:
        """The server and the database, ready and at the right revision."""
        settings = self.settings
        flower.check(settings)
        self.web_port = role_commands.choose_port(
            "web_port", settings.web_port, WEB_PORT, settings.web_bind, self._note
        )
        self.flower_port = role_commands.choose_port(
            "flower_port",
            settings.flower_port,
            flower.DEFAULT_PORT,
            settings.flower_bind,
            self._note,
        )
        url = settings.broker_url
        if origins(os.environ)["redis_url"] == "default":
            role, url = embedded_server.prepare(settings.home / "valkey", role_commands.free_port())
            self.supervisor.add(role)
            embedded_server.wait_ready(url)
        self.env.update(
            POLLER_REDIS_URL=url, POLLER_FLOWER_URL=settings.flower_url or self._flower_address()
        )
        self.env.update(POLLER_WORKER_DRAIN_S=str(min(settings.worker_drain_s, LONGEST_DRAIN_S)))
        os.environ.update(self.env)
        services = Services(load())
        bootstrap.services.cache_clear()
        with store_errors(services.redis):
            services.redis.ping()
        before, after = migrate.upgrade(services.engine)
        if before != after:
            self._note(f"database upgraded to revision {after}")
        services.keyring  # noqa: B018  made now, so that the roles do not race for it
        places = {"web_url": self._page_address(), "flower_url": self.env["POLLER_FLOWER_URL"]}
        home_lock.publish(settings.home, {"redis_url": url, **places})
        return services

    def _start_demo(self, services: Services, size: int) -> None:
        snmp_port, routeros_port = demo.ports(services)
        self.supervisor.add(role_commands.simulator(self.env, size, snmp_port, routeros_port))
        changed = demo.install(services, size, snmp_port, routeros_port)
        self._note(
            f"demo fleet: {formatting.counted(size, 'simulated device')}"
            + ("" if changed else " (already there)")
        )

    def _start_roles(self, services: Services, workers: int) -> tuple[int, float]:
        now = services.redis.time()
        self.supervisor.add(role_commands.beat(self.env))
        for number in range(1, workers + 1):
            self.supervisor.add(role_commands.worker(number, self.env))
        self.supervisor.add(role_commands.web(self.env, self.web_port))
        self.supervisor.add(role_commands.flower(self.env, self.flower_port))
        if self.settings.trap_listener:
            self.supervisor.add(role_commands.traps(self.env))
        self.view.addresses(self._page_address(), self._flower_address(), self.settings.home)
        self._note(f"next    {self._next(services)}")
        return int(now[0] * 1000), time.monotonic()

    def _next(self, services: Services) -> str:
        """What to do now, in a second terminal, which finds us by our home."""
        where = f"POLLER_HOME={self.settings.home} " if self.home_given else ""
        if devices.count(services.engine):
            return f"in another terminal here: {where}poller status"
        return f"nothing to poll yet; in another terminal here: {where}poller device add --help"

    def _watch(self, services: Services, seconds: float | None, began: float) -> float:
        """Restart what dies, until we are told to stop or the time is over. Returns when the time began to count.

        It counts from the first poll on (or a moment later, if nothing is polled): a run of one interval
        then reaches every target once, and start-up hides neither the rate nor the CPU of a poll.
        """
        counted_from = began + START_UP_S
        before = up_summary.mark(services, {}).polls
        installed = Installed()
        while not self.stopping.wait(0.1):
            self.supervisor.look()
            if self.supervisor.hopeless(_is_worker):
                raise errors.InvalidSetting(
                    "no worker can run as it is configured", hint="what their own lines say"
                )
            if news := installed.news(time.monotonic()):
                self._note(f"{news}: workers and page start again")
                self.supervisor.replace(lambda name: _is_worker(name) or name == "web", REPLACE_S)
            if self.first is None:
                self.first = self._mark_if_polling(services, before)
                counted_from = min(counted_from, self.first.at) if self.first else counted_from
            if seconds is not None and time.monotonic() >= counted_from + seconds:
                self._note("time is over, stopping")
                break
        return min(counted_from, time.monotonic())

    def _mark_if_polling(self, services: Services, before: int) -> up_summary.Mark | None:
        try:
            mark = up_summary.mark(services, self._processes())
        except errors.StoreError:
            return None  # the server is just being started again
        return mark if mark.polls > before else None

    def _stop_and_report(self, services: Services, since_ms: int, began: float) -> dict[str, Any]:
        last = up_summary.mark(services, self._processes())
        board = up_summary.places(services)
        seconds = time.monotonic() - began
        self._stop_polling()
        cpu = up_summary.cpu_per_poll(self.first, last)
        return up_summary.summarise(
            services, since_ms, seconds, cpu, board, up_summary.verify(services)
        )

    def _stop_polling(self) -> None:
        """First nothing new is scheduled, then what runs may finish."""
        self.supervisor.ask(lambda name: name == "beat", 1.0)
        self.supervisor.ask(_is_worker, 5.0)

    def _stop_all(self) -> None:
        """Everything in order, the server last; nine seconds at the very most."""
        self._stop_polling()
        self.supervisor.ask(lambda name: name != "valkey", 1.0)
        self.supervisor.end(lambda name: name != "valkey")
        self.supervisor.ask(lambda name: True, 1.5)
        self.supervisor.end(lambda name: True)

    def _processes(self) -> Mapping[str, int]:
        return {
            c.role.name: c.process.pid for c in self.supervisor.children if c.process is not None
        }

    def _page_address(self) -> str:
        return f"http://{_host(self.settings.web_bind)}:{self.web_port}/"

    def _flower_address(self) -> str:
        return f"http://{_host(self.settings.flower_bind)}:{self.flower_port}/"

    def _note(self, text: str) -> None:
        self._say("poller", text)

    def _say(self, who: str, text: str) -> None:
        """Never fails: a reader that left (`poller up | head`) stops us, as a closed terminal does."""
        try:
            self.view.line(who, text)
        except (BrokenPipeError, SystemExit):  # Rich turns the one into the other
            self.unread = True
            self.stopping.set()

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if not self.stopping.is_set():
            self._note(f"{signal.Signals(number).name}: stopping")
        self.stopping.set()


def _is_worker(name: str) -> bool:
    return name.startswith("worker")


def _same_settings(settings: Settings) -> dict[str, str]:
    """Who is told of a home looks for nothing above the working directory; what we found there is told, too."""
    config = setting_sources.config_file(os.environ)
    above = {"POLLER_CONFIG": str(config)} if config.is_absolute() and config.is_file() else {}
    return {"POLLER_HOME": str(settings.home), **above}


def _host(bind: str) -> str:
    return "127.0.0.1" if bind in ("0.0.0.0", "::") else f"[{bind}]" if ":" in bind else bind  # noqa: S104
