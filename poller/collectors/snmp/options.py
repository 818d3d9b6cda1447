"""The options of an SNMP target, and what follows from them: walk settings and the login.

Validation reads no file; `check` does, before a target is saved.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from poller import errors
from poller.collectors import api, option_types
from poller.collectors.credentials import Credential, SnmpV3
from poller.collectors.snmp.modules import device_table, module_catalog
from poller.collectors.snmp.modules.module_model import WalkParams, WalkSettings
from poller.collectors.snmp.modules.module_set import ModuleSet
from poller.domain.metrics.series_identity import Identity

#: More rows do not fit a response.
MAX_REPETITIONS = 200


@dataclass(frozen=True, slots=True)
class Login:
    """The credential, protocol version and SNMPv3 context of a session with a device."""

    credential: Credential | None
    #: "1" or "2c" with a community; SNMPv3 follows from the credential.
    version: str
    context: str = ""


class SnmpOptions(api.Options):
    """The options of an SNMP target."""

    config: Annotated[
        tuple[str, ...],
        Field(
            description="Files of modules in snmp_exporter's format: a list, "
            "or paths or patterns (*.yml) separated by commas"
        ),
    ] = ()
    modules: Annotated[
        tuple[str, ...],
        Field(
            description="Modules to read: a list, or names separated by commas; "
            "by default the modules that suit the device"
        ),
    ] = ()
    match: Annotated[
        str,
        Field(
            description="Your own file of modules by sysObjectID; "
            "it adds to the built-in device table"
        ),
    ] = ""
    auth: Annotated[
        str,
        Field(description="A login of the config file, for a target without a credential"),
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
            description="Seconds to wait for a response; each retry waits half as long again",
        ),
    ] = 1.5
    retries: Annotated[
        int, Field(ge=0, le=10, description="Retries of a request without a response")
    ] = 2
    max_repetitions: Annotated[
        int,
        Field(
            ge=1,
            le=MAX_REPETITIONS,
            description="Maximum number of rows per request; "
            "fewer are requested from a device that cannot send as many",
        ),
    ] = 50
    refresh: Annotated[
        float,
        Field(
            ge=0,
            le=86400,
            description="Seconds that names, types and other texts are cached; "
            "0 reads them at every poll",
        ),
    ] = 600.0
    resting: Annotated[
        bool,
        Field(
            description="Leave out interface numbers that stand still: between two refreshes, "
            "columns such as the speed, and all but the state of ports that are down"
        ),
    ] = True
    walks: Annotated[
        int,
        Field(
            ge=1,
            le=8,
            description="Maximum number of parallel requests to a device whose polls take long",
        ),
    ] = 2
    identity: Annotated[
        Identity,
        Field(
            description="What identifies an interface when rates are computed: "
            "with a name, a new ifIndex is no new interface"
        ),
    ] = Identity.IF_NAME

    engine: Annotated[
        Literal["auto", "gufo", "exact"],
        Field(description="SNMP engine: auto is gufo, and exact for SNMPv3 contexts"),
    ] = "auto"
    context: Annotated[
        str, Field(max_length=255, description="SNMPv3 context name; needs an SNMPv3 credential")
    ] = ""

    def walk_settings(self, params: WalkParams) -> WalkSettings:
        """Decide how to read a device: the target's options, then the modules, then defaults."""
        repetitions = params.max_repetitions
        if repetitions is None or "max_repetitions" in self.model_fields_set:
            repetitions = self.max_repetitions

        retries = params.retries
        if retries is None or "retries" in self.model_fields_set:
            retries = self.retries

        timeout_s = params.timeout_s
        if timeout_s is None or "timeout" in self.model_fields_set:
            timeout_s = self.timeout

        return WalkSettings(
            max_repetitions=min(repetitions, MAX_REPETITIONS),
            retries=retries,
            timeout_s=timeout_s,
            allow_nonincreasing_oids=params.allow_nonincreasing_oids,
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

        if auth.version == 1:
            version = "1"

        context = self.context
        if not context and isinstance(auth.credential, SnmpV3):
            context = auth.context

        return Login(auth.credential, version, context)

    def check(self) -> None:
        """Check that the files exist and hold the modules and login named.

        Raises ConfigError.
        """
        if self.config:
            module_catalog.select(self.modules, self.config)
        if self.match:
            names = device_table.load(self.match).names()
            device_table.refuse_unknown(self.match, names, self.config)
        if self.auth:
            module_catalog.auth(self.auth, self.config)

    @field_validator("engine", mode="before")
    @classmethod
    def _rename_engine(cls, value: Any) -> Any:
        """`pysnmp` is the older name of the exact engine."""
        return "exact" if value == "pysnmp" else value

    @field_validator("config", mode="before")
    @classmethod
    def _split_paths(cls, value: Any) -> Any:
        """Accept paths separated by commas."""
        if isinstance(value, str):
            return tuple(path.strip() for path in value.split(","))
        return value

    @field_validator("config")
    @classmethod
    def _absolute_paths(cls, paths: tuple[str, ...]) -> tuple[str, ...]:
        """Make paths absolute: a worker has another current directory than a command."""
        if not all(paths):
            raise ValueError("name a file")

        return tuple(dict.fromkeys(_absolute(path) for path in paths))

    @field_validator("modules", mode="before")
    @classmethod
    def _split_modules(cls, value: Any) -> Any:
        """Accept names separated by commas."""
        if not isinstance(value, str):
            return value

        names = [name.strip() for name in value.split(",")]
        return tuple(name for name in names if name)

    @field_validator("modules")
    @classmethod
    def _known_modules(cls, names: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        """Refuse unknown modules of a target without files; `check` refuses the others."""
        names = tuple(dict.fromkeys(names))
        if names and not info.data.get("config"):
            try:
                module_catalog.select(names)
            except errors.ConfigError as error:
                raise ValueError(str(error)) from None

        return names

    @field_validator("match")
    @classmethod
    def _absolute_path(cls, path: str, info: ValidationInfo) -> str:
        """Make the path absolute; refuse a table beside named modules."""
        if path and info.data.get("modules"):
            raise ValueError("modules are named, so nothing is left to choose: give one of the two")

        return _absolute(path) if path else ""

    @field_validator("auth")
    @classmethod
    def _auth_needs_config(cls, name: str, info: ValidationInfo) -> str:
        """Refuse a login without a file."""
        if name and not info.data.get("config"):
            raise ValueError("it names a login of a file: give config, too")

        return name

    @field_validator("timeout", "refresh", mode="before")
    @classmethod
    def _parse_duration(cls, value: Any) -> Any:
        """Accept a duration such as `500ms`."""
        return option_types.parse_seconds(value)

    @field_validator("version", mode="before")
    @classmethod
    def _normalize_version(cls, value: Any) -> Any:
        """Accept `v2c` and `2`; refuse 3, which a credential decides."""
        text = str(value).lower().removeprefix("v")
        if text == "3":
            raise ValueError(
                "SNMPv3 follows from the credential: give one of kind snmpv3 and leave version out"
            )

        return "2c" if text == "2" else text

    @model_validator(mode="after")
    def _context_needs_exact_engine(self) -> Self:
        """Refuse a context with an engine that has none."""
        if self.context and self.engine == "gufo":
            raise ValueError("context: the engine gufo has no contexts; leave engine out")

        return self


def _absolute(path: str) -> str:
    """Return a path without `~`, relative to the current directory."""
    return os.path.abspath(os.path.expanduser(path))
