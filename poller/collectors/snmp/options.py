"""The options of an SNMP target. Each one does something; a wrong one says what it takes."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from poller import errors
from poller.collectors import api, option_durations
from poller.collectors.credentials import Credential, SnmpV3
from poller.collectors.snmp.modules import device_table, module_catalog
from poller.collectors.snmp.modules.module_model import WalkParams, WalkSettings
from poller.collectors.snmp.modules.module_set import ModuleSet
from poller.domain.metrics.series_identity import Identity

#: More rows fit no answer anyway.
MOST_REPETITIONS = 200


@dataclass(frozen=True, slots=True)
class Login:
    """The credential, protocol version and SNMPv3 context of a session with a device."""

    credential: Credential | None
    #: "1" or "2c" with a community; SNMPv3 follows from the credential.
    version: str
    context: str = ""


class SnmpOptions(api.Options):
    config: Annotated[
        tuple[str, ...],
        Field(
            description="Files of modules in snmp_exporter's format, a list or separated by commas; or *.yml"
        ),
    ] = ()
    modules: Annotated[
        tuple[str, ...],
        Field(
            description="What to read: module names, a list or separated by commas; none: what suits the device"
        ),
    ] = ()
    match: Annotated[
        str,
        Field(
            description="A file of your own that says which modules suit which sysObjectID; it adds to our table"
        ),
    ] = ""
    auth: Annotated[
        str,
        Field(
            description="A login of the config file, for a target without a credential of its own"
        ),
    ] = ""
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
    retries: Annotated[
        int, Field(ge=0, le=10, description="Further tries of an unanswered request")
    ] = 2
    max_repetitions: Annotated[
        int,
        Field(
            ge=1,
            le=MOST_REPETITIONS,
            description="Most rows to ask for in one answer; fewer where a device cannot",
        ),
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
        Field(
            ge=1,
            le=8,
            description="Most requests under way at a time to a device whose polls last long",
        ),
    ] = 2
    identity: Annotated[
        Identity,
        Field(
            description="What an interface is known by when its rates are read: a new ifIndex is no new interface"
        ),
    ] = Identity.IF_NAME

    engine: Annotated[
        Literal["auto", "gufo", "pysnmp"],
        Field(description="Who speaks SNMP: auto is gufo, and pysnmp for SNMPv3 contexts"),
    ] = "auto"
    context: Annotated[
        str, Field(max_length=255, description="SNMPv3 context name; needs an SNMPv3 credential")
    ] = ""

    @model_validator(mode="after")
    def _contexts_need_pysnmp(self) -> Self:
        if self.context and self.engine == "gufo":
            raise ValueError("context: the engine gufo knows no contexts; leave engine away")
        return self

    def walk_settings(self, asked: WalkParams) -> WalkSettings:
        """How to read a module: as the target's own options say, else as the module asks, else by our defaults."""
        own = self.model_fields_set
        repetitions, retries, timeout_s = asked.max_repetitions, asked.retries, asked.timeout_s
        if repetitions is None or "max_repetitions" in own:
            repetitions = self.max_repetitions
        if retries is None or "retries" in own:
            retries = self.retries
        if timeout_s is None or "timeout" in own:
            timeout_s = self.timeout
        return WalkSettings(
            min(repetitions, MOST_REPETITIONS), retries, timeout_s, asked.allow_nonincreasing_oids
        )

    def login(self, own: Credential | None, module_set: ModuleSet) -> Login:
        """Choose the target's own credential, else the login that option `auth` names.

        Raises OptionsUnusable when the files of option `config` have no such login.
        """
        version: str = self.version
        if module_set.version and "version" not in self.model_fields_set:
            version = module_set.version

        if own is not None or not self.auth:
            return Login(own, version, self.context)

        try:
            auth = module_catalog.auth(self.auth, self.config)
        except errors.ConfigError as error:
            raise errors.OptionsUnusable(error.message, error.cause, error.hint) from None

        context = self.context
        if not context and isinstance(auth.credential, SnmpV3):
            context = auth.context
        return Login(auth.credential, "1" if auth.version == 1 else version, context)

    def check(self) -> None:
        """Are the files there, and in them what is named? For whoever saves a target. Raises ConfigError."""
        if self.config:
            module_catalog.select(self.modules, self.config)
        if self.match:
            device_table.refuse_unknown(
                self.match, device_table.load(self.match).names(), self.config
            )
        if self.auth:
            module_catalog.auth(self.auth, self.config)

    @field_validator("config", mode="before")
    @classmethod
    def _split_paths(cls, value: Any) -> Any:
        return tuple(path.strip() for path in value.split(",")) if isinstance(value, str) else value

    @field_validator("config")
    @classmethod
    def _whole_paths(cls, paths: tuple[str, ...]) -> tuple[str, ...]:
        """A worker has another current directory than whoever adds a target."""
        if not all(paths):
            raise ValueError("name a file")
        return tuple(dict.fromkeys(os.path.abspath(os.path.expanduser(path)) for path in paths))

    @field_validator("modules", mode="before")
    @classmethod
    def _split_modules(cls, value: Any) -> Any:
        if isinstance(value, str):
            return tuple(name.strip() for name in value.split(",") if name.strip())
        return value

    @field_validator("modules")
    @classmethod
    def _known_modules(cls, names: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        """Those of files are known only where the files are: see `check`."""
        names = tuple(dict.fromkeys(names))
        if names and not info.data.get("config"):
            try:
                module_catalog.select(names)
            except errors.ConfigError as error:
                raise ValueError(str(error)) from None
        return names

    @field_validator("match")
    @classmethod
    def _whole_path(cls, path: str, info: ValidationInfo) -> str:
        if path and info.data.get("modules"):
            raise ValueError("modules are named, so nothing is left to choose: give one of the two")
        return os.path.abspath(os.path.expanduser(path)) if path else ""

    @field_validator("auth")
    @classmethod
    def _auth_of_a_file(cls, name: str, info: ValidationInfo) -> str:
        if name and not info.data.get("config"):
            raise ValueError("it names a login of a file: give config, too")
        return name

    @field_validator("timeout", "refresh", mode="before")
    @classmethod
    def _read_duration(cls, value: Any) -> Any:
        return option_durations.seconds(value)

    @field_validator("version", mode="before")
    @classmethod
    def _spell_version(cls, value: Any) -> Any:
        text = str(value).lower().removeprefix("v")
        if text == "3":
            raise ValueError(
                "SNMPv3 follows from the credential: give one of kind snmpv3 and leave version away"
            )
        return {"2": "2c"}.get(text, text)
