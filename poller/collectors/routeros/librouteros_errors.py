"""Exceptions of librouteros, and of the socket beneath it, as errors of ours. The only place that knows them all."""

from __future__ import annotations

import socket
import ssl

from librouteros import exceptions

from poller import errors
from poller.collectors import file_limit

_TRANSLATION: dict[type[BaseException], type[errors.DeviceError]] = {
    exceptions.ConnectionClosed: errors.DeviceUnreachable,
    exceptions.FatalError: errors.DeviceProtocolError,
    exceptions.TrapError: errors.DeviceProtocolError,
    exceptions.MultiTrapError: errors.DeviceProtocolError,
    exceptions.ProtocolError: errors.DeviceProtocolError,
    exceptions.LibRouterosError: errors.DeviceProtocolError,
    ssl.SSLError: errors.DeviceProtocolError,
    socket.gaierror: errors.DeviceUnreachable,
    TimeoutError: errors.DeviceTimeout,
    OSError: errors.DeviceUnreachable,
    # What the library lets slip when a router's answer is not what it expects.
    ValueError: errors.DeviceProtocolError,
    TypeError: errors.DeviceProtocolError,
    LookupError: errors.DeviceProtocolError,
}
EXPECTED = tuple(_TRANSLATION)
TRAPS = (exceptions.TrapError, exceptions.MultiTrapError)

_NO_SUCH_COMMAND, _NO_SUCH_ITEM = "no such command", "no such item"
_MISSING = "0"  # category of a trap: a command or an item is not there
_NOT_ALLOWED = ("not enough permissions", "(9)")  # newer versions, all of them
_SLOW_RADIUS = "(13)"
_HANDSHAKE_HINT = "a router without a certificate needs insecure=true, and the plain API tls=false"
_LOGIN_HINTS = {
    False: "if that is the port of api-ssl, set tls=true; else see in /ip/service whom the router listens to",
    True: "see in /ip/service whom the router listens to",
}
_HUNG_UP = "it hung up"
TRUST_HINT = "set ca_file, fingerprint or server_name, or insecure=true"


class CommandRefused(errors.DeviceProtocolError):
    """The router said no to one command, for a reason of its own. The session goes on."""


def translate(error: BaseException, router: str, doing: str) -> errors.DeviceError:
    """One of EXPECTED as one of ours."""
    if (short := file_limit.no_file_left(error, router)) is not None:
        return short
    if isinstance(error, TRAPS):
        return _of_trap(error)(f"{router} refused {doing}", cause=str(error))
    kind = next(_TRANSLATION[base] for base in type(error).__mro__ if base in _TRANSLATION)
    text, hint = (
        str(error) or (_HUNG_UP if isinstance(error, ConnectionError) else type(error).__name__),
        "",
    )
    if isinstance(error, ssl.SSLCertVerificationError):
        text, hint = (
            f"certificate verify failed: {getattr(error, 'verify_message', text)}",
            TRUST_HINT,
        )
    return kind(f"{router} failed at {doing}", cause=text, hint=hint)


def of_connecting(error: BaseException, router: str, over_tls: bool) -> errors.DeviceError:
    """The same, before anything was said. Who hangs up in a handshake has no certificate, or speaks no TLS."""
    shaking = over_tls and isinstance(
        error, ssl.SSLError | ConnectionResetError | ConnectionAbortedError
    )
    made = translate(error, router, "the TLS handshake" if shaking else "connecting")
    hint = _HANDSHAKE_HINT if shaking and not made.hint else made.hint
    return type(made)(made.message, made.cause, hint)


def of_login(error: BaseException, router: str, over_tls: bool) -> errors.DeviceError:
    """The same, of a login: a trap there means user name or password, unless whoever knows them was too slow.

    Who hangs up instead does not want us, or speaks TLS.
    """
    if isinstance(error, TRAPS) and _SLOW_RADIUS not in str(error):
        return errors.DeviceAuthFailed(f"{router} refused the login", cause=str(error))
    made = translate(error, router, "login")
    hint = (
        _LOGIN_HINTS[over_tls]
        if isinstance(error, exceptions.ConnectionClosed | ConnectionError)
        else made.hint
    )
    return type(made)(made.message, made.cause, hint)


def _of_trap(error: BaseException) -> type[errors.DeviceError]:
    first = error.traps[0] if isinstance(error, exceptions.MultiTrapError) else error
    text, category = str(first), getattr(first, "category", None)
    if any(sign in text for sign in _NOT_ALLOWED):
        return errors.DeviceAuthFailed
    if _NO_SUCH_COMMAND in text or (category == _MISSING and _NO_SUCH_ITEM not in text):
        return errors.DeviceUnsupported
    return CommandRefused
