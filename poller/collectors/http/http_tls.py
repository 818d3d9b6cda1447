"""TLS for http targets: contexts, made once and kept, and what a certificate says, be it valid or not."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from cryptography import x509

from poller import errors
from poller.collectors import fingerprints


@dataclass(frozen=True, slots=True)
class Certificate:
    """Of the server itself, not of those that signed it."""

    expires_at: datetime
    subject: str
    issuer: str
    fingerprint: str  # its SHA-256

    def seconds_left(self, now: datetime) -> float:
        """Negative: it has expired."""
        return (self.expires_at - now).total_seconds()


@dataclass(frozen=True, slots=True)
class Trust:
    """What the operator said. Nothing: a CA of the system, for the name that is asked for."""

    ca_file: str = ""
    fingerprint: str = ""
    insecure: bool = False

    def context(self) -> ssl.SSLContext:
        """Kept until the CA file changes: reading certificates costs milliseconds. Raises OptionsUnusable."""
        if self.insecure or self.fingerprint:
            return _unchecked()
        try:
            return _checked(
                self.ca_file, Path(self.ca_file).stat().st_mtime_ns if self.ca_file else 0
            )
        except (OSError, ssl.SSLError) as error:
            raise errors.OptionsUnusable(
                f'the CA file "{self.ca_file}" cannot be used',
                cause=error.strerror or str(error),
                hint="give ca_file a PEM file on the worker",
            ) from None

    def objection(self, certificate: bytes | None) -> str:
        """What is wrong with a certificate that OpenSSL let pass; empty for nothing."""
        found = fingerprints.of(certificate)
        if not self.fingerprint or found == self.fingerprint:
            return ""
        return f"it is not the pinned one: its SHA-256 is {found}"


ANY = Trust(insecure=True)


@lru_cache(maxsize=64)
def _checked(ca_file: str, changed_ns: int) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=ca_file or None)


@lru_cache(maxsize=1)
def _unchecked() -> ssl.SSLContext:
    made = ssl.create_default_context()
    made.check_hostname = False
    made.verify_mode = ssl.CERT_NONE
    return made


def read(der: bytes | None) -> Certificate | None:
    """None for none, and for one that cannot be read."""
    if not der:
        return None
    try:
        found = x509.load_der_x509_certificate(der)
        return Certificate(
            found.not_valid_after_utc,
            _name(found.subject),
            _name(found.issuer),
            fingerprints.of(der),
        )
    except (ValueError, x509.InvalidVersion, x509.UnsupportedGeneralNameType):
        return None


def _name(name: x509.Name) -> str:
    """As people call it: its common name, else all of it."""
    common = name.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
    text = common[0].value if common else name.rfc4514_string()
    shown = text.decode(errors="replace") if isinstance(text, bytes) else text
    return "".join(c if c.isprintable() else " " for c in shown)[:200]


def now() -> datetime:
    return datetime.now(UTC)
