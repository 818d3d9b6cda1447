"""How a router proves on api-ssl who it is: by a CA's signature, by a pinned certificate, or - when told so - not."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from poller import errors
from poller.collectors import fingerprints


@dataclass(frozen=True, slots=True)
class Trust:
    """What the operator said. Nothing: a CA of the system, for the address that is polled."""

    ca_file: str = ""
    fingerprint: str = ""
    server_name: str = ""
    insecure: bool = False

    def context(self) -> ssl.SSLContext:
        """Made once and kept until the CA file changes: reading certificates costs milliseconds. Raises ConfigError."""
        if self.insecure:
            return _anything()
        if self.fingerprint:
            return _pinned()
        try:
            changed_ns = Path(self.ca_file).stat().st_mtime_ns if self.ca_file else 0
            return _signed(self.ca_file, changed_ns)
        except (OSError, ssl.SSLError) as error:
            hint = "give ca_file a PEM file that is here and on the workers"
            why = error.strerror or str(error)
            raise errors.InvalidInput(
                f'ca_file "{self.ca_file}" cannot be used', why, hint
            ) from None

    def check(self, certificate: bytes | None, router: str) -> None:
        """After the handshake, before anything is said. Raises DeviceProtocolError when the pin does not fit."""
        if not self.fingerprint:
            return
        found = fingerprints.of(certificate)
        if found != self.fingerprint:
            raise errors.DeviceProtocolError(
                f"{router} has another certificate than the pinned one; nothing was sent to it",
                cause=f"its SHA-256 is {found}, not {self.fingerprint}",
                hint="if its certificate was renewed, set the new fingerprint; else somebody is in between",
            )


@lru_cache(maxsize=16)
def _signed(ca_file: str, changed_ns: int) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=ca_file or None)


@lru_cache(maxsize=1)
def _pinned() -> ssl.SSLContext:
    """Who signed it does not matter, nor for whom: `Trust.check` knows the certificate itself."""
    made = ssl.create_default_context()
    made.check_hostname = False
    made.verify_mode = ssl.CERT_NONE
    return made


@lru_cache(maxsize=1)
def _anything() -> ssl.SSLContext:
    """Anonymous Diffie-Hellman, too: what api-ssl offers without a certificate."""
    made = _pinned.__wrapped__()
    made.set_ciphers("ALL:+aNULL:@SECLEVEL=0")  # anonymous ones last
    return made
