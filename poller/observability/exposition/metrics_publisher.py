"""Publishes the metrics of this process, and of the others of this host if nobody else does.

Every process writes a snapshot of its numbers. The first process that gets the port serves all of
them; when that process ends, however it ends, another one gets the port within a second or two.
The same holds for the file.
"""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from weakref import WeakSet

from poller.metering import process_metrics, process_usage
from poller.observability import logs
from poller.observability.exposition import text_format
from poller.observability.exposition.scrape_server import ScrapeAccess, ScrapeServer
from poller.observability.exposition.snapshot_files import SnapshotFiles
from poller.observability.exposition.text_format import Families

log = logs.get(__name__)

#: How often the port and the file are looked after.
CHECK_S = 1.0
#: The age of a snapshot, and of the file, at most.
SNAPSHOT_S = 5.0
#: A stop waits for the write that is under way, but not for a disk that hangs.
STOP_S = 5.0
#: A port that no process of ours has is reported when it was in use for this long.
PORT_TAKEN_S = 30.0
#: The duties that one process of a host has for all.
SERVE, WRITE_FILE = "serve", "file"


@dataclass(frozen=True, slots=True)
class MetricsPlace:
    """Where the metrics go. Port None and file None: only to the page of this host."""

    bind: str = "127.0.0.1"
    port: int | None = None
    file: Path | None = None
    access: ScrapeAccess = field(default_factory=ScrapeAccess)


class MetricsPublisher:
    """One per process. Nothing here stops the process: what fails is logged and tried again."""

    def __init__(self, home: Path, place: MetricsPlace, role: str, process: str = "") -> None:
        self._files = SnapshotFiles(home)
        self._place = place
        self._role = role
        self._process = process or role
        self._server: ScrapeServer | None = None
        self._duties: dict[str, int] = {}  # duty -> file descriptor that holds it
        self._refused_mono: float | None = None  # since when the port has been in use
        self._complaint = ""  # the last one, which is not repeated
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="metrics", daemon=True)
        _publishers.add(self)

    @property
    def address(self) -> tuple[str, int] | None:
        """Where this process serves; None while another one does, or none."""
        if self._server is None:
            return None
        host, port = self._server.server_address[:2]
        return str(host), int(port)

    def start(self) -> None:
        """Write the first snapshot and start the thread."""
        process_metrics.begin(self._role)
        process_metrics.process_info.set(1, version("poller"))
        process_metrics.process_start.set(time.time())
        try:
            self._process = self._files.take_name(self._process)
        except OSError as error:  # this process can still serve its own numbers
            log.warning("metrics_not_shared", error=str(error))
        self._thread.start()

    def text(self) -> bytes:
        """The metrics of this process, as they are now, and of the others of this host."""
        return text_format.render(self._all())

    def stop(self) -> None:
        """Stop serving and writing; another process may take over at once."""
        self._stopping.set()
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
        if self._thread.ident is not None:
            self._thread.join(STOP_S)
        if not self._thread.is_alive():  # a thread that hangs in a write keeps what it holds
            self.let_go()

    def let_go(self) -> None:
        """Close what this process holds: at the end, and in a child that inherited it."""
        if self._server is not None:
            with suppress(OSError):
                self._server.socket.close()
            self._server = None
        self._files.release()
        for file in self._duties.values():
            os.close(file)
        self._duties.clear()

    def _all(self) -> Iterator[Families]:
        yield self._own()
        yield from self._files.others()

    def _own(self) -> Families:
        process_usage.measure()
        return text_format.of_process(self._process, self._role)

    def _run(self) -> None:
        next_mono = 0.0
        while not self._stopping.is_set():
            try:
                if self._place.port is not None and self._server is None:
                    self._try_to_serve(self._place.port)
                if time.monotonic() >= next_mono:
                    next_mono = time.monotonic() + SNAPSHOT_S
                    self._files.write(self._own())
                    self._write_file()
                    self._complain("")
            except OSError as error:
                self._complain(str(error))
            except Exception:  # door: the end of this thread; it must not die
                log.exception("metrics_broke")
            self._stopping.wait(CHECK_S)

    def _try_to_serve(self, port: int) -> None:
        """Take the port, unless another process has it. Raises OSError."""
        try:
            server = ScrapeServer((self._place.bind, port), self.text, self._place.access)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            self._check_port_holder(port)
            return
        self._refused_mono = None
        self._server = server
        server.start()
        host, real_port = server.server_address[:2]
        log.info("metrics_served", url=f"http://{_url_host(str(host))}:{real_port}/metrics")
        self._has_duty(SERVE)

    def _check_port_holder(self, port: int) -> None:
        """Say once that the port belongs to a stranger: one of ours would have the duty."""
        now_mono = time.monotonic()
        if self._refused_mono is None:
            self._refused_mono = now_mono
        if now_mono - self._refused_mono < PORT_TAKEN_S or not self._has_duty(SERVE):
            return
        os.close(self._duties.pop(SERVE))
        self._refused_mono = now_mono
        raise OSError(f"metrics_port: {port} is in use by another program")

    def _write_file(self) -> None:
        """Replace the file for node_exporter. Raises OSError."""
        path = self._place.file
        if path is None or not self._has_duty(WRITE_FILE):
            return
        temporary = path.with_name(f".{path.name}.{os.getpid()}")  # no *.prom: it is not read
        try:
            temporary.write_bytes(self.text())
            temporary.chmod(0o644)  # node_exporter is another user
            temporary.replace(path)
        except OSError:
            with suppress(OSError):
                temporary.unlink()
            raise

    def _has_duty(self, duty: str) -> bool:
        if duty not in self._duties:
            file = self._files.take_duty(duty)
            if file is None:
                return False
            self._duties[duty] = file
        return True

    def _complain(self, text: str) -> None:
        """Log a failure when it starts or changes, not at every check. "" is success."""
        if text and text != self._complaint:
            log.warning("metrics_not_published", error=text)
        self._complaint = text


_publishers: WeakSet[MetricsPublisher] = WeakSet()


def _let_go_in_child() -> None:
    """A child must not hold the port or the locks of its parent."""
    for publisher in list(_publishers):
        publisher.let_go()


os.register_at_fork(after_in_child=_let_go_in_child)


def _url_host(host: str) -> str:
    return f"[{host}]" if ":" in host else host
