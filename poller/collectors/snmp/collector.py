"""One SNMP poll, top to bottom: resolve, connect, read each part, map, hand over."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from poller.collectors import api
from poller.collectors.credentials import Community, Credential, SnmpV3
from poller.collectors.snmp import catalog, engines
from poller.collectors.snmp.engine import Row
from poller.collectors.snmp.engines import Engines
from poller.collectors.snmp.links import Way
from poller.collectors.snmp.options import SnmpOptions
from poller.collectors.snmp.plan import Shapes
from poller.collectors.snmp.profile import Part, Profile
from poller.collectors.snmp.resolving import Resolver
from poller.collectors.snmp.tuning import Tuning
from poller.collectors.snmp.walker import Patience, Walked, Walker


@dataclass(slots=True)
class Memory:
    """What a worker remembers of an SNMP target between its polls."""

    tuning: Tuning
    shapes: Shapes = field(default_factory=Shapes)
    wary: bool = False


class SnmpCollector:
    """SNMP v1, v2c and v3, told what to read by modules in snmp_exporter's language."""

    name: ClassVar[str] = "snmp"
    api_version: ClassVar[int] = api.API_VERSION
    Options: ClassVar[type[api.Options]] = SnmpOptions
    credentials: ClassVar[tuple[type[Credential], ...]] = (Community, SnmpV3)

    def __init__(self) -> None:
        self._resolver = Resolver()
        self._engines = Engines()

    async def collect(self, poll: api.Poll) -> AsyncIterator[api.Yielded]:
        options: SnmpOptions = poll.options
        profile = catalog.select(options.modules)
        memory = poll.memory.get("snmp")
        if memory is None:
            memory = poll.memory["snmp"] = Memory(Tuning(options.max_repetitions))
        rows, failures = await self._read(poll, options, profile, memory)
        memory.tuning.end_poll()
        if rows:
            readings, plan = memory.shapes.read(rows, profile, complete=not failures)
            yield readings
            if plan.duplicates:
                yield api.PartFailed("labels", _ambiguous(plan.duplicates))
        elif not failures:
            raise api.DeviceUnsupported(f"the device has nothing of {', '.join(options.modules)}")
        for failure in failures:
            yield failure

    async def _read(
        self, poll: api.Poll, options: SnmpOptions, profile: Profile, memory: Memory
    ) -> tuple[list[Row], list[api.PartFailed]]:
        """Every part's rows, and the parts that failed after another had answered."""
        way = self._way(await self._resolver.address(poll.address), poll, options)
        try:
            return await self._read_from(way, poll, options, profile, memory)
        except api.DeviceError as error:
            known = self._engines.forget(way)
            if not (known and isinstance(error, api.DeviceAuthFailed | api.DeviceTimeout)):
                raise
        # The agent may have been replaced since: introduce ourselves anew before we believe it.
        return await self._read_from(way, poll, options, profile, memory)

    async def _read_from(
        self, way: Way, poll: api.Poll, options: SnmpOptions, profile: Profile, memory: Memory
    ) -> tuple[list[Row], list[api.PartFailed]]:
        link = self._engines.take(way, poll.credential, memory.wary)
        well = False
        try:
            patience = Patience(options.timeout, options.retries, poll.deadline)
            walker = Walker(link, patience, memory.tuning, f"{poll.address} port {options.port}")
            await walker.begin()
            rows, failures = await _read_parts(profile, walker)
            well = not failures
            return rows, failures
        except api.DeviceError as error:
            raise _without_frames(error) from None
        finally:
            memory.wary = memory.wary or link.wary
            self._engines.give_back(way, link, well=well)

    def _way(self, address: str, poll: api.Poll, options: SnmpOptions) -> Way:
        return engines.way_to(address, options.port, options.version, poll.credential, options.context, options.engine)

    def help_texts(self, options: Any) -> Mapping[str, str]:
        return catalog.select(options.modules).help

    async def close(self) -> None:
        self._engines.close()


async def _read_parts(profile: Profile, walker: Walker) -> tuple[list[Row], list[api.PartFailed]]:
    rows: list[Row] = []
    failures: list[api.PartFailed] = []
    for part in profile.parts:
        walked = await _read_part(part, walker)
        rows += walked.rows
        if walked.error is not None:
            if not walker.answered:  # nobody there: do not ask for the rest
                raise walked.error
            failures.append(api.PartFailed(part.name, _without_frames(walked.error)))
    return rows, failures


async def _read_part(part: Part, walker: Walker) -> Walked:
    if part.walk:
        return await walker.walk(part.walk)
    try:
        return Walked(await walker.get(part.get))
    except api.DeviceError as error:
        return Walked(error=error)


def _without_frames(error: api.DeviceError) -> api.DeviceError:
    """Frames would keep the closed link's socket alive for as long as the error is."""
    error.__context__ = None
    return error.with_traceback(None)


def _ambiguous(duplicates: tuple[api.Series, ...]) -> api.DeviceProtocolError:
    labels = ", ".join(f'{key}="{value}"' for key, value in duplicates[0].labels)
    return api.DeviceProtocolError(
        f"{len(duplicates)} rows have name and labels of another, such as {duplicates[0].name}{{{labels}}}"
    )
