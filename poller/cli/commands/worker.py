"""`poller worker`: one worker process per core, each the very command one would type, watched and restarted."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import threading
from types import FrameType
from typing import Annotated

import typer

from poller import errors
from poller.cli.output.log_lines import LogView
from poller.cli.up import role_commands
from poller.cli.up.process_supervisor import Role, Supervisor
from poller.domain.scheduling import queue_routing
from poller.settings import Settings, load
from poller.workers.guard import black_box
from poller.workers.process import process_limits

#: A process needs this much before it polls anything; a lower limit would only restart it for ever.
LEAST_MEMORY = 160 * 2**20
#: What a process has when it polls, and what each target that it remembers adds to that.
OWN_MEMORY = 200 * 2**20
TARGET_MEMORY = 30_000
#: After its polls were cut off, a process that stops still writes, says good-bye and leaves.
LEAVING_S = 15.0
_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")


def command(
    tags: Annotated[
        str | None,
        typer.Option(
            help="What these workers carry: key=value,key=value.", show_default="worker_tags"
        ),
    ] = None,
    processes: Annotated[
        int | None,
        typer.Option(min=1, max=1024, help="Worker processes.", show_default="one per core"),
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option(
            min=1, help="Batches each polls at the same time.", show_default="worker_concurrency"
        ),
    ] = None,
    memory_limit: Annotated[
        str | None,
        typer.Option(
            help="A process above it is stopped softly and replaced: 512M, 1G.", show_default="none"
        ),
    ] = None,
    name: Annotated[
        str, typer.Option(help="What they are called: NAME1@host, NAME2@host and so on.")
    ] = "poller",
) -> None:
    """Run workers, and keep them running. Ctrl-C lets them finish what they poll; a second one ends them at once."""
    settings = load()
    env = {"PYTHONUNBUFFERED": "1", **_tags(settings, tags)}
    file_limit = process_limits.raise_file_limit()
    process_limits.check_file_limit(
        concurrency or settings.worker_concurrency, settings.batch_size, file_limit
    )
    limit = _memory(memory_limit)
    many = processes or len(os.sched_getaffinity(0))
    crew = Crew(settings)
    if (needed := OWN_MEMORY + TARGET_MEMORY * settings.target_cache) > limit > 0:
        crew.say("poller", _too_low(limit, needed, settings.target_cache))
    crew.run(
        [
            role_commands.worker(number, env, _named(name), concurrency, limit)
            for number in range(1, many + 1)
        ]
    )


def _tags(settings: Settings, text: str | None) -> dict[str, str]:
    """Those of the command line instead of the setting's; either is refused here, before anything runs."""
    if text is None:
        queue_routing.parse_tags(settings.worker_tags)
        return {}
    words = [word.strip() for word in text.split(",") if word.strip()]
    queue_routing.parse_tags(words, "--tags")
    return {"POLLER_WORKER_TAGS": ",".join(words)}


def parse_bytes(text: str, what: str) -> int:
    """Return the bytes of `512M`, `1.5G` or `800 MiB`, in powers of 1024. Raises InvalidInput."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise errors.InvalidInput(f'{what}: "{text}" is not a size', hint="write 512M or 1.5G")
    return round(float(found[1]) * _UNITS[found[2].lower()])


def _memory(text: str | None) -> int:
    """In bytes; 0 is no limit."""
    limit = 0 if text is None else parse_bytes(text, "--memory-limit")
    if text is not None and limit < LEAST_MEMORY:
        raise errors.InvalidInput(
            f"--memory-limit: {text} is less than a worker needs to start",
            hint=f"give it {LEAST_MEMORY // 2**20}M or more, or run fewer --processes",
        )
    return limit


def _too_low(limit: int, needed: int, targets: int) -> str:
    many = f"{targets:,} targets (target_cache)"
    return (
        f"warning: --memory-limit is {limit / 2**20:.0f} MiB; a process that remembers {many} has about "
        f"{needed / 2**20:.0f} MiB and would be replaced again and again: "
        "with a fleet of that size raise it, or lower POLLER_TARGET_CACHE"
    )


def _named(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise errors.InvalidInput(
            f'--name: "{name}" cannot be part of a node name',
            hint="use letters, digits, dots and dashes; the number and @host are added",
        )
    return name


class Crew:
    """The processes of one `poller worker`, from start to stop."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._patience_s = settings.worker_drain_s + LEAVING_S
        self._view = LogView(to_stderr=True)
        self._supervisor = Supervisor(None, self.say, self._patience_s)
        self._stopping, self._hurrying = threading.Event(), threading.Event()
        self._unread = False  # nobody reads what we say

    def run(self, members: list[Role]) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._on_signal)
        try:
            for role in members:
                self._supervisor.add(role)
            while not self._stopping.wait(0.2):
                self._supervisor.look()
                if self._supervisor.hopeless(lambda _: True):
                    raise errors.InvalidSetting(
                        "no worker can run as it is configured", hint="what their own lines say"
                    )
            self._supervisor.ask(lambda _: True, self._patience_s, self._hurrying.is_set)
        finally:
            killed = self._supervisor.end(lambda _: True)
        black_box.discard(self._settings.home, killed)
        if self._unread:
            raise BrokenPipeError
        if killed:
            raise typer.Exit(1)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        name = signal.Signals(number).name
        if self._stopping.is_set():
            self._hurrying.set()
            self.say(
                "poller",
                f"{name} again: ending at once; what was under way comes back when its leases end",
            )
        else:
            self.say("poller", f"{name}: stopping; what is polled may finish (once more: at once)")
        self._stopping.set()

    def say(self, who: str, text: str) -> None:
        """Never fails: a reader that left stops us, as a closed terminal does."""
        try:
            if self._settings.log_format == "json":
                sys.stderr.write(_as_json(who, text) + "\n")
            else:
                self._view.line(who, text)
        except (BrokenPipeError, SystemExit):  # Rich turns the one into the other
            self._unread = True
            self._stopping.set()


def _as_json(who: str, text: str) -> str:
    """A worker's line is an object already, and gets the name of its process; anything else becomes one."""
    head = f'{{"process": {json.dumps(who)}'
    return (
        f"{head}, {text[1:]}" if text.startswith('{"') else f'{head}, "event": {json.dumps(text)}}}'
    )
