"""TLS contexts for api-ssl: the certificate is checked unless the operator says otherwise, in so many words."""

from __future__ import annotations

import ssl
from functools import lru_cache
from pathlib import Path

from poller import errors


def context(ca_file: str, insecure: bool) -> ssl.SSLContext:
    """Made once and kept until the CA file changes: reading certificates costs milliseconds."""
    if insecure:
        return _unchecked()
    try:
        changed_ns = Path(ca_file).stat().st_mtime_ns if ca_file else 0
        return _checked(ca_file, changed_ns)
    except (OSError, ssl.SSLError) as error:
        raise errors.DeviceProtocolError(
            f'the CA file "{ca_file}" cannot be used', cause=str(error), hint="give ca_file a PEM file on the worker"
        ) from None


@lru_cache(maxsize=16)
def _checked(ca_file: str, changed_ns: int) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=ca_file or None)


@lru_cache(maxsize=1)
def _unchecked() -> ssl.SSLContext:
    """Anything goes, anonymous Diffie-Hellman too: what api-ssl offers without a certificate."""
    made = ssl.create_default_context()
    made.check_hostname = False
    made.verify_mode = ssl.CERT_NONE
    made.set_ciphers("ALL:+aNULL:@SECLEVEL=0")  # anonymous ones last
    return made
