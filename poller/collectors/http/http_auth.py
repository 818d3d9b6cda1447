"""Who are we? The header that says so, made of a credential, and only where the options ask for it."""

from __future__ import annotations

import base64

from poller.collectors import api
from poller.collectors.credentials import Login, Token
from poller.collectors.http.options import HttpOptions

_KINDS: dict[str, type[Login] | type[Token]] = {"basic": Login, "bearer": Token, "header": Token}


def header(options: HttpOptions, credential: api.Credential | None) -> tuple[str, str] | None:
    """None where nobody asked for it: a device's own password must not go to a web server by accident.

    Raises DeviceAuthFailed when the credential is of another kind, or cannot be sent.
    """
    if options.auth == "none":
        return None
    wanted = _KINDS[options.auth]
    if not isinstance(credential, wanted):
        raise api.DeviceAuthFailed(
            f"auth={options.auth} needs a credential of kind {wanted.kind}; neither the target nor its device has one"
        )
    if isinstance(credential, Login):
        return "Authorization", f"Basic {_basic(credential)}"
    token = _sendable(credential)
    return (
        (options.header, token)
        if options.auth == "header"
        else ("Authorization", f"Bearer {token}")
    )


def _basic(login: Login) -> str:
    if ":" in login.username:
        raise api.DeviceAuthFailed("a user name with a colon cannot be sent (auth=basic)")
    return base64.b64encode(
        f"{login.username}:{login.password.get_secret_value()}".encode()
    ).decode()


def _sendable(credential: Token) -> str:
    token = credential.token.get_secret_value()
    if not token or not token.isascii() or not token.isprintable() or token != token.strip():
        raise api.DeviceAuthFailed("the token has characters that no header can carry")
    return token
