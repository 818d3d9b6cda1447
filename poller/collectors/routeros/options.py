"""The options of a RouterOS target."""

from __future__ import annotations

import os
from typing import Annotated, Any, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from poller.collectors import api, fingerprints
from poller.collectors.routeros import family_options
from poller.collectors.routeros.router_tls import Trust

PLAIN_PORT, TLS_PORT = 8728, 8729


class RouterOsOptions(api.Options):
    families: Annotated[
        tuple[str, ...],
        Field(
            validate_default=True,
            description="What to read: families, a list or separated by commas; basic, all",
        ),
    ] = (family_options.BASIC,)
    every: Annotated[
        dict[str, float],
        Field(
            default_factory=dict,
            description="Families to read less often than the target is polled: {routes: 5m}",
        ),
    ]
    address_lists: Annotated[
        tuple[str, ...],
        Field(description="Firewall address lists whose entries the family address_lists reads"),
    ] = ()
    port: Annotated[
        int | None, Field(ge=1, le=65535, description="TCP port; 8728, or 8729 with tls")
    ] = None
    tls: Annotated[bool, Field(description="Speak api-ssl and check the router's certificate")] = (
        False
    )
    ca_file: Annotated[
        str, Field(description="PEM file, on the worker, of the CA that signed the certificate")
    ] = ""
    server_name: Annotated[
        str, Field(description="The name in the certificate, if it is not the address")
    ] = ""
    fingerprint: Annotated[
        str,
        Field(
            description="SHA-256 of the certificate: this one is trusted, whoever signed it, and no other"
        ),
    ] = ""
    insecure: Annotated[
        bool, Field(description="With tls: accept any certificate, and none at all")
    ] = False

    @property
    def effective_port(self) -> int:
        return self.port or (TLS_PORT if self.tls else PLAIN_PORT)

    @property
    def trust(self) -> Trust | None:
        """None for the plain API."""
        return (
            Trust(self.ca_file, self.fingerprint, self.server_name, self.insecure)
            if self.tls
            else None
        )

    @field_validator("families", "address_lists", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        return family_options.words(value)

    @field_validator("families")
    @classmethod
    def _known_families(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return family_options.families(names)

    @field_validator("every", mode="before")
    @classmethod
    def _lengths(cls, value: Any) -> Any:
        return family_options.intervals(value)

    @field_validator("every", "address_lists")
    @classmethod
    def _about_families_that_are_read(cls, value: Any, info: ValidationInfo) -> Any:
        named = value if info.field_name == "every" else ("address_lists",) if value else ()
        if "families" in info.data:  # else it has an error of its own
            family_options.in_list(info.data["families"], *named)
        return value

    @field_validator("ca_file")
    @classmethod
    def _whole_path(cls, path: str) -> str:
        """A worker has another current directory than whoever adds a target."""
        return os.path.abspath(os.path.expanduser(path)) if path else ""

    @field_validator("fingerprint")
    @classmethod
    def _is_sha256(cls, text: str) -> str:
        return fingerprints.parse(text) if text else ""

    @model_validator(mode="after")
    def _one_kind_of_trust(self) -> Self:
        given = [name for name in ("ca_file", "fingerprint", "insecure") if getattr(self, name)]
        named = ["server_name"] if self.server_name else []
        if not self.tls and (given or named):
            raise ValueError(f"{' and '.join(given + named)} needs tls=true")
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)} contradict each other: give one")
        if named and given not in ([], ["ca_file"]):
            raise ValueError(
                f"server_name means nothing with {given[0]}, which checks no name: leave one away"
            )
        return self
