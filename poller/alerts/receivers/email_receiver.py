"""The receiver `email`: a notice as a plain message; all of one alert are one thread."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Annotated, ClassVar, Literal, Self

import aiosmtplib
from pydantic import AfterValidator, Field, model_validator

from poller import errors
from poller.alerts.receivers import api
from poller.alerts.receivers.api import Place
from poller.alerts.receivers.store_wording import worded
from poller.domain.alerts.telling import notice_text
from poller.domain.alerts.telling.delivery import delivery_key
from poller.domain.alerts.telling.notice import Notice
from poller.domain.failures import outcome
from poller.domain.inventory.api_version import Stated
from poller.sinks.tls_options import OptionalFile, TlsOptions, read_secret

_PORTS = {"starttls": 587, "tls": 465, "plain": 25}
_LONGEST_SUBJECT = 200
_QUOTED = 300
#: Answers of a server from this code on are final, except that of a login.
_FINAL = 500
_LOGIN_REFUSED = range(530, 540)


def _address(text: str) -> str:
    try:
        parsed = Address(addr_spec=text)
    except (ValueError, IndexError):  # IndexError: of a text that ends where a part should begin
        raise ValueError("it is no address such as noc@example.net") from None
    except Exception as error:  # door: the parser of the standard library has errors of its own
        raise ValueError("it is no address such as noc@example.net") from error
    if not parsed.username or not parsed.domain:
        raise ValueError("it is no address such as noc@example.net")
    return text


EmailAddress = Annotated[str, AfterValidator(_address)]


class EmailOptions(TlsOptions):
    """Options of a mail server and of the messages."""

    host: str = Field(min_length=1, description="Host of the mail server.")
    port: int = Field(
        0, ge=0, le=65535, description="Its port. Not set: 587, or 465 of tls, or 25 of plain."
    )
    security: Literal["starttls", "tls", "plain"] = Field(
        "starttls", description="starttls, tls from the first byte, or plain for a local server."
    )
    username: str = Field("", description="User of the login.")
    password_file: OptionalFile = Field(None, description="File with the password of `username`.")
    sender: EmailAddress = Field(description="Address that the messages come from.")
    to: tuple[EmailAddress, ...] = Field(min_length=1, description="Addresses that are told.")
    subject_prefix: str = Field("", max_length=50, description="Words before every subject.")
    timeout_s: float = Field(20.0, ge=0.1, le=120, description="Time for one message.")

    @model_validator(mode="after")
    def _check_login(self) -> Self:
        if bool(self.username) != (self.password_file is not None):
            raise ValueError("username and password_file belong together")
        if self.security == "plain" and self.username:
            raise ValueError("username needs security tls or starttls: plain would show it")
        if self.security == "plain" and (self.ca_file or self.cert_file or self.insecure):
            raise ValueError("ca_file, cert_file and insecure need security tls or starttls")
        if not self.subject_prefix.isprintable():
            raise ValueError("subject_prefix has characters that cannot be sent")
        return self


class EmailReceiver:
    """One mail server and some addresses."""

    name: ClassVar[str] = "email"
    api_version: ClassVar[Stated] = 1
    Options: ClassVar[type[EmailOptions]] = EmailOptions

    def __init__(self, place: Place, options: EmailOptions) -> None:
        self._place = place
        self._options = options
        self._port = options.port or _PORTS[options.security]
        with worded():
            self._password()
            if options.security != "plain":
                options.context(place.name)

    def send(self, notice: Notice, key: str) -> str:
        """Send one message. Raises StoreUnavailable, StoreError."""
        message = self._message(notice.cut(api.MOST_ALERTS), key)
        where = f"{self._place.name} does not take a message at {self._options.host}:{self._port}"
        try:
            refused, answer = asyncio.run(self._sent(message))
        except (TimeoutError, aiosmtplib.SMTPTimeoutError):
            cause = f"no complete answer within {self._options.timeout_s:g} s"
            raise errors.StoreUnavailable(where, cause, "check host and port") from None
        except aiosmtplib.SMTPRecipientsRefused as error:
            codes = [each.code for each in error.recipients]
            text = "; ".join(f"{each.code} {each.message}" for each in error.recipients)
            raise _refusal(where, min(codes, default=0), text) from None
        except aiosmtplib.SMTPResponseException as error:
            raise _refusal(where, error.code, f"{error.code} {error.message}") from None
        except (aiosmtplib.SMTPException, OSError) as error:
            cause = outcome.clean(str(error) or type(error).__name__, _QUOTED)
            raise errors.StoreUnavailable(where, cause, "check host, port and security") from None
        note = f"; {len(refused)} of {len(self._options.to)} addresses refused" if refused else ""
        return outcome.clean(answer, _QUOTED) + note

    def close(self) -> None:
        """Nothing stays open between messages."""

    async def _sent(self, message: EmailMessage) -> tuple[dict[str, object], str]:
        options = self._options
        with worded():
            password = self._password()
            context = None if options.security == "plain" else options.context(self._place.name)
        sending = aiosmtplib.send(
            message,
            hostname=options.host,
            port=self._port,
            username=options.username or None,
            password=password or None,
            use_tls=options.security == "tls",
            start_tls=options.security == "starttls",
            tls_context=context,
            timeout=options.timeout_s,
        )
        refused, answer = await asyncio.wait_for(sending, options.timeout_s)
        return dict(refused), answer

    def _password(self) -> str:
        path = self._options.password_file
        return read_secret(self._place.name, "password_file", path) if path else ""

    def _message(self, notice: Notice, key: str) -> EmailMessage:
        options = self._options
        message = EmailMessage()
        prefix = f"{options.subject_prefix} " if options.subject_prefix else ""
        subject = prefix + notice_text.subject(notice)
        message["Subject"] = outcome.clean(subject, _LONGEST_SUBJECT)
        message["From"] = options.sender
        message["To"] = ", ".join(options.to)
        message["Date"] = format_datetime(datetime.fromtimestamp(notice.created_ms / 1000, UTC))
        message["Message-ID"] = self._message_id(key)
        if notice.replies_to:
            earlier = [
                self._message_id(delivery_key(replied, self._place.name))
                for replied in notice.replies_to
            ]
            message["In-Reply-To"] = earlier[-1]
            message["References"] = " ".join(earlier)
        message["Auto-Submitted"] = "auto-generated"
        message["X-Poller-Key"] = key
        message.set_content(notice_text.body(notice) + "\n")
        return message

    def _message_id(self, key: str) -> str:
        domain = self._options.sender.rpartition("@")[2]
        return f"<{key.replace(':', '.')}@{domain}>"


def _refusal(where: str, code: int, text: str) -> errors.StoreError:
    cause = outcome.clean(text, _QUOTED)
    if code in _LOGIN_REFUSED:
        return errors.StoreUnavailable(where, cause, "check username and password_file")
    if code >= _FINAL:
        return errors.StoreError(where, cause, "check sender and to")
    return errors.StoreUnavailable(where, cause)
