"""The options of a RouterOS target."""

from __future__ import annotations

import difflib
import os
from typing import Annotated, Any, Self

from pydantic import Field, field_validator, model_validator

from poller.collectors import api
from poller.collectors.routeros import tls as api_ssl
from poller.collectors.routeros.families import FAMILIES
from poller.collectors.routeros.tls import Trust

PLAIN_PORT, TLS_PORT = 8728, 8729


class RouterOsOptions(api.Options):
    families: Annotated[
        tuple[str, ...], Field(description="What to read: family names, a list or separated by commas")
    ] = ("resource", "interfaces")
    port: Annotated[int | None, Field(ge=1, le=65535, description="TCP port; 8728, or 8729 with tls")] = None
    tls: Annotated[bool, Field(description="Speak api-ssl and check the router's certificate")] = False
    ca_file: Annotated[str, Field(description="PEM file, on the worker, of the CA that signed the certificate")] = ""
    server_name: Annotated[str, Field(description="The name in the certificate, if it is not the address")] = ""
    fingerprint: Annotated[
        str, Field(description="SHA-256 of the certificate: this one is trusted, whoever signed it, and no other")
    ] = ""
    insecure: Annotated[bool, Field(description="With tls: accept any certificate, and none at all")] = False

    @property
    def effective_port(self) -> int:
        return self.port or (TLS_PORT if self.tls else PLAIN_PORT)

    @property
    def trust(self) -> Trust | None:
        """None for the plain API."""
        return Trust(self.ca_file, self.fingerprint, self.server_name, self.insecure) if self.tls else None

    @field_validator("families", mode="before")
    @classmethod
    def _split_families(cls, value: Any) -> Any:
        if isinstance(value, str):
            return tuple(name.strip() for name in value.split(",") if name.strip())
        return value

    @field_validator("families")
    @classmethod
    def _known_families(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        there = ", ".join(FAMILIES)
        for name in names:
            if name not in FAMILIES:
                near = difflib.get_close_matches(name, FAMILIES, n=1, cutoff=0.4)
                hint = f"did you mean {near[0]}? " if near else ""
                raise ValueError(f'unknown family "{name}"; {hint}there are: {there}')
        if not names:
            raise ValueError(f"name at least one family; there are: {there}")
        return tuple(dict.fromkeys(names))

    @field_validator("ca_file")
    @classmethod
    def _whole_path(cls, path: str) -> str:
        """A worker has another current directory than whoever adds a target."""
        return os.path.abspath(os.path.expanduser(path)) if path else ""

    @field_validator("fingerprint")
    @classmethod
    def _is_sha256(cls, text: str) -> str:
        return api_ssl.fingerprint(text) if text else ""

    @model_validator(mode="after")
    def _one_kind_of_trust(self) -> Self:
        given = [name for name in ("ca_file", "fingerprint", "insecure") if getattr(self, name)]
        named = ["server_name"] if self.server_name else []
        if not self.tls and (given or named):
            raise ValueError(f"{' and '.join(given + named)} needs tls=true")
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)} contradict each other: give one")
        if named and given not in ([], ["ca_file"]):
            raise ValueError(f"server_name means nothing with {given[0]}, which checks no name: leave one away")
        return self
