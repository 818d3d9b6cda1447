"""SHA-256 fingerprints of certificates, as people write them and as they are compared."""

from __future__ import annotations

import hashlib
import re

_SHA1_DIGITS, _DIGITS = 40, 64


def parse(text: str) -> str:
    """With colons or without, as 64 small digits. Raises ValueError."""
    digits = re.sub(r"[:\s]", "", text).lower()
    if re.fullmatch(f"[0-9a-f]{{{_DIGITS}}}", digits):
        return digits
    why = (
        "looks like SHA-1; give the SHA-256"
        if re.fullmatch(f"[0-9a-f]{{{_SHA1_DIGITS}}}", digits)
        else "is not one"
    )
    raise ValueError(
        f"a SHA-256 fingerprint has {_DIGITS} hexadecimal digits, with or without colons; this {why}"
    )


def of(certificate: bytes | None) -> str:
    """Of a certificate in DER; `none` for none."""
    return hashlib.sha256(certificate).hexdigest() if certificate else "none"
