"""The HTTP API of Proxmox: one GET, its `data`, and every way in which that can fail as one of poller's errors."""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import Iterator
from typing import Any

import httpcore

from poller.collectors import api
from poller.collectors.credentials import Token

#: More than any cluster says of itself.
MOST_BYTES = 32 * 1024 * 1024
_TRANSLATION: dict[type[Exception], type[api.DeviceError]] = {
    httpcore.TimeoutException: api.DeviceTimeout,
    httpcore.NetworkError: api.DeviceUnreachable,
    httpcore.ProtocolError: api.DeviceProtocolError,
    httpcore.UnsupportedProtocol: api.DeviceProtocolError,
    OSError: api.DeviceUnreachable,
}
_EXPECTED = tuple(_TRANSLATION)


class TokenRefused(api.DeviceAuthFailed):
    """It does not know our token: no request will be answered."""


class BadAnswer(api.DeviceProtocolError):
    """It answered, but not with what was asked for: the next request may fare better."""


class _Network(httpcore.AnyIOBackend):
    """Remembers the connection it made: one that is cancelled during its handshake is known to nobody else."""

    made: httpcore.AsyncNetworkStream | None = None

    async def connect_tcp(self, *args: Any, **kwargs: Any) -> httpcore.AsyncNetworkStream:
        await self.close()
        self.made = await super().connect_tcp(*args, **kwargs)
        return self.made

    async def close(self) -> None:
        if self.made is not None:
            await self.made.aclose()
            self.made = None


class Client:
    """A connection that is kept between polls; the token is sent with every request."""

    def __init__(
        self, address: str, port: int, scheme: str, token: Token, context: ssl.SSLContext
    ) -> None:
        self._name = f"{address} port {port}"
        host = f"[{address}]" if ":" in address else address
        self._url = f"https://{host}:{port}/api2/json"
        name, secret = _parts(token)
        between = "=" if scheme == "PVEAPIToken" else ":"
        self._headers = [
            ("Authorization", f"{scheme}={name}{between}{secret}"),
            ("Accept-Encoding", "identity"),
        ]
        self._secret = re.compile(re.escape(secret), re.IGNORECASE)
        self._network = _Network()
        self._pool = httpcore.AsyncConnectionPool(
            context, max_connections=1, network_backend=self._network
        )

    async def get(self, path: str) -> Any:
        """What the server says under `data`. Raises a DeviceError."""
        try:
            async with self._pool.stream("GET", self._url + path, headers=self._headers) as answer:
                body = await self._body(answer)
        except _EXPECTED as error:
            raise self._translated(error) from None
        self._check(answer, path)
        return self._data(body, path)

    async def close(self) -> None:
        await self._pool.aclose()
        await self._network.close()

    async def _body(self, answer: httpcore.Response) -> bytes:
        body = bytearray()
        async for piece in answer.aiter_stream():
            body += piece
            if len(body) > MOST_BYTES:
                raise api.DeviceProtocolError(
                    f"{self._name} answered with more than {MOST_BYTES} bytes"
                )
        return bytes(body)

    def _check(self, answer: httpcore.Response, path: str) -> None:
        status = answer.status
        if status == 401:
            raise TokenRefused(f"{self._name} refused our token", cause="status 401")
        if status == 403:
            raise api.DeviceAuthFailed(
                f"our token may not read {path}", hint="give it the role PVEAuditor, or Audit"
            )
        if status in (404, 501):
            raise api.DeviceUnsupported(
                f"{self._name} does not have {path}", cause=f"status {status}"
            )
        if status != 200:  # the reason is Proxmox' own sentence
            reason = answer.extensions.get("reason_phrase", b"").decode(errors="replace")
            cause = f"{path}: status {status} {self._masked(reason)}".strip()
            raise BadAnswer(f"{self._name} cannot answer", cause=cause)

    def _data(self, body: bytes, path: str) -> Any:
        try:
            text = body.decode()
            data = json.loads(text)["data"]
            if "\\u" in text:  # half of a pair is good JSON, but no text that anybody could store
                json.dumps(data, ensure_ascii=False).encode()
        except (ValueError, LookupError, TypeError, RecursionError):
            raise BadAnswer(f"{self._name}: the answer to {path} is not Proxmox' JSON") from None
        return data

    def _masked(self, said: str) -> str:
        """A server may repeat what it was sent; poller knows the token as it was typed, not as it is sent."""
        return self._secret.sub("***", said)

    def _translated(self, error: Exception) -> api.DeviceError:
        """Some of their texts quote the server."""
        text = self._masked(str(error)) or type(error).__name__
        if any(isinstance(each, ssl.SSLError) for each in _beneath(error)):
            hint = "set ca_file or fingerprint"
            return api.DeviceProtocolError(
                f"{self._name}: its certificate is not trusted", text, hint
            )
        kind = next(_TRANSLATION[base] for base in type(error).__mro__ if base in _TRANSLATION)
        return kind(f"{self._name} cannot be read", cause=text)


def _beneath(error: BaseException) -> Iterator[BaseException]:
    """httpcore wraps what anyio wraps what ssl raises."""
    below: BaseException | None = error
    while below is not None:
        yield below
        below = below.__cause__ or below.__context__


def _parts(token: Token) -> tuple[str, str]:
    """Of `user@realm!name=secret`, or with the colon that the Backup Server wants: what stands before and behind it."""
    name, equals, secret = token.token.get_secret_value().strip().partition("=")
    if not equals:
        name, equals, secret = name.partition(":")
    if not (equals and "@" in name and "!" in name and secret) or not (name + secret).isascii():
        raise api.DeviceAuthFailed("the token is not of the form user@realm!name=secret")
    return name, secret
