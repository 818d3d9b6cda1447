"""Questions to a device that is not stored: what answers there, and test polls of its targets.

Workers ask, because they reach devices; a page has the ids of credentials only. Who asked which
address with which credential is in the audit log before anything is sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from poller import errors
from poller.db.inventory import sites
from poller.db.inventory.inventory_feed import Author
from poller.db.scrapes import scraped_devices
from poller.domain.access.audit_entry import AuditEntry
from poller.domain.failures import outcome
from poller.domain.failures.outcome import Result
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.scheduling import queue_routing, schedule
from poller.domain.scrapes.scrape_poll import ScrapePoll, ScrapeResult
from poller.service import site_limit
from poller.service.access import audit_log
from poller.service.discovery import address_discovery, discovery_choice
from poller.service.discovery.address_discovery import (
    AddressResult,
    Login,
    NotAsked,
    Plan,
    Question,
)
from poller.service.inventory import device_actions
from poller.service.inventory.device_actions import CheckedDevice
from poller.service.inventory.new_sites import NewSite
from poller.service.scrapes.scrape_sender import NoAnswer, ScrapeSender

if TYPE_CHECKING:
    from poller.bootstrap import Services
    from poller.collectors.api import Suggestion
    from poller.domain.access.actor import Actor

#: The longest time of a discovery, and of a test poll.
LONGEST_S = 10.0
#: A worker answers this long before a person is told that nobody did.
MARGIN_MS = 500
#: Questions that one web process asks at a time.
MOST_AT_ONCE = 4
#: Credentials that one discovery tries.
MOST_CREDENTIALS = 4
#: Targets of one device that are polled as a test at a time.
MOST_TARGETS = 16


@dataclass(frozen=True, slots=True)
class TrialPoll:
    """A test poll of a target that is not stored: its result, or why nobody polled."""

    target: str
    collector: str
    result: ScrapeResult | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Trial:
    """Test polls of the targets of one device, and what is to be known before it is stored."""

    polls: Sequence[TrialPoll]
    notes: Sequence[str] = ()
    new_sites: Sequence[NewSite] = ()


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A checked discovery."""

    device: DeviceDraft
    plan: Plan
    requires: Mapping[str, str]


