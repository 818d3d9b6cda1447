"""The HTTP API of Proxmox: one GET, its `data`, and every way in which that can fail as one of poller's errors."""

from __future__ import annotations

import json
import logging
import ssl
from collections.abc import Iterator
from typing import Any

import httpx

from poller.collectors import api
from poller.collectors.credentials import Token

#: More than any cluster says of itself.
MOST_BYTES = 32 * 1024 * 1024

logging.getLogger("httpx").setLevel(logging.WARNING)  # it would write a line for each request


class TokenRefused(api.DeviceAuthFailed):
    """It does not know our token: no request will be answered."""


class Client:
    """A connection that is kept between polls; the token is sent with every request."""

    def __init__(self, address: str, port: int, scheme: str, token: Token, context: ssl.SSLContext) -> None:
        self._name = f"{address} port {port}"
        host = f"[{address}]" if ":" in address else address
        self._http = httpx.AsyncClient(
            base_url=f"https://{host}:{port}/api2/json",
            headers={"Authorization": _authorization(scheme, token), "Accept-Encoding": "identity"},
            verify=context,
            timeout=None,  # noqa: S113  the poll has one deadline for all of it
            trust_env=False,  # a proxy of the environment would see the token
            follow_redirects=False,
            limits=httpx.Limits(max_connections=1),
        )

    async def get(self, path: str) -> Any:
        """What the server says under `data`. Raises a DeviceError."""
        try:
            async with self._http.stream("GET", path) as answer:
                body = await self._body(answer)
        except httpx.HTTPError as error:
            raise self._translated(error) from None
        except httpx.InvalidURL:
            raise api.OptionsUnusable(f"{self._name} is no address of a server") from None
        self._check(answer, path)
        return self._data(body, path)

    async def close(self) -> None:
        await self._http.aclose()

    async def _body(self, answer: httpx.Response) -> bytes:
        body = bytearray()
        async for piece in answer.aiter_raw():
            body += piece
            if len(body) > MOST_BYTES:
                raise api.DeviceProtocolError(f"{self._name} answered with more than {MOST_BYTES} bytes")
        return bytes(body)

    def _check(self, answer: httpx.Response, path: str) -> None:
        status = answer.status_code
        if status == 401:
            raise TokenRefused(f"{self._name} refused our token", cause="status 401")
        if status == 403:
            raise api.DeviceAuthFailed(f"our token may not read {path}", hint="give it the role PVEAuditor, or Audit")
        if status in (404, 501):
            raise api.DeviceUnsupported(f"{self._name} does not have {path}", cause=f"status {status}")
        if status != 200:  # the reason is Proxmox' own sentence
            cause = f"{path}: status {status} {answer.reason_phrase}".strip()
            raise api.DeviceProtocolError(f"{self._name} cannot answer", cause=cause)

    def _data(self, body: bytes, path: str) -> Any:
        try:
            return json.loads(body)["data"]
        except (ValueError, LookupError, TypeError, RecursionError):
            raise api.DeviceProtocolError(f"{self._name}: the answer to {path} is not Proxmox' JSON") from None

    def _translated(self, error: httpx.HTTPError) -> api.DeviceError:
        """The request, which holds the token, is in the exception; only its text is passed on."""
        text = str(error) or type(error).__name__
        if isinstance(error, httpx.TimeoutException):
            return api.DeviceTimeout(f"{self._name} did not answer in time", cause=text)
        if any(isinstance(each, ssl.SSLError) for each in _beneath(error)):
            hint = "set ca_file or fingerprint"
            return api.DeviceProtocolError(f"{self._name}: its certificate is not trusted", text, hint)
        if isinstance(error, httpx.ProtocolError | httpx.DecodingError):
            return api.DeviceProtocolError(f"{self._name} does not speak HTTP", cause=text)
        return api.DeviceUnreachable(f"{self._name} cannot be reached", cause=text)


def _beneath(error: BaseException) -> Iterator[BaseException]:
    """httpx wraps what httpcore wraps what anyio raises."""
    below: BaseException | None = error
    while below is not None:
        yield below
        below = below.__cause__ or below.__context__


def _authorization(scheme: str, token: Token) -> str:
    """`user@realm!name=secret`; the Backup Server wants a colon before the secret."""
    name, equals, secret = token.token.get_secret_value().strip().partition("=")
    if not equals:
        name, equals, secret = name.partition(":")
    if not (equals and "@" in name and "!" in name and secret) or not (name + secret).isascii():
        raise api.DeviceAuthFailed("the token is not of the form user@realm!name=secret")
    between = "=" if scheme == "PVEAPIToken" else ":"
    return f"{scheme}={name}{between}{secret}"
