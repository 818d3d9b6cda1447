"""The record of one HTTP exchange: timings, response, certificate.

The record is filled step by step, so it is valid when the exchange ends in an error.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from cryptography import x509

from poller.collectors import tls

_MAX_NAME = 200


@dataclass(frozen=True, slots=True)
class Certificate:
    """The certificate of the server itself, without the certificates of its CAs."""

    expires_at: datetime
    subject: str
    issuer: str
    fingerprint: str  # SHA-256

    @classmethod
    def parse(cls, der: bytes | None) -> Certificate | None:
        """Parse a certificate in DER; None without a certificate, or for an unreadable one."""
        if not der:
            return None
        try:
            parsed = x509.load_der_x509_certificate(der)
            return cls(
                expires_at=parsed.not_valid_after_utc,
                subject=_common_name(parsed.subject),
                issuer=_common_name(parsed.issuer),
                fingerprint=tls.fingerprint_of(der),
            )
        except (ValueError, x509.InvalidVersion, x509.UnsupportedGeneralNameType):
            return None

    def seconds_left(self) -> float:
        """Return the time until the certificate expires; negative after that."""
        return (self.expires_at - datetime.now(UTC)).total_seconds()


def _common_name(name: x509.Name) -> str:
    """Return the common name as printable text; the whole name if it has no common name."""
    common_names = name.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
    text = common_names[0].value if common_names else name.rfc4514_string()
    if isinstance(text, bytes):
        text = text.decode(errors="replace")
    printable = "".join(char if char.isprintable() else " " for char in text)
    return printable[:_MAX_NAME]


@dataclass(slots=True)
class Exchange:
    """One request and its response, as far as the exchange got."""

    step: str = "resolving its name"  # for error texts
    phases: dict[str, float] = field(default_factory=dict)  # seconds by phase
    status: int = 0
    body: bytearray = field(default_factory=bytearray)
    truncated: bool = False  # the body is longer than the limit
    complete: bool = False  # the body was read to its end, or to the limit
    location: str = ""
    encoding: str = ""
    certificate: Certificate | None = None
    trusted: bool = False  # the certificate was checked and is valid
    protocol: str = ""  # TLS version

    @contextlib.contextmanager
    def phase(self, name: str, step: str) -> Iterator[None]:
        """Measure the time of a step, also of one that fails."""
        self.step = step
        started = time.perf_counter()
        try:
            yield
        finally:
            self.phases[name] = time.perf_counter() - started
