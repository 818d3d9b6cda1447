"""The HTTP client of sinks: one kept connection, one deadline per request, bounded answers.

A redirection is never followed: it would carry readings and the login to another host.
"""

from __future__ import annotations

import gzip
import ssl
import time
from collections.abc import Sequence

import h11

from poller import errors
from poller.collectors.http import urls
from poller.domain.failures import outcome
from poller.sinks.http_options import HttpStoreOptions, SecretFiles
from poller.sinks.store_connection import QUOTED, Answer, StoreConnection


class HttpStore:
    """The client of one store. One thread uses it; `close` may come from another one."""

    def __init__(self, options: HttpStoreOptions, store: str, auth_scheme: str = "Bearer") -> None:
        """Check the files of the options. Raises InvalidSetting. Connects to nothing."""
        self.url = urls.parse(options.url)
        self.name = store
        self._timeout_s = options.timeout_s
        self._secrets = SecretFiles(options, store, auth_scheme)
        self._secrets.headers()
        if self.url.scheme == "https":
            self._secrets.context()
        self._connection: StoreConnection | None = None

    def post(
        self,
        target: str,
        body: bytes,
        headers: Sequence[tuple[str, str]] = (),
        zipped: bool = False,
    ) -> Answer:
        """Send one POST to the path and query `target` and return the answer, whatever its status.

        Raises StoreUnavailable without an answer, InvalidSetting for a file that became unusable.
        """
        if zipped:
            body = gzip.compress(body, compresslevel=1)
            headers = [*headers, ("Content-Encoding", "gzip")]
        return self.request("POST", target, body, headers)

    def get(self, target: str) -> Answer:
        """Send one GET and return the answer. Raises as `post` does."""
        return self.request("GET", target, b"")

    def request(
        self, method: str, target: str, body: bytes, headers: Sequence[tuple[str, str]] = ()
    ) -> Answer:
        """Send one request. The store may have closed an idle connection: a new one is tried."""
        until_mono = time.monotonic() + self._timeout_s
        sent = [
            ("Host", self.url.authority),
            ("User-Agent", "poller"),
            ("Content-Length", str(len(body))),
            *self._secrets.headers(),
            *headers,
        ]
        request = h11.Request(method=method, target=target, headers=sent)
        try:
            answer = self._exchange(request, body, until_mono)
            return answer._replace(body=self._secrets.without_secrets(answer.body))
        except TimeoutError:
            raise self._away(f"no complete answer within {self._timeout_s:g} s") from None
        except ssl.SSLCertVerificationError as error:
            hint = "give ca_file the PEM file of the CA that signed the store's certificate"
            raise self._away(f"certificate: {error.verify_message}", hint) from None
        except ssl.SSLError as error:
            is_plain = error.reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST")
            hint = (
                "the store speaks no TLS at this port: try http:// in the url" if is_plain else ""
            )
            raise self._away(f"TLS: {error.reason or error}", hint) from None
        except (OSError, h11.RemoteProtocolError) as error:
            raise self._away(getattr(error, "strerror", None) or str(error)) from None

    def close(self) -> None:
        """End the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _exchange(self, request: h11.Request, body: bytes, until_mono: float) -> Answer:
        context = self._secrets.context() if self.url.scheme == "https" else None
        kept, self._connection = self._connection, None
        if kept is not None and kept.is_usable(context):
            try:
                return self._exchange_on(kept, request, body, until_mono)
            except (ConnectionError, h11.RemoteProtocolError):
                if kept.has_answered:
                    raise  # half an answer: the store may have taken the request
        elif kept is not None:
            kept.close()
        opened = StoreConnection(self.url, context, until_mono)
        return self._exchange_on(opened, request, body, until_mono)

    def _exchange_on(
        self, connection: StoreConnection, request: h11.Request, body: bytes, until_mono: float
    ) -> Answer:
        try:
            answer = connection.exchange(request, body, until_mono)
        except BaseException:
            connection.close()
            raise
        if connection.is_reusable:
            self._connection = connection
        else:
            connection.close()
        return answer

    def _away(self, cause: str, hint: str = "") -> errors.StoreUnavailable:
        return errors.StoreUnavailable(
            f"{self.name} does not answer at {self.url}",
            cause=outcome.clean(cause, QUOTED),
            hint=hint or "check the url of the sink, and whether the store runs",
        )

    def failure(self, answer: Answer, hint: str = "") -> errors.StoreError:
        """Return the error of an answer that is no success.

        StoreUnavailable: the same request may succeed later, also after a change of the settings.
        Any other StoreError: the store refuses what was sent.
        """
        status = answer.status
        message = f"{self.name} answers with status {status} at {self.url}"
        if status in _REFUSALS:
            return errors.StoreError(message, answer.text, hint)
        hint = hint or _HINTS.get(status, "") or (_REDIRECTED if 300 <= status < 400 else "")
        return errors.StoreUnavailable(
            message, answer.text, hint, retry_after_s=answer.retry_after_s
        )


#: Statuses of a store that looked at the body and does not take it.
_REFUSALS = frozenset({400, 406, 409, 413, 414, 415, 422})
_LOGIN = "check username and password_file, or bearer_token_file, of the sink"
_HINTS = {
    401: _LOGIN,
    403: _LOGIN + ", and the rights of that user in the store",
    404: "check the url of the sink: nothing takes readings at this path",
    405: "check the url of the sink: nothing takes readings at this path",
}
_REDIRECTED = "give the sink the url that the store redirects to; redirections are not followed"
