"""The options of a RouterOS target."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from poller.collectors import api
from poller.collectors.routeros import family_options
from poller.collectors.tls import TRUST_OPTIONS, CaFile, Fingerprint, Trust, trust_options

PLAIN_PORT = 8728
TLS_PORT = 8729
PLAIN_PORT_HINT = (
    f"{PLAIN_PORT} is the port of the plain API: leave it out for api-ssl, or add tls=false"
)


class RouterOsOptions(api.Options):
    families: Annotated[
        tuple[str, ...],
        Field(
            validate_default=True,
            description="Families to read, a list or separated by commas; basic, all",
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
        int | None, Field(ge=1, le=65535, description="TCP port; 8729, or 8728 with tls=false")
    ] = None
    tls: Annotated[
        bool | None,
        Field(
            description=(
                "true: api-ssl with a checked certificate; false: the plain API, which sends the "
                "password in clear. Without it: api-ssl, checked if one of the next three is given"
            )
        ),
    ] = None
    ca_file: CaFile = ""
    server_name: Annotated[
        str, Field(description="The name in the certificate, if it is not the address")
    ] = ""
    fingerprint: Fingerprint = ""
    insecure: Annotated[
        bool,
        Field(
            description="Accept any certificate, and none at all; the default, without a warning"
        ),
    ] = False

    @property
    def effective_port(self) -> int:
        return self.port or (TLS_PORT if self.uses_tls else PLAIN_PORT)

    @property
    def uses_tls(self) -> bool:
        return self.tls is not False

    @property
    def checks_certificate(self) -> bool:
        """Whether a router must show a certificate before it gets the login."""
        given = self.tls or self.ca_file or self.fingerprint or self.server_name
        return bool(given) and not self.insecure

    @property
    def trust(self) -> Trust | None:
        """The accepted certificates; None for the plain API."""
        if not self.uses_tls:
            return None
        unchecked = not self.checks_certificate
        return Trust(self.ca_file, self.fingerprint, unchecked, self.server_name)

    @field_validator("families", "address_lists", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        return family_options.split_words(value)

    @field_validator("families")
    @classmethod
    def _expand_families(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return family_options.families(names)

    @field_validator("every", mode="before")
    @classmethod
    def _parse_intervals(cls, value: Any) -> Any:
        return family_options.intervals(value)

    @field_validator("every", "address_lists")
    @classmethod
    def _check_families_are_read(cls, value: Any, info: ValidationInfo) -> Any:
        names = value
        if info.field_name == "address_lists":
            names = ("address_lists",) if value else ()
        if "families" in info.data:  # missing: `families` has an error of its own
            family_options.check_selected(info.data["families"], *names)
        return value

    @model_validator(mode="after")
    def _check_trust(self) -> Self:
        trust = [name for name in TRUST_OPTIONS if getattr(self, name)]
        names = [*trust, "server_name"] if self.server_name else trust
        if not self.uses_tls and names:
            raise ValueError(f"{' and '.join(names)} needs TLS: leave tls=false out")
        trust_options(self)
        if self.server_name and (self.fingerprint or self.insecure):
            raise ValueError(
                f"server_name means nothing with {trust[0]}, which checks no name: leave one out"
            )
        return self


def is_plain_port(options: RouterOsOptions) -> bool:
    """Return whether TLS is to be spoken at the port where routers serve the plain API."""
    return options.uses_tls and options.port == PLAIN_PORT
