"""TLS contexts for three kinds of trust: a CA, one pinned certificate, or any certificate."""

from __future__ import annotations

import hashlib
import ssl
from functools import lru_cache
from pathlib import Path

from poller.collectors import api


class _PinnedConnection(ssl.SSLObject):
    """Checks the certificate at the end of the handshake, before the first request is sent."""

    def do_handshake(self) -> None:
        super().do_handshake()
        actual = hashlib.sha256(self.getpeercert(True) or b"").hexdigest()
        expected = getattr(self.context, "fingerprint", "")
        if actual != expected:
            raise ssl.SSLCertVerificationError(
                ssl.SSL_ERROR_SSL, f"its fingerprint is {actual}, not {expected}"
            )


class _PinnedContext(ssl.SSLContext):
    sslobject_class = _PinnedConnection
    fingerprint = ""


def tls_context(ca_file: str, fingerprint: str, insecure: bool) -> ssl.SSLContext:
    """Return a TLS context, cached until the CA file changes: reading it takes milliseconds.

    Raises OptionsUnusable if the CA file cannot be used.
    """
    if fingerprint or insecure:
        return _without_ca(fingerprint)

    try:
        changed_ns = Path(ca_file).stat().st_mtime_ns if ca_file else 0
        return _with_ca(ca_file, changed_ns)
    except (OSError, ssl.SSLError) as error:
        raise api.OptionsUnusable(
            f'the CA file "{ca_file}" cannot be used', cause=str(error)
        ) from None


@lru_cache(maxsize=64)
def _with_ca(ca_file: str, changed_ns: int) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=ca_file or None)


@lru_cache(maxsize=1024)
def _without_ca(fingerprint: str) -> ssl.SSLContext:
    context: ssl.SSLContext
    if fingerprint:
        context = _PinnedContext(ssl.PROTOCOL_TLS_CLIENT)
        context.fingerprint = fingerprint
    else:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
