"""The options of a RouterOS target."""

from __future__ import annotations

import difflib
from typing import Annotated, Any, Self

from pydantic import Field, field_validator, model_validator

from poller.collectors import api
from poller.collectors.routeros.families import FAMILIES

PLAIN_PORT, TLS_PORT = 8728, 8729


class RouterOsOptions(api.Options):
    families: Annotated[
        tuple[str, ...], Field(description="What to read: family names, a list or separated by commas")
    ] = ("resource", "interfaces")
    port: Annotated[int | None, Field(ge=1, le=65535, description="TCP port; 8728, or 8729 with tls")] = None
    tls: Annotated[bool, Field(description="Speak api-ssl and check the router's certificate")] = False
    ca_file: Annotated[str, Field(description="PEM file, on the worker, of the CA that signed the certificate")] = ""
    insecure: Annotated[bool, Field(description="With tls: accept any certificate, and none at all")] = False

    @property
    def effective_port(self) -> int:
        return self.port or (TLS_PORT if self.tls else PLAIN_PORT)

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

    @model_validator(mode="after")
    def _tls_options_need_tls(self) -> Self:
        if not self.tls and (self.ca_file or self.insecure):
            raise ValueError("ca_file and insecure need tls=true")
        if self.ca_file and self.insecure:
            raise ValueError("ca_file and insecure contradict each other: give one")
        return self
