"""Options of a store that is reached by HTTP: URL, login, TLS, headers. Secrets come from files."""

from __future__ import annotations

import base64
import re
import ssl
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from poller.collectors.http import urls
from poller.sinks.tls_options import OptionalFile, TlsOptions, absolute, read_secret

_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_MASK = b"********"
#: A shorter secret is not looked for in answers: it would be found everywhere.
_SHORTEST = 6
#: Headers that carry a secret, and headers that the client sets itself.
_SECRET_HEADERS = frozenset({"authorization", "proxy-authorization", "cookie"})
_OWN_HEADERS = frozenset(
    {
        "host",
        "content-length",
        "transfer-encoding",
        "connection",
        "content-encoding",
        "content-type",
        "x-prometheus-remote-write-version",
    }
)


def store_url(text: str) -> str:
    """Return the URL of a store. Raises ValueError for one with a login or a wrong form."""
    if "@" in text.partition("://")[2].partition("/")[0]:
        raise ValueError("no user and password in a URL: give username and password_file")
    urls.parse(text)
    return text.rstrip("/")


class HttpStoreOptions(TlsOptions):
    """Options that all stores behind HTTP share."""

    url: Annotated[str, AfterValidator(store_url)] = Field(
        description="Address of the store: http://host:port or https://host/path."
    )
    username: str = Field("", description="User of HTTP basic authentication.")
    password_file: OptionalFile = Field(None, description="File with the password of `username`.")
    bearer_token_file: OptionalFile = Field(
        None, description="File with a token; read again when it changes."
    )
    headers: dict[str, str] = Field(
        default_factory=dict, description="Headers of every request, such as a tenant."
    )
    header_files: dict[str, Path] = Field(
        default_factory=dict, description="Headers whose value is a secret: name to file."
    )
    timeout_s: float = Field(
        5.0, ge=0.1, le=60, description="Time for one request, from connection to answer."
    )

    @model_validator(mode="after")
    def _check_login(self) -> Self:
        if bool(self.username) != (self.password_file is not None):
            raise ValueError("username and password_file belong together")
        if self.username and self.bearer_token_file:
            raise ValueError("give username and password_file, or bearer_token_file, not both")
        if ":" in self.username:
            raise ValueError("username has no colon")
        names = [name.lower() for name in (*self.headers, *self.header_files)]
        if "authorization" in names and (self.username or self.bearer_token_file):
            raise ValueError("a header Authorization and another login contradict each other")
        if len(set(names)) < len(names):
            raise ValueError("a header is given twice")
        return self

    @model_validator(mode="after")
    def _check_tls(self) -> Self:
        is_plain = self.url.startswith("http:")
        if is_plain and (self.ca_file or self.cert_file or self.insecure):
            raise ValueError("ca_file, cert_file and insecure need a url that begins with https://")
        return self

    @model_validator(mode="after")
    def _check_headers(self) -> Self:
        for name in (*self.headers, *self.header_files):
            if not _HEADER_NAME.fullmatch(name) or name.lower() in _OWN_HEADERS:
                raise ValueError(f'"{name}" is no header that can be set')
        for name, value in self.headers.items():
            if name.lower() in _SECRET_HEADERS:
                raise ValueError(f'header "{name}" is a secret: give it in header_files')
            if not value.isprintable() or not value.isascii():
                raise ValueError(f'header "{name}" has characters that cannot be sent')
        for path in self.header_files.values():
            absolute(path)
        return self


class SecretFiles:
    """The headers and the TLS context of the options, made again when a file changes.

    Every method raises InvalidSetting for a file that cannot be used; no text has its content.
    """

    def __init__(self, options: HttpStoreOptions, store: str, auth_scheme: str = "Bearer") -> None:
        self._options = options
        self._store = store
        self._auth_scheme = auth_scheme
        self._headers: list[tuple[str, str]] = []
        self._sent: list[str] = []  # secrets in the headers
        self._headers_of: object = None
        self._context: ssl.SSLContext | None = None
        self._context_of: object = None

    def headers(self) -> list[tuple[str, str]]:
        """Return the headers of the options, with login and token."""
        options = self._options
        paths = [options.password_file, options.bearer_token_file, *options.header_files.values()]
        stamps = self._stamps(paths)
        if stamps != self._headers_of:
            self._headers = self._make_headers()
            self._headers_of = stamps
        return self._headers

    def without_secrets(self, body: bytes) -> bytes:
        """Return the body of an answer without the secrets of the request, which an answer may
        repeat. Answers are shown to people.
        """
        for secret in self._sent:
            body = body.replace(secret.encode(), _MASK)
        return body

    def context(self) -> ssl.SSLContext:
        """Return the TLS context: the same object as long as no file of it changed."""
        options = self._options
        stamps = self._stamps([options.ca_file, options.cert_file, options.key_file])
        if self._context is None or stamps != self._context_of:
            self._context = options.context(self._store)
            self._context_of = stamps
        return self._context

    def _make_headers(self) -> list[tuple[str, str]]:
        options = self._options
        headers = list(options.headers.items())
        sent: list[str] = []
        if options.password_file:
            password = self._secret("password_file", options.password_file)
            encoded = base64.b64encode(f"{options.username}:{password}".encode()).decode()
            sent += [encoded, password]
            headers.append(("Authorization", f"Basic {encoded}"))
        if options.bearer_token_file:
            token = self._secret("bearer_token_file", options.bearer_token_file)
            sent.append(token)
            headers.append(("Authorization", f"{self._auth_scheme} {token}"))
        for name, path in options.header_files.items():
            value = self._secret(f"header_files.{name}", path)
            sent.append(value)
            headers.append((name, value))
        self._sent = [secret for secret in sent if len(secret) >= _SHORTEST]
        return headers

    def _secret(self, field: str, path: Path) -> str:
        return read_secret(self._store, field, path)

    def _stamps(self, paths: list[Path | None]) -> tuple[object, ...]:
        stamps: list[tuple[int, int, int] | None] = []
        for path in paths:
            if path is None:
                continue
            try:
                status = path.stat()
            except OSError:
                stamps.append(None)  # the reader of the file says which one, and why
            else:
                stamps.append((status.st_mtime_ns, status.st_size, status.st_ino))
        return tuple(stamps)
