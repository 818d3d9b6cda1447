"""The options of an SNMP target. Each one does something; a wrong one says what it takes."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from poller import errors
from poller.collectors import api
from poller.collectors.snmp import catalog
from poller.domain import duration
from poller.domain.identity import Identity


class SnmpOptions(api.Options):
    modules: Annotated[
        tuple[str, ...], Field(description="What to read: module names, a list or separated by commas")
    ] = ("system", "if_mib")
    port: Annotated[int, Field(ge=1, le=65535, description="UDP port of the agent")] = 161
    version: Annotated[
        Literal["2c", "1"],
        Field(description="Protocol version with a community; SNMPv3 follows from the credential"),
    ] = "2c"
    timeout: Annotated[
        float,
        Field(
            gt=0,
            le=60,
            description="Seconds to wait for the first answer; each further try waits half as long again",
        ),
    ] = 1.5
    retries: Annotated[int, Field(ge=0, le=10, description="Further tries of an unanswered request")] = 2
    max_repetitions: Annotated[
        int,
        Field(ge=1, le=200, description="Most rows to ask for in one answer; fewer where a device cannot"),
    ] = 50
    refresh: Annotated[
        float,
        Field(
            ge=0,
            le=86400,
            description="Seconds that names, types and other texts may be taken from memory; 0: read them every time",
        ),
    ] = 600.0
    walks: Annotated[
        int,
        Field(ge=1, le=8, description="Most requests under way at a time to a device whose polls last long"),
    ] = 2
    identity: Annotated[
        Identity,
        Field(description="What an interface is known by when its rates are read: a new ifIndex is no new interface"),
    ] = Identity.IF_NAME

    engine: Annotated[
        Literal["auto", "gufo", "pysnmp"],
        Field(description="Who speaks SNMP: auto is gufo, and pysnmp where gufo cannot (contexts, odd SNMPv3 agents)"),
    ] = "auto"
    context: Annotated[str, Field(max_length=255, description="SNMPv3 context name; needs an SNMPv3 credential")] = ""

    @model_validator(mode="after")
    def _contexts_need_pysnmp(self) -> Self:
        if self.context and self.engine == "gufo":
            raise ValueError("context: the engine gufo knows no contexts; leave engine away")
        return self

    @field_validator("modules", mode="before")
    @classmethod
    def _split_modules(cls, value: Any) -> Any:
        if isinstance(value, str):
            return tuple(name.strip() for name in value.split(",") if name.strip())
        return value

    @field_validator("modules")
    @classmethod
    def _known_modules(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        names = tuple(dict.fromkeys(names))
        if not names:
            raise ValueError(f"name at least one module; there are: {', '.join(sorted(catalog.built_in()))}")
        catalog.select(names)
        return names

    @field_validator("timeout", "refresh", mode="before")
    @classmethod
    def _read_duration(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return duration.parse_ms(value) / 1000
        except errors.InvalidInput as error:
            raise ValueError(f"{error}; {error.hint}") from None

    @field_validator("version", mode="before")
    @classmethod
    def _spell_version(cls, value: Any) -> Any:
        text = str(value).lower().removeprefix("v")
        if text == "3":
            raise ValueError("SNMPv3 follows from the credential: give one of kind snmpv3 and leave version away")
        return {"2": "2c"}.get(text, text)
