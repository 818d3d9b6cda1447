"""Translates the exceptions of librouteros and its sockets into errors of `poller.errors`."""

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
    # Raised by the library for replies it does not expect.
    ValueError: errors.DeviceProtocolError,
    TypeError: errors.DeviceProtocolError,
    LookupError: errors.DeviceProtocolError,
}
EXPECTED = tuple(_TRANSLATION)
TRAPS = (exceptions.TrapError, exceptions.MultiTrapError)

_NO_SUCH_COMMAND = "no such command"
_NO_SUCH_ITEM = "no such item"
_MISSING_CATEGORY = "0"  # category of a trap: a command or an item does not exist
_NOT_ALLOWED = ("not enough permissions", "(9)")  # text of newer versions, number of all
_SLOW_RADIUS = "(13)"
#: The commands give a router a certificate of its own.
MAKE_CERTIFICATE = (
    "/certificate/add name=api common-name=router; /certificate/sign api; "
    "/ip/service/set api-ssl certificate=api"
)
_NO_TLS = "the router has no certificate, or the port is not that of api-ssl"
_HANDSHAKE_HINT = (
    f"a router without a certificate cannot be checked: make one on it ({MAKE_CERTIFICATE}); "
    "the plain API needs tls=false, which sends the password in clear"
)
REFUSED_HINTS = {
    False: "enable the service on the router: /ip/service/enable api",
    True: (
        "enable the service on the router (/ip/service/enable api-ssl); "
        "the plain API needs tls=false, which sends the password in clear"
    ),
}
_LOGIN_HINTS = {
    False: (
        "if that is the port of api-ssl, leave tls=false out; "
        "else see in /ip/service which addresses the service accepts"
    ),
    True: "see in /ip/service which addresses the service accepts",
}
_HUNG_UP = "it hung up"
TRUST_HINT = "set ca_file, fingerprint or server_name, or insecure=true"
_HANDSHAKE_FAILURES = (ssl.SSLError, ConnectionResetError, ConnectionAbortedError)


class CommandRefused(errors.DeviceProtocolError):
    """The router refused one command for a reason of its own. The session stays usable."""


def translate(error: BaseException, router: str, action: str) -> errors.DeviceError:
    """Translate one of EXPECTED."""
    busy = file_limit.no_file_left(error, router)
    if busy is not None:
        return busy
    if isinstance(error, TRAPS):
        return _trap_class(error)(f"{router} refused {action}", cause=str(error))

    kind = next(_TRANSLATION[base] for base in type(error).__mro__ if base in _TRANSLATION)
    text = f"{router} failed at {action}"
    cause = str(error)
    if isinstance(error, ssl.SSLCertVerificationError):
        reason = getattr(error, "verify_message", cause)
        return kind(text, cause=f"certificate verify failed: {reason}", hint=TRUST_HINT)
    if not cause:
        cause = _HUNG_UP if isinstance(error, ConnectionError) else type(error).__name__
    return kind(text, cause=cause)


def of_connecting(error: BaseException, router: str, over_tls: bool) -> errors.DeviceError:
    """Translate an error of the connection setup.

    A router that hangs up in the handshake has no certificate, or speaks no TLS. RouterOS without
    a certificate offers anonymous Diffie-Hellman only, which a client that checks must refuse.
    """
    if not over_tls or not isinstance(error, _HANDSHAKE_FAILURES):
        return translate(error, router, "connecting")
    made = translate(error, router, "the TLS handshake")
    if isinstance(error, ssl.SSLCertVerificationError):
        return made
    return type(made)(made.message, f"{made.cause}: {_NO_TLS}", _HANDSHAKE_HINT)


def of_login(error: BaseException, router: str, over_tls: bool) -> errors.DeviceError:
    """Translate an error of the login. A trap means a wrong user name or password.

    The exception is a slow RADIUS server. A router that hangs up refuses our address, or speaks
    TLS.
    """
    if isinstance(error, TRAPS) and _SLOW_RADIUS not in str(error):
        return errors.DeviceAuthFailed(f"{router} refused the login", cause=str(error))
    made = translate(error, router, "login")
    if isinstance(error, exceptions.ConnectionClosed | ConnectionError):
        return type(made)(made.message, made.cause, _LOGIN_HINTS[over_tls])
    return made


def _trap_class(error: BaseException) -> type[errors.DeviceError]:
    trap = error.traps[0] if isinstance(error, exceptions.MultiTrapError) else error
    text = str(trap)
    if any(sign in text for sign in _NOT_ALLOWED):
        return errors.DeviceAuthFailed
    is_missing = getattr(trap, "category", None) == _MISSING_CATEGORY
    if _NO_SUCH_COMMAND in text or (is_missing and _NO_SUCH_ITEM not in text):
        return errors.DeviceUnsupported
    return CommandRefused
