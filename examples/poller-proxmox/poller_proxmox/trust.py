"""Which certificate will do? One that a CA signed, exactly one, or any: three TLS contexts."""

from __future__ import annotations

import hashlib
import ssl
from functools import lru_cache
from pathlib import Path

from poller.collectors import api


class _PinnedObject(ssl.SSLObject):
    """Looks at the certificate as soon as the handshake is over: nothing has been sent by then, no token either."""

    def do_handshake(self) -> None:
        super().do_handshake()
        found = hashlib.sha256(self.getpeercert(True) or b"").hexdigest()
        wanted = getattr(self.context, "fingerprint", "")
        if found != wanted:
            raise ssl.SSLCertVerificationError(
                ssl.SSL_ERROR_SSL, f"its fingerprint is {found}, not {wanted}"
            )


class _Pinned(ssl.SSLContext):
    sslobject_class = _PinnedObject
    fingerprint = ""


def context(ca_file: str, fingerprint: str, insecure: bool) -> ssl.SSLContext:
    """Kept until the CA file changes: reading certificates costs milliseconds. Raises OptionsUnusable."""
    if fingerprint or insecure:
        return _without_ca(fingerprint)
    try:
        return _with_ca(ca_file, Path(ca_file).stat().st_mtime_ns if ca_file else 0)
    except (OSError, ssl.SSLError) as error:
        raise api.OptionsUnusable(
            f'the CA file "{ca_file}" cannot be used', cause=str(error)
        ) from None


@lru_cache(maxsize=64)
def _with_ca(ca_file: str, changed_ns: int) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=ca_file or None)


@lru_cache(maxsize=1024)
def _without_ca(fingerprint: str) -> ssl.SSLContext:
    made = (
        _Pinned(ssl.PROTOCOL_TLS_CLIENT) if fingerprint else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    )
    made.check_hostname = False
    made.verify_mode = ssl.CERT_NONE
    if isinstance(made, _Pinned):
        made.fingerprint = fingerprint
    return made
