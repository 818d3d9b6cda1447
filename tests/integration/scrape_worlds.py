"""Web processes with a worker in the same process, for scrapes of a real agent."""

from __future__ import annotations

import asyncio
import subprocess
import threading
from collections.abc import Iterable
from typing import Any

import httpx
import pytest

from poller.bootstrap import Services
from poller.collectors.credentials import Community, Credential
from poller.db.inventory import credential_rows, devices, inventory_feed
from poller.domain.access import scopes
from poller.domain.access.actor import Actor, ActorKind
from poller.domain.access.scopes import Scope
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.record.overview import Worker
from poller.domain.scrapes.scrape_poll import ScrapePoll
from poller.state.board.board_values import ClaimLimits
from poller.state.cluster import worker_registry
from poller.tasks import scrape
from poller.web import web_process
from poller.web.exporter.exporter_routes import Exporter
from poller.web.routes import create_app
from poller.workers.batch.worker_poller import Poller
from tests.integration.api_clients import AsActor

ROOM = ClaimLimits(targets=1000, batch_size=64, lease_ms=30_000)
#: The number of packets that an snmpd received.
IN_PACKETS = "1.3.6.1.2.1.11.1.0"


class ScrapeWorld:
    """A board, a database, a worker and as many web processes as a test makes."""

    def __init__(
        self, services: Services, monkeypatch: pytest.MonkeyPatch, **settings: Any
    ) -> None:
        services.settings = services.settings.model_copy(
            update={"scrape_networks": ("127.0.0.0/8",), "retry_tries": 0, **settings}
        )
        self.services = services
        self.poller = Poller(services, "worker@test")
        self.runner = self.poller.scrape_runner()
        self.sent: list[ScrapePoll] = []
        self._published = ""
        self._claims = 0
        self._exporters: list[Exporter] = []
        monkeypatch.setattr(scrape, "send", self._send)

    def close(self) -> None:
        for exporter in self._exporters:
            exporter.close()
        self.poller.writers.close(1.0)
        self.poller.close()

    def _send(self, wanted: ScrapePoll, name: str, until_ms: int, within_s: float) -> None:
        """Hand a message to the worker, as Celery does."""
        self.sent.append(ScrapePoll.from_json(wanted.to_json()))
        arguments = (self.sent[-1], name, within_s)
        threading.Thread(target=self.runner.run, args=arguments, daemon=True).start()

    def announce_worker(self, **tags: str) -> None:
        collectors = dict.fromkeys(self.services.registry.collectors, "poller")
        worker = Worker("worker@test", 0, 0, 0, 0, 0, tags=tags, collectors=collectors)
        worker_registry.announce(self.services.redis, self.services.keys, worker)

    def add_credential(self, name: str, community: str) -> None:
        self.add_login(name, Community.from_text(community))

    def add_login(self, name: str, credential: Credential) -> None:
        envelope = self.services.keyring.seal(credential.to_json(), name, credential.kind)
        credential_rows.add(self.services.engine, name, credential.kind, envelope)

    def add_device(self, name: str, port: int, credential: str, **more: Any) -> int:
        """Add a device at 127.0.0.1 with one target, of SNMP unless told otherwise, and place it on
        the board.
        """
        options = {"port": port, **more.pop("options", {})}
        name_of = more.pop("collector", "snmp")
        every_ms = more.pop("interval_ms", 60_000)
        target = TargetDraft(name_of, name_of, options, interval_ms=every_ms, timeout_ms=5_000)
        draft = DeviceDraft(name, more.pop("address", "127.0.0.1"), credential=credential, **more)
        devices.add(self.services.engine, draft, [target])
        with inventory_feed.all_specs(self.services.engine) as fleet:
            specs = list(fleet.specs)
        self.services.board.place("", [(spec, 1) for spec in specs], 1)
        return specs[-1].id

    def poll(self, target_id: int) -> None:
        """Poll a target of the board now."""
        self._claims += 1
        token = f"t{self._claims}"
        self.services.board.demand([target_id])
        room = dict.fromkeys(self.services.board.queues(), 100)
        self.services.board.claim("", token, self._published, room, ROOM)
        self._published = token
        self.poller.poll(token, [target_id])

    def client(
        self,
        given: Iterable[Scope] = (Scope.SCRAPE,),
        site: str | None = None,
        token: str = "ci",
    ) -> httpx.AsyncClient:
        """A client of a web process of its own."""
        actor = Actor(token, ActorKind.TOKEN, "127.0.0.1", scopes.granted(given), site)
        app = create_app(web_process.backend_queries(self.services), services=self.services)
        self._exporters.append(app.state.exporter)
        app.add_middleware(AsActor, actor=actor)
        app.user_middleware.append(app.user_middleware.pop(0))  # the innermost decides
        transport = httpx.ASGITransport(app)
        return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=30)

    def get(self, path: str, **more: Any) -> httpx.Response:
        """Send one request to a new web process."""
        [response] = self.get_all([path], **more)
        return response

    def get_all(
        self,
        paths: Iterable[str],
        processes: int = 1,
        headers: dict[str, str] | None = None,
        **rights: Any,
    ) -> list[httpx.Response]:
        """Send requests at the same time, to several web processes in turn."""

        async def send() -> list[httpx.Response]:
            clients = [self.client(**rights) for _ in range(processes)]
            calls = [
                clients[number % processes].get(path, headers=headers)
                for number, path in enumerate(paths)
            ]
            return list(await asyncio.gather(*calls))

        return asyncio.run(send())


def packets_in(port: int) -> int:
    """The packets that an agent received, without this one."""
    command = ["snmpget", "-v2c", "-c", "public", "-Oqv", f"127.0.0.1:{port}", IN_PACKETS]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(done.stdout) - 1