class UnsavedDevices:
    """One per web process, on one event loop."""

    def __init__(self, services: Services, sender: ScrapeSender) -> None:
        self._services = services
        self._sender = sender
        self._running = 0

    async def discover(
        self, author: Author, actor: Actor, fields: Mapping[str, Any], credentials: Sequence[str]
    ) -> AddressResult:
        """Return what answers at the address of a device. Raises ConfigError, StoreError."""
        with self._turn():
            prepared = await self._sender.in_thread(
                self._prepare, author, actor, fields, credentials
            )

            async def ask(question: Question) -> Sequence[Suggestion]:
                return await self._ask(question, prepared.requires, actor)

            address = prepared.device.address or ""
            found = await address_discovery.discover_all(address, prepared.plan, ask)
            return AddressResult(address, found, prepared.device.port)

    async def poll(
        self,
        author: Author,
        actor: Actor,
        fields: Mapping[str, Any],
        targets: Sequence[Mapping[str, Any]],
    ) -> Trial:
        """Poll targets once, in their order, and store nothing. Raises ConfigError, StoreError."""
        with self._turn():
            new, polls = await self._sender.in_thread(self._checked, author, actor, fields, targets)
            tries = zip(new.targets, polls, strict=True)
            done = await asyncio.gather(*(self._try(*each, actor) for each in tries))
            return Trial(done, new.notes, new.new_sites)

    @contextmanager
    def _turn(self) -> Iterator[None]:
        if self._running >= MOST_AT_ONCE:
            raise errors.AlreadyRunning(
                f"{MOST_AT_ONCE} devices are being asked already", hint="try again in a moment"
            )
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1

    def _prepare(
        self, author: Author, actor: Actor, fields: Mapping[str, Any], credentials: Sequence[str]
    ) -> _Prepared:
        services = self._services
        if len(credentials) > MOST_CREDENTIALS:
            raise errors.InvalidInput(
                f"more than {MOST_CREDENTIALS} credentials are chosen",
                hint="each one that fails may count at the device",
                field="try",
            )
        device = device_actions.check_fields(services, author, fields)
        opened = self._logins(author, credentials)
        registry = services.registry
        chosen = discovery_choice.collectors(registry)
        options = discovery_choice.options(registry, chosen, device.port)
        logins = {
            each.name: discovery_choice.logins(each, opened, options.get(each.name))
            for each in chosen
        }
        tries = max(map(len, logins.values()), default=1)
        plan = Plan(
            discovery_choice.in_order(chosen, logins), options, logins, LONGEST_S / max(1, tries)
        )
        after = {"credentials": list(credentials), "collectors": [each.name for each in chosen]}
        self._record(actor, "device.discover", "discover", device, after)
        return _Prepared(device, plan, self._required(device))

    def _logins(self, author: Author, names: Sequence[str]) -> list[Login]:
        """Return the credentials of these names. Raises UnknownName, NotAllowed."""
        for name in names:
            site_limit.require_credential(self._services, author, name)
        stored = self._stored(names)
        return [
            Login(name, credential_id=stored[name][0], stored_kind=stored[name][1])
            for name in names
        ]

    def _stored(self, names: Sequence[str]) -> dict[str, tuple[int, str]]:
        """Return id and kind of each credential. Raises UnknownName."""
        stored = scraped_devices.credential_ids(self._services.engine, names)
        for name in names:
            if name not in stored:
                raise errors.UnknownName(
                    f'no credential named "{name}"',
                    hint="poller credential list",
                    field="credential",
                )
        return stored

    def _checked(
        self,
        author: Author,
        actor: Actor,
        fields: Mapping[str, Any],
        targets: Sequence[Mapping[str, Any]],
    ) -> tuple[CheckedDevice, list[ScrapePoll]]:
        """Return the checked device, and a poll for each of its targets."""
        if not targets or len(targets) > MOST_TARGETS:
            raise errors.InvalidInput(
                "no target is chosen, or too many are",
                hint=f"mark 1 to {MOST_TARGETS} targets",
                field="target",
            )
        new = device_actions.check_new(self._services, author, fields, targets)
        device = new.device
        named = {each.credential or device.credential for each in new.targets} - {None, ""}
        names = sorted(name for name in named if name)
        ids = self._stored(names)
        collectors = [each.collector for each in new.targets]
        after = {"credentials": names, "collectors": collectors}
        self._record(actor, "device.test_poll", "test poll of", device, after)
        required = self._required(device)
        return new, [self._poll_of(device, each, ids, required) for each in new.targets]

    def _poll_of(
        self,
        device: DeviceDraft,
        target: TargetDraft,
        ids: Mapping[str, tuple[int, str]],
        required: Mapping[str, str],
    ) -> ScrapePoll:
        """Return the poll of a target. A collector gets the device's credential if it takes it."""
        collector = self._services.registry.get(target.collector or "")
        key, kind = ids.get(target.credential or device.credential or "", (None, ""))
        takes = any(model.kind == kind for model in collector.credentials)
        return ScrapePoll(
            collector.name,
            device.address or "",
            dict(target.options or {}),
            key if takes else None,
            requires=queue_routing.merge_requirements(required, target.requires or {}),
        )

    def _required(self, device: DeviceDraft) -> dict[str, str]:
        """Return the tags that the workers of a new device must have."""
        own = device.requires or {}
        if not device.site:
            return dict(own)
        of_site = [
            each for each in sites.listing(self._services.engine) if each.name == device.site
        ]
        return queue_routing.merge_requirements(*(each.requires for each in of_site), own)

    def _record(
        self, actor: Actor, action: str, verb: str, device: DeviceDraft, after: Mapping[str, Any]
    ) -> None:
        """Write who asks, and which credentials are opened for it."""
        purpose = {"for": f"{verb} {device.address}"}
        names = after["credentials"]
        opened = [AuditEntry("credential.open", name, after=purpose) for name in names]
        asked = AuditEntry(action, device.address or "", after=after)
        audit_log.record(self._services, actor, asked, *opened)

    async def _ask(
        self, question: Question, requires: Mapping[str, str], actor: Actor
    ) -> Sequence[Suggestion]:
        """Let a worker ask a collector. Raises DeviceError, NotAsked."""
        from poller.collectors.api import Suggestion

        wanted = ScrapePoll(
            question.collector.name,
            question.address,
            question.options.model_dump(mode="json", exclude_unset=True),
            question.login.credential_id,
            requires=requires,
            discovers=True,
        )
        try:
            result, _ = await self._sender.poll(wanted, question.within_s, actor, MARGIN_MS)
        except NoAnswer as error:
            raise NotAsked(str(error)) from None
        if result.result is Result.REFUSED:
            raise NotAsked(result.message)
        if result.result is not Result.OK:
            raise outcome.error_of(result.code, result.message)
        found = result.found
        return [Suggestion(each.options, each.reason, each.name, each.facts) for each in found]

    async def _try(self, target: TargetDraft, wanted: ScrapePoll, actor: Actor) -> TrialPoll:
        name, collector = target.name or wanted.collector, wanted.collector
        usual = schedule.resolve(target.schedule, None, target.defaults)
        within_s = min(LONGEST_S, (usual.timeout_ms or 0) / 1000)
        try:
            result, _ = await self._sender.poll(wanted, within_s, actor, MARGIN_MS)
        except NoAnswer as error:
            return TrialPoll(name, collector, problem=str(error))
        return TrialPoll(name, collector, result)
