"""The certificate of the page, checked before the page listens."""

from __future__ import annotations

import ssl

from poller import errors


def check(certificate: str, key: str) -> None:
    """Refuse files that no TLS server can use. Raises InvalidSetting, naming the setting."""
    if not certificate and not key:
        return
    if not certificate or not key:
        missing, other = ("web_tls_cert", "web_tls_key") if key else ("web_tls_key", "web_tls_cert")
        raise errors.InvalidSetting(
            f"{missing}: it is not set, and {other} is", hint=f"set POLLER_{missing.upper()}"
        )
    for name, path in (("web_tls_cert", certificate), ("web_tls_key", key)):
        _refuse_unreadable(name, path)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, _no_password)
    except ssl.SSLError as error:
        reason = (error.reason or "unreadable").replace("_", " ").lower()
        raise errors.InvalidSetting(
            f"web_tls_cert: {certificate} and {key} are not a certificate and its private key",
            reason,
            "use PEM files: the certificate first, then its chain; the key without a password",
        ) from None
    except ValueError:
        raise errors.InvalidSetting(
            f"web_tls_key: {key} has a password", hint="openssl pkey -in KEY -out PLAIN"
        ) from None


def _refuse_unreadable(name: str, path: str) -> None:
    try:
        with open(path, "rb") as file:
            file.read(1)
    except OSError as error:
        raise errors.InvalidSetting(
            f"{name}: {path} cannot be read", error.strerror or "", f"set POLLER_{name.upper()}"
        ) from None


def _no_password() -> str:
    """Never ask for a password on a terminal."""
    raise ValueError("the key has a password")
