"""The dead man's switch: the leader asks for a URL while the platform really works.

The service behind the URL tells people when the requests stop, so that the death of the platform
is noticed elsewhere. The URL is a secret.
"""

from __future__ import annotations

import threading
import time

from poller import errors
from poller.alerts.receivers.store_wording import worded
from poller.beat.leadership import Leader
from poller.bootstrap import Services
from poller.collectors.http import urls
from poller.db import database_clock
from poller.domain.alerts.telling import platform_pulse
from poller.observability import logs
from poller.sinks.http_options import HttpStoreOptions
from poller.sinks.http_store import HttpStore
from poller.state.cluster import overview_reader

log = logs.get(__name__)

_TIMEOUT_S = 10.0
#: The wait after a fault, if `heartbeat_s` is longer.
_RETRY_S = 15.0
#: How often a standby looks whether it leads now.
_LOOK_S = 1.0


class DeadManSwitch:
    """Requests the URL of the settings every `heartbeat_s` seconds while this process leads."""

    def __init__(self, services: Services, leader: Leader, stopping: threading.Event) -> None:
        self._services = services
        self._leader = leader
        self._stopping = stopping
        self._every_s = services.settings.heartbeat_s
        secret = services.settings.heartbeat_url
        self._url = secret.get_secret_value() if secret else ""
        self._due_mono = 0.0
        self._fault = ""  # that was logged last and is not over
        self._thread = threading.Thread(target=self._run, name="dead-man-switch", daemon=True)

    def start(self) -> None:
        """Start the thread, if there is a URL."""
        if self._url:
            self._thread.start()

    def _run(self) -> None:
        while not self._stopping.wait(_LOOK_S):
            if not self._leader.leads or time.monotonic() < self._due_mono:
                continue
            self._due_mono = time.monotonic() + self._every_s
            try:
                self._press()
            except Exception:  # door: the end of this thread; it must not die
                log.exception("dead_man_switch_broke")

    def _press(self) -> None:
        fault = self.request_if_working()
        if fault:
            self._due_mono = time.monotonic() + min(self._every_s, _RETRY_S)
        self._log_fault(fault)

    def request_if_working(self) -> str:
        """Request the URL if board, database and polls are well. Returns why not, else ""."""
        try:
            overview = overview_reader.read(self._services.redis, self._services.keys)
            database_clock.now_ms(self._services.engine)
        except errors.StoreError as error:
            return str(error)
        return platform_pulse.fault(overview) or self._request()

    def _request(self) -> str:
        parsed = urls.parse(self._url)
        hidden = (str(parsed), self._url, *([parsed.target] if len(parsed.target) > 1 else []))
        try:
            with worded(hidden):
                options = HttpStoreOptions.model_construct(
                    url=self._url, timeout_s=_TIMEOUT_S, headers={}, header_files={}
                )
                store = HttpStore(options, "heartbeat_url")
                try:
                    answer = store.get(parsed.target)
                    if not 200 <= answer.status < 300:
                        raise store.failure(answer)
                finally:
                    store.close()
        except (errors.StoreError, errors.InvalidSetting) as error:
            return str(error)
        return ""

    def _log_fault(self, fault: str) -> None:
        if fault and fault != self._fault:
            log.warning("heartbeat_not_sent", reason=fault)
        elif self._fault and not fault:
            log.info("heartbeat_sent_again")
        self._fault = fault
