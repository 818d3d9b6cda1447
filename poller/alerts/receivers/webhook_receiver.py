"""The receiver `webhook`: a notice as JSON, signed if a secret is given."""

from __future__ import annotations

import hashlib
import hmac
import time
from typing import ClassVar, Self

from pydantic import Field, model_validator

from poller import errors
from poller.alerts.receivers import api, notice_json
from poller.alerts.receivers.api import Place
from poller.alerts.receivers.store_wording import masked, worded
from poller.collectors.http import urls
from poller.domain.alerts.telling.notice import Notice
from poller.domain.inventory.api_version import Stated
from poller.sinks.http_options import HttpStoreOptions
from poller.sinks.http_store import HttpStore
from poller.sinks.tls_options import OptionalFile, read_secret

#: Stands in `url` while the URL is in a file.
_URL_IN_FILE = "https://url-in-file.invalid"


class WebhookOptions(HttpStoreOptions):
    """Options of a webhook. A URL that is itself a secret comes from a file."""

    url: str = Field("", description="URL that takes the notices.")
    url_file: OptionalFile = Field(None, description="File with the URL, if the URL is a secret.")
    secret_file: OptionalFile = Field(
        None, description="File with the secret of the signature. Not set: no signature."
    )
    method: str = Field("POST", pattern="^(POST|PUT)$", description="POST or PUT.")

    @model_validator(mode="before")
    @classmethod
    def _check_url(cls, values: dict[str, object]) -> dict[str, object]:
        if bool(values.get("url")) == bool(values.get("url_file")):
            raise ValueError("give url, or url_file, and not both")
        if values.get("url_file"):
            return {**values, "url": _URL_IN_FILE}
        return values

    @model_validator(mode="after")
    def _check_form_of_url(self) -> Self:
        if "@" in self.url.partition("://")[2].partition("/")[0]:
            raise ValueError("no user and password in a URL: give username and password_file")
        urls.parse(self.url)
        return self


class WebhookReceiver:
    """One webhook. `X-Poller-Key` is the same in every attempt."""

    name: ClassVar[str] = "webhook"
    api_version: ClassVar[Stated] = 1
    Options: ClassVar[type[WebhookOptions]] = WebhookOptions

    def __init__(self, place: Place, options: WebhookOptions) -> None:
        self._place = place
        self._options = options
        self._hidden: tuple[str, ...] = ()
        with worded():
            options = self._with_url(options)
            self._secret()
        with worded(self._hidden):
            self._store = HttpStore(options, place.name)
        self._target = self._store.url.target

    def send(self, notice: Notice, key: str) -> str:
        """Send one request. Raises StoreUnavailable, StoreError, InvalidSetting for a file."""
        body = notice_json.encode(notice.cut(api.MOST_ALERTS), key)
        with worded(self._hidden):
            headers = self._headers(body, key)
            answer = self._store.request(self._options.method, self._target, body, headers)
            if not 200 <= answer.status < 300:
                raise self._store.failure(answer)
        return masked(f"{answer.status} {answer.text}".strip(), self._hidden)

    def close(self) -> None:
        """End the connection."""
        self._store.close()

    def _headers(self, body: bytes, key: str) -> list[tuple[str, str]]:
        headers = [
            ("Content-Type", "application/json"),
            ("X-Poller-Key", key),
            ("Idempotency-Key", key),
        ]
        secret = self._secret()
        if secret:
            at = str(int(time.time()))
            headers.append(("X-Poller-Timestamp", at))
            headers.append(("X-Poller-Signature", f"sha256={signature(secret, at, body)}"))
        return headers

    def _secret(self) -> str:
        path = self._options.secret_file
        return read_secret(self._place.name, "secret_file", path) if path else ""

    def _with_url(self, options: WebhookOptions) -> WebhookOptions:
        """The options with the URL of the file, which no error repeats."""
        if options.url_file is None:
            return options
        url = read_secret(self._place.name, "url_file", options.url_file)
        try:
            parsed = urls.parse(url)
        except ValueError:
            raise errors.InvalidSetting(
                "url_file: the file has no URL that begins with http:// or https://"
            ) from None
        self._hidden = (str(parsed), url)
        if len(parsed.target) > 1:
            self._hidden += (parsed.target,)
        return options.model_copy(update={"url": url})


def signature(secret: str, at: str, body: bytes) -> str:
    """The HMAC-SHA256 of the timestamp, a full stop and the body, in hexadecimal digits."""
    signed = f"{at}.".encode() + body
    return hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
