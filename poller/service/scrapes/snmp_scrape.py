"""A scrape of `/snmp`, top to bottom: find the device, then its last poll, else poll once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from poller import errors
from poller.collectors.snmp.modules import module_catalog
from poller.db.scrapes.scraped_devices import ScrapedDevice, ScrapedTarget
from poller.domain.access.actor import Actor
from poller.domain.inventory import host_port
from poller.domain.inventory.host_port import HostPort
from poller.domain.scrapes import scrape_answer
from poller.domain.scrapes.scrape_answer import ScrapeAnswer
from poller.domain.scrapes.scrape_poll import ScrapePoll, ScrapeResult
from poller.domain.scrapes.scrape_query import DEFAULT_AUTH, SnmpQuery
from poller.metering import process_metrics
from poller.service.scrapes import (
    module_cover,
    scrape_logins,
    scrape_places,
    snmp_texts,
)
from poller.service.scrapes.known_devices import Devices
from poller.service.scrapes.last_poll_answers import Wanted
from poller.service.scrapes.module_cover import SNMP
from poller.service.scrapes.scrape_logins import SNMPV3, ScrapeLogin
from poller.service.scrapes.scrape_parts import ScrapeParts
from poller.service.scrapes.scrape_places import Place
from poller.service.scrapes.scrape_sender import NoAnswer

if TYPE_CHECKING:
    from poller.bootstrap import Services

SNMP_PORT = 161
_KINDS = ("community", SNMPV3)


@dataclass(frozen=True, slots=True)
class Known:
    """A scrape that the last poll of a target answers, as long as its devices stay the same."""

    text: str
    devices: Devices
    wanted: Wanted


class SnmpScrapes:
    """The scrapes of one web process."""

    def __init__(self, parts: ScrapeParts) -> None:
        self._parts = parts
        self._services: Services = parts.services

    async def prepare(self, actor: Actor, query: SnmpQuery) -> Known | ScrapePoll:
        """Return how a scrape is answered. Raises ConfigError, StoreError."""
        return await self._parts.sender.in_thread(self._prepare, actor, query)

    async def answer(
        self, actor: Actor, query: SnmpQuery, prepared: Known | ScrapePoll, within_s: float
    ) -> ScrapeAnswer:
        """Answer a scrape in time. Raises StoreError."""
        if isinstance(prepared, Known):
            return await self._parts.answers.wait(prepared.wanted, within_s, actor)
        try:
            result, is_first = await self._parts.sender.poll(prepared, within_s, actor)
        except NoAnswer as error:
            return scrape_answer.failure(scrape_answer.UNAVAILABLE, str(error))
        if is_first:
            _count(prepared, result)
        in_thread = self._parts.sender.in_thread
        return await in_thread(snmp_texts.of_result, query.target, prepared, result)

    def _prepare(self, actor: Actor, query: SnmpQuery) -> Known | ScrapePoll:
        self._parts.polls.start()
        host, fault = _host(query.target)
        place = scrape_places.find(self._parts.devices, actor, query.target, host, SNMP_PORT)
        if not place.devices:
            if fault is not None:
                raise fault
            return self._stranger(actor, query, host)
        known = self._known(place, query)
        return known or self._own_poll(actor, query, place)

    def _known(self, place: Place, query: SnmpQuery) -> Known | None:
        if not self._parts.has_last_polls:
            return None
        for device in place.devices:
            cover = module_cover.find(self._services, device.targets, query, place.port)
            if cover is not None:
                key = (cover.modules, cover.shown)
                render = partial(snmp_texts.of_last_poll, self._parts.shape_texts, cover)
                wanted = Wanted(device.name, cover.target, key, render)
                return Known(place.text, place.kept, wanted)
        return None

    def _own_poll(self, actor: Actor, query: SnmpQuery, place: Place) -> ScrapePoll:
        """Poll a device of the inventory for what no target of it covers."""
        device, base = _base(place)
        options = dict(base.options) if base is not None else {}
        name = query.auth or (base.credential if base is not None else device.credential)
        for replaced in ("match", "modules", "context"):
            options.pop(replaced, None)
        if name:  # else a login of the target's own file
            options.pop("auth", None)
        if base is not None and not query.modules:
            options["modules"] = base.options.get("modules", ())
            options["match"] = base.options.get("match", "")
        config = tuple(options.get("config", ()))
        self._check_modules(query, config)
        if place.port is not None:
            options["port"] = place.port
        return self._poll(actor, query, device, device.address, options, name)

    def _stranger(self, actor: Actor, query: SnmpQuery, host: HostPort | None) -> ScrapePoll:
        self._check_modules(query, ())
        address = scrape_places.stranger_address(self._services, actor, host, query.target)
        options: dict[str, Any] = {"port": host.port or SNMP_PORT if host else SNMP_PORT}
        return self._poll(actor, query, None, address, options, query.auth)

    def _poll(
        self,
        actor: Actor,
        query: SnmpQuery,
        device: ScrapedDevice | None,
        address: str,
        options: dict[str, Any],
        auth: str,
    ) -> ScrapePoll:
        name = auth or options.get("auth", DEFAULT_AUTH)
        login = ScrapeLogin(file_auth=name)
        if auth or "auth" not in options:
            login = scrape_logins.find(self._services, actor, name, device, _KINDS)
        if query.context and not _has_contexts(login, options):
            raise errors.InvalidInput(f"'snmp_context' needs an SNMPv3 login, not auth '{name}'")
        if query.modules:
            options["modules"] = query.modules
        if not options.get("config") and self._services.settings.snmp_config:
            options["config"] = self._services.settings.snmp_config
        if query.context:
            options["context"] = query.context
        if login.public_version:
            options["version"] = login.public_version
        if login.file_auth:
            options["auth"] = login.file_auth
        return ScrapePoll(
            SNMP,
            address,
            _without_empty(options),
            login.credential_id,
            is_public=bool(login.public_version),
            requires=dict(device.requires) if device is not None else {},
        )

    def _check_modules(self, query: SnmpQuery, config: tuple[str, ...]) -> None:
        module_cover.check_names(query.modules, config, self._services.settings.snmp_config)


def _count(wanted: ScrapePoll, result: ScrapeResult) -> None:
    """Count a poll, once for all scrapes that wait for it."""
    for module in wanted.options.get("modules", ()) or ("",):
        process_metrics.snmp_collection_seconds.observe(result.duration_ms / 1000, module)
    process_metrics.snmp_packets.add(by=result.sent)
    process_metrics.snmp_packet_retries.add(by=result.retried)


def _host(target: str) -> tuple[HostPort | None, errors.InvalidInput | None]:
    """Return the address of a target, or why it is none: it may be the name of a device."""
    try:
        return host_port.parse_snmp_target(target), None
    except errors.InvalidInput as error:
        return None, error


def _has_contexts(login: ScrapeLogin, options: Mapping[str, Any]) -> bool:
    """Whether a login is one of SNMPv3; one of a target's own file is looked up there."""
    kind = login.kind
    if not kind:
        kind = module_catalog.auth(login.file_auth, tuple(options["config"])).credential.kind
    return kind == SNMPV3


def _base(place: Place) -> tuple[ScrapedDevice, ScrapedTarget | None]:
    """Return the device and the target of it whose options a poll takes over."""
    for device in place.devices:
        for target in device.targets:
            port = target.options.get("port", SNMP_PORT)
            if target.collector == SNMP and place.port in (None, port):
                return device, target
    return place.devices[0], None


def _without_empty(options: dict[str, Any]) -> dict[str, Any]:
    lists = {key: list(value) for key, value in options.items() if isinstance(value, tuple | list)}
    return {key: value for key, value in {**options, **lists}.items() if value not in ("", [], ())}
