"""An HTTP client for the Proxmox API: one GET request returns the `data` of the response.

Every failure is a DeviceError of poller. No error text contains the secret of the token.
"""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import Iterator
from typing import Any

import httpcore

from poller.collectors import api
from poller.collectors.credentials import Token

#: A longer response body is refused. The responses of the largest clusters are far shorter.
MAX_BODY_BYTES = 32 * 1024 * 1024

_TRANSLATION: dict[type[Exception], type[api.DeviceError]] = {
    httpcore.TimeoutException: api.DeviceTimeout,
    httpcore.NetworkError: api.DeviceUnreachable,
    httpcore.ProtocolError: api.DeviceProtocolError,
    httpcore.UnsupportedProtocol: api.DeviceProtocolError,
    OSError: api.DeviceUnreachable,
}
_TRANSLATED = tuple(_TRANSLATION)


class TokenRefused(api.DeviceAuthFailed):
    """The server does not accept the token: every further request would fail too."""


class BadResponse(api.DeviceProtocolError):
    """The server sent an error or malformed data: a request for another path may still succeed."""


class _Network(httpcore.AnyIOBackend):
    """A network backend that can close its last connection.

    The connection pool does not know a connection whose TLS handshake was cancelled.
    """

    _stream: httpcore.AsyncNetworkStream | None = None

    async def connect_tcp(self, *args: Any, **kwargs: Any) -> httpcore.AsyncNetworkStream:
        await self.close()
        self._stream = await super().connect_tcp(*args, **kwargs)
        return self._stream

    async def close(self) -> None:
        if self._stream is not None:
            await self._stream.aclose()
            self._stream = None


class Client:
    """One connection to a server, kept open between polls. Every request carries the token."""

    def __init__(
        self, address: str, port: int, scheme: str, token: Token, context: ssl.SSLContext
    ) -> None:
        self._name = f"{address} port {port}"
        host = f"[{address}]" if ":" in address else address
        self._url = f"https://{host}:{port}/api2/json"

        user, secret = _split_token(token)
        separator = "=" if scheme == "PVEAPIToken" else ":"
        self._headers = [
            ("Authorization", f"{scheme}={user}{separator}{secret}"),
            ("Accept-Encoding", "identity"),
        ]
        self._secret = re.compile(re.escape(secret), re.IGNORECASE)

        self._network = _Network()
        self._pool = httpcore.AsyncConnectionPool(
            context, max_connections=1, network_backend=self._network
        )

    async def get(self, path: str) -> Any:
        """Return the `data` of the response to a GET request. Raises a DeviceError."""
        url = self._url + path
        try:
            async with self._pool.stream("GET", url, headers=self._headers) as response:
                body = await self._body(response)
        except _TRANSLATED as error:
            raise self._translate(error) from None

        self._check_status(response, path)
        return self._data(body, path)

    async def close(self) -> None:
        await self._pool.aclose()
        await self._network.close()

    async def _body(self, response: httpcore.Response) -> bytes:
        body = bytearray()
        async for chunk in response.aiter_stream():
            body += chunk
            if len(body) > MAX_BODY_BYTES:
                raise api.DeviceProtocolError(
                    f"{self._name} sent a response of more than {MAX_BODY_BYTES} bytes"
                )
        return bytes(body)

    def _check_status(self, response: httpcore.Response, path: str) -> None:
        status = response.status
        if status == 200:
            return

        if status == 401:
            raise TokenRefused(f"{self._name} refused the token", cause="status 401")
        if status == 403:
            raise api.DeviceAuthFailed(
                f"the token may not read {path}", hint="give it the role PVEAuditor, or Audit"
            )
        if status in (404, 501):
            raise api.DeviceUnsupported(
                f"{self._name} does not have {path}", cause=f"status {status}"
            )

        # Proxmox explains an error in the reason phrase of the status line.
        reason = response.extensions.get("reason_phrase", b"").decode(errors="replace")
        cause = f"{path}: status {status} {self._mask_secret(reason)}".strip()
        raise BadResponse(f"{self._name} sent an error", cause=cause)

    def _data(self, body: bytes, path: str) -> Any:
        try:
            text = body.decode()
            data = json.loads(text)["data"]
            if "\\u" in text:
                # JSON allows half of a surrogate pair, but UTF-8 cannot encode it.
                json.dumps(data, ensure_ascii=False).encode()
        except (ValueError, LookupError, TypeError, RecursionError):
            raise BadResponse(f"{self._name}: the response to {path} is malformed") from None
        return data

    def _mask_secret(self, text: str) -> str:
        """Replace the secret in a text of the server, which may quote the Authorization header.

        The platform masks only the token as the operator typed it.
        """
        return self._secret.sub("***", text)

    def _translate(self, error: Exception) -> api.DeviceError:
        """Return the DeviceError for an exception of httpcore, whose text may quote the server."""
        text = self._mask_secret(str(error)) or type(error).__name__
        if any(isinstance(cause, ssl.SSLError) for cause in _chain(error)):
            return api.DeviceProtocolError(
                f"{self._name}: its certificate is not trusted",
                cause=text,
                hint="set ca_file or fingerprint",
            )

        bases = type(error).__mro__
        translated = next(_TRANSLATION[base] for base in bases if base in _TRANSLATION)
        return translated(f"{self._name} cannot be read", cause=text)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and its causes: httpcore wraps anyio, and anyio wraps ssl."""
    current: BaseException | None = error
    while current is not None:
        yield current
        current = current.__cause__ or current.__context__


def _split_token(token: Token) -> tuple[str, str]:
    """Split a token into `user@realm!name` and its secret.

    Proxmox VE writes `=` between the two, and Proxmox Backup Server `:`. Both are accepted.
    """
    user, separator, secret = token.token.get_secret_value().strip().partition("=")
    if not separator:
        user, separator, secret = user.partition(":")

    well_formed = separator and "@" in user and "!" in user and secret
    if not well_formed or not (user + secret).isascii():
        raise api.DeviceAuthFailed("the token is not of the form user@realm!name=secret")
    return user, secret
