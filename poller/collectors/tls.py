"""TLS of the built-in collectors: trust by a CA, by a pinned certificate, or none at all.

Contexts are made once and cached until the CA file changes. This module opens no connection.
"""

from __future__ import annotations

import hashlib
import re
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field

from poller import errors
from poller.collectors import api, option_types

_SHA1_DIGITS = 40
_SHA256_DIGITS = 64


def parse_fingerprint(text: str) -> str:
    """Return a SHA-256 fingerprint as 64 lower-case digits, "" for "". Raises ValueError."""
    if not text:
        return ""
    digits = re.sub(r"[:\s]", "", text).lower()
    is_hexadecimal = re.fullmatch("[0-9a-f]*", digits) is not None
    if is_hexadecimal and len(digits) == _SHA256_DIGITS:
        return digits
    fault = "is not one"
    if is_hexadecimal and len(digits) == _SHA1_DIGITS:
        fault = "looks like SHA-1; give the SHA-256"
    raise ValueError(
        f"a SHA-256 fingerprint has {_SHA256_DIGITS} hexadecimal digits, "
        f"with or without colons; this {fault}"
    )


def fingerprint_of(certificate: bytes | None) -> str:
    """Return the SHA-256 fingerprint of a certificate in DER; `none` without a certificate."""
    return hashlib.sha256(certificate).hexdigest() if certificate else "none"


CaFile = Annotated[
    str,
    AfterValidator(option_types.absolute_path),
    Field(description="PEM file, on the worker, of the CA that signed the certificate"),
]
Fingerprint = Annotated[
    str,
    AfterValidator(parse_fingerprint),
    Field(description="SHA-256 of the only certificate to trust, whatever CA signed it"),
]
#: Options of which a target may set one.
TRUST_OPTIONS = ("ca_file", "fingerprint", "insecure")


def trust_options(options: api.Options) -> Sequence[str]:
    """Return the names of the trust options that are set. Raises ValueError for more than one."""
    names = [name for name in TRUST_OPTIONS if getattr(options, name)]
    if len(names) > 1:
        raise ValueError(f"{' and '.join(names)} contradict each other: give one")
    return names


@dataclass(frozen=True, slots=True)
class Trust:
    """The certificates a target accepts; by default those of the system's CAs."""

    ca_file: str = ""
    fingerprint: str = ""
    insecure: bool = False
    #: The name in the certificate, if it is not the address.
    server_name: str = ""

    def context(self, *, anonymous: bool = False) -> ssl.SSLContext:
        """Return the context for a handshake. Raises OptionsUnusable for a bad CA file.

        With `anonymous` an insecure context accepts servers without any certificate, too.
        """
        if self.insecure:
            return _unchecked_context(anonymous)
        if self.fingerprint:
            return _unchecked_context(anonymous=False)
        try:
            changed_ns = Path(self.ca_file).stat().st_mtime_ns if self.ca_file else 0
            return _ca_context(self.ca_file, changed_ns)
        except (OSError, ssl.SSLError) as error:
            raise errors.OptionsUnusable(
                f'ca_file "{self.ca_file}" cannot be used',
                cause=error.strerror or str(error),
                hint="give ca_file a PEM file that is here and on the workers",
            ) from None

    def check_files(self) -> None:
        """Check the CA file when a target is saved. Raises ConfigError."""
        try:
            self.context()
        except errors.OptionsUnusable as error:
            raise errors.ConfigError(error.message, error.cause, error.hint) from None

    def accepts(self, certificate: bytes | None) -> bool:
        """Return whether a certificate that passed the handshake is the pinned one, if any is."""
        return not self.fingerprint or fingerprint_of(certificate) == self.fingerprint


#: Accepts any certificate.
ANY = Trust(insecure=True)


@lru_cache(maxsize=64)
def _ca_context(ca_file: str, changed_ns: int) -> ssl.SSLContext:
    """Load a CA file; `changed_ns` makes the cache miss when the file changes."""
    return ssl.create_default_context(cafile=ca_file or None)


@lru_cache(maxsize=2)
def _unchecked_context(anonymous: bool) -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if anonymous:  # anonymous Diffie-Hellman last: RouterOS without a certificate offers only that
        context.set_ciphers("ALL:+aNULL:@SECLEVEL=0")
    return context
