"""A scrape of `/probe`, top to bottom. A device that fails is an answer: `probe_success 0`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from poller import errors
from poller.collectors.api import Documented, needs_credential
from poller.db.scrapes.scraped_devices import ScrapedDevice, ScrapedTarget
from poller.domain.access.actor import Actor
from poller.domain.failures.outcome import Result
from poller.domain.metrics.reading import ReadingSet
from poller.domain.record.overview import State
from poller.domain.scrapes import blackbox_metrics, scrape_answer
from poller.domain.scrapes.probe_query import ProbeQuery
from poller.domain.scrapes.scrape_answer import ScrapeAnswer
from poller.domain.scrapes.scrape_poll import ScrapePoll, ScrapeResult
from poller.presentation.exposition import scrape_metrics
from poller.presentation.exposition.shape_text import ShapeText
from poller.service.scrapes import scrape_logins, scrape_places
from poller.service.scrapes.last_poll_answers import Wanted
from poller.service.scrapes.last_poll_loader import LastPoll
from poller.service.scrapes.scrape_parts import ScrapeParts
from poller.service.scrapes.scrape_places import Place
from poller.service.scrapes.scrape_sender import NoAnswer
from poller.service.scrapes.snmp_scrape import Known

if TYPE_CHECKING:
    from poller.bootstrap import Services

#: Refusals of the platform, which say nothing about the device.
_OURS = (Result.REFUSED,)


class ProbeScrapes:
    """The probes of one web process."""

    def __init__(self, parts: ScrapeParts) -> None:
        self._parts = parts
        self._services: Services = parts.services

    async def prepare(self, actor: Actor, query: ProbeQuery) -> Known | ScrapePoll:
        """Return how a probe is answered. Raises ConfigError, StoreError."""
        return await self._parts.sender.in_thread(self._prepare, actor, query)

    async def answer(
        self, actor: Actor, query: ProbeQuery, prepared: Known | ScrapePoll, within_s: float
    ) -> ScrapeAnswer:
        """Answer a probe in time. Raises StoreError."""
        if isinstance(prepared, Known):
            found = await self._parts.answers.wait(prepared.wanted, within_s, actor)
            return self._failed(found.body) if found.status == scrape_answer.FAILED else found
        try:
            result, _ = await self._parts.sender.poll(prepared, within_s, actor)
        except NoAnswer as error:
            return scrape_answer.failure(scrape_answer.UNAVAILABLE, str(error))
        return await self._parts.sender.in_thread(self._of_result, query, prepared, result)

    def _prepare(self, actor: Actor, query: ProbeQuery) -> Known | ScrapePoll:
        self._parts.polls.start()
        self._services.registry.get(query.collector)  # raises CollectorMissing
        place = scrape_places.find(self._parts.devices, actor, query.target, query.host, None)
        if place.devices:
            return self._known(place, query) or self._own_poll(actor, query, place)
        address = scrape_places.stranger_address(
            self._services, actor, query.host, query.target[:100]
        )
        return self._poll(actor, query, None, address, dict(query.options), "")

    def _known(self, place: Place, query: ProbeQuery) -> Known | None:
        """Return the target of the same collector, for a probe that asks for nothing special."""
        if not query.is_plain or not self._parts.has_last_polls:
            return None
        for device in place.devices:
            for target in device.targets:
                if target.collector == query.collector and _is_covered(target, query):
                    render = partial(self._of_last_poll, query, target)
                    wanted = Wanted(device.name, target, ("probe", query.module), render)
                    return Known(place.text, place.kept, wanted)
        return None

    def _own_poll(self, actor: Actor, query: ProbeQuery, place: Place) -> ScrapePoll:
        device = place.devices[0]
        options = dict(query.options)
        credential = device.credential
        for target in device.targets:
            if target.collector == query.collector == "routeros":
                options = {**target.options, **options}
                credential = target.credential
        return self._poll(actor, query, device, device.address, options, credential)

    def _poll(
        self,
        actor: Actor,
        query: ProbeQuery,
        device: ScrapedDevice | None,
        address: str,
        options: dict[str, Any],
        credential: str,
    ) -> ScrapePoll:
        collector = self._services.registry.get(query.collector)
        kinds = [model.kind for model in collector.credentials]
        name = query.auth or (credential if query.collector == "routeros" else "")
        login = scrape_logins.ScrapeLogin()
        if name and kinds:
            login = scrape_logins.find(self._services, actor, name, device, kinds)
        names = (address, device.name if device is not None else address)
        if query.collector == "http" and query.host.host not in names:
            options["host"] = query.host.host
        if query.collector == "http" and login.credential_id is not None:
            options["auth"] = "basic" if login.kind == "login" else "bearer"
        if login.credential_id is None:
            self._check_login(query, options)
        requires = dict(device.requires) if device is not None else {}
        return ScrapePoll(query.collector, address, options, login.credential_id, False, requires)

    def _check_login(self, query: ProbeQuery, raw: Mapping[str, Any]) -> None:
        """Raise InvalidInput for a probe that needs a login and has none."""
        registry = self._services.registry
        collector = registry.get(query.collector)
        if needs_credential(collector, registry.options(query.collector, raw)):
            raise errors.InvalidInput(
                f"module {query.module} needs a credential", hint="name one: auth=NAME"
            )

    def _of_last_poll(self, query: ProbeQuery, target: ScrapedTarget, poll: LastPoll) -> bytes:
        readings = poll.stored.readings if poll.stored else None
        is_good = poll.status.state is not State.FAILING
        at_ms = poll.read_ms or 0
        text = self._text(query, target.options, readings, is_good, poll.collect_ms, at_ms)
        return text.encode()

    def _of_result(
        self, query: ProbeQuery, wanted: ScrapePoll, result: ScrapeResult
    ) -> ScrapeAnswer:
        if result.result in _OURS:
            text = f"error probing {query.target}: {result.code}: {result.message}"
            return scrape_answer.failure(scrape_answer.UNAVAILABLE, text)
        is_good = result.result in (Result.OK, Result.PARTIAL)
        now_ms = time.time_ns() // 1_000_000
        duration_ms = result.duration_ms
        text = self._text(query, wanted.options, result.readings, is_good, duration_ms, now_ms)
        reason = f"error probing {query.target}: {result.code}: {result.message}"
        comment = _comment(reason) if not is_good else ""
        body = f"{text}{scrape_metrics.age(0.0)}{comment}"
        return ScrapeAnswer(scrape_answer.OK, body.encode(), is_own_poll=True)

    def _text(
        self,
        query: ProbeQuery,
        options: Mapping[str, Any],
        readings: ReadingSet | None,
        is_good: bool,
        duration_ms: int,
        at_ms: int,
    ) -> str:
        is_good = is_good and _is_accepted(query, readings)
        made = blackbox_metrics.readings(readings, is_good, duration_ms / 1000, at_ms)
        text = scrape_metrics.text(made, blackbox_metrics.HELP)
        if readings is not None:
            help_texts = self._help_texts(query.collector, options)
            text += ShapeText(readings.series, help_texts).text(readings.values)
        return text

    def _help_texts(self, name: str, raw: Mapping[str, Any]) -> Mapping[str, str]:
        collector = self._services.registry.get(name)
        if not isinstance(collector, Documented):
            return {}
        try:
            return dict(collector.help_texts(self._services.registry.options(name, raw)))
        except errors.ConfigError:
            return {}

    def _failed(self, reason: bytes) -> ScrapeAnswer:
        """A known device that does not answer: no success, and the reason as a comment."""
        made = blackbox_metrics.readings(None, False, 0.0, 0)
        text = scrape_metrics.text(made, blackbox_metrics.HELP)
        return ScrapeAnswer(scrape_answer.OK, (text + _comment(reason.decode())).encode())


def _comment(reason: str) -> str:
    """Why a probe was no success, for people: Prometheus skips comments."""
    return f"# {' '.join(reason.split())}\n"


def _is_covered(target: ScrapedTarget, query: ProbeQuery) -> bool:
    """Whether a target does what the module does, for what a module fixes."""
    if query.collector == "ping":
        method = target.options.get("method", "auto")
        return bool(method == query.options.get("method", method))
    if query.collector == "http":
        return False  # a target checks what its options say, which is seldom what a module does
    return not query.auth or query.auth == target.credential


def _is_accepted(query: ProbeQuery, readings: ReadingSet | None) -> bool:
    """A TCP port that refuses answers a ping, and is no success of a connection."""
    if query.module != "tcp_connect" or readings is None:
        return True
    return any(
        series.name == "ping_tcp_accepted" and value == 1
        for series, value in zip(readings.series.series, readings.values, strict=True)
    )
