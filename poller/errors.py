"""Every error that this program raises on purpose, grouped by what its handler can do.

    PollerError
    |- ConfigError            a mistake of the operator: nothing was changed
    |  |- InvalidSetting      a POLLER_* variable or a key of poller.toml is not valid
    |  |- InvalidInput        a value in a command, a file or an API request is not valid
    |  |- UnknownName         a field names a site, credential or collector that does not exist
    |  |- CollectorMissing    a collector is not installed here, or cannot be loaded
    |  |- BadFile             an import was refused as a whole; every bad line is named
    |  |- NotConfirmed        a severe change was not confirmed
    |  |- NotFound            a name does not exist
    |  |- AlreadyExists       a name is taken
    |  |- AlreadyRunning      a second `poller up` in one home directory, or a running job
    |  |- PortInUse           another process listens on the address
    |  |- EditConflict        the thing was changed since the caller read it
    |  |- OutcomeUnknown      an earlier request with the same key may have acted already
    |  |- NotLoggedIn         a request has no valid login or token
    |  |- NotAllowed          the actor does not have the right
    |  |- TooManyRequests     the caller has to wait before the next try
    |  |- SecretKeyError      the secret key cannot decrypt what is stored
    |  '- SchemaMismatch      the database is at another revision than this program
    |- DeviceError            a fault of the device, or of its poll: becomes an Outcome
    |  |- DeviceUnreachable   the address does not respond, or refuses the connection
    |  |- DeviceTimeout       no complete response before the deadline
    |  |- DeviceAuthFailed    the device refused the credential
    |  |- DeviceProtocolError the response does not follow the protocol
    |  |- DeviceUnsupported   the device responds, but has nothing of what the target reads
    |  |- DeviceDown          a probe found the device or service down; its readings are stored
    |  |- DeviceUnwell        a probe found the service up, but not as the target requires
    |  |- DeviceRejected      a probe found that the service rejects the request itself
    |  |- OptionsUnusable     a file that the options name is missing or broken; nothing was sent
    |  |- DeviceBusy          the host was at its limit of sessions; nothing was sent
    |  |- CollectorCrashed    the collector raised an exception that is not in this tree
    |  |- CollectorDied       the separate process of the collector ended during the poll
    |  '- CollectorBusy       no thread or socket was free before the deadline; nothing was sent
    |- StoreError             a fault of Redis or SQL: never counts against a device
    |  |- StoreUnavailable    Redis or SQL does not respond
    |  '- StoreConflict       another process changed the same row or key first
    '- Bug                    a mistake in this program or a plugin: please report it

Each adapter translates the exceptions of its library in one table:
collectors/snmp/engines/gufo_engine.py, collectors/routeros/librouteros_errors.py, db/sql_errors.py,
state/redis_errors.py (Redis), state/publish_errors.py (kombu), security/vault.py (cryptography),
settings/setting_errors.py (pydantic). Every DeviceError has an error code; the consequences of each
code are in domain/failures/error_codes.py.

Texts never contain a secret. Data goes positionally to `super().__init__`, because Celery rebuilds
exceptions with `cls(*args)`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar


class PollerError(Exception):
    """The base of the tree: `message` says what failed, `cause` why, `hint` what to do."""

    code: ClassVar[str] = "P000"
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, cause: str = "", hint: str = "") -> None:
        super().__init__(message, cause, hint)
        self.message = message
        self.cause = cause
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.cause})" if self.cause else self.message


class ConfigError(PollerError):
    """A mistake of the operator. The text names the field and the fix; nothing was changed."""

    code = "P200"
    exit_code = 2


class InvalidInput(ConfigError):
    """Raised by the check of a value from a command line, a file or an API request.

    `field` is the name of the field as a body of the API or a file has it; empty if none is at
    fault alone.
    """

    code = "P201"

    def __init__(self, message: str, cause: str = "", hint: str = "", *, field: str = "") -> None:
        super().__init__(message, cause, hint)
        self.field = field


@contextmanager
def inside(part: str) -> Iterator[None]:
    """Name the part of a request that the field of an InvalidInput is in: `targets.0.interval`."""
    try:
        yield
    except InvalidInput as error:
        if error.field:
            error.field = f"{part}.{error.field}"
        raise


@contextmanager
def of_field(name: str) -> Iterator[None]:
    """Name the field that an InvalidInput is about, unless it names one."""
    try:
        yield
    except InvalidInput as error:
        error.field = error.field or name
        raise


class UnknownName(InvalidInput):
    """Raised for a field that names a site, credential or collector that does not exist."""

    code = "P107"
    exit_code = 3


class CollectorMissing(InvalidInput):
    """Raised by the registry for a collector that is not installed here, or cannot be loaded."""

    code = "P401"


class BadFile(InvalidInput):
    """Raised by an import that refuses the whole file; `details` has every problem."""

    code = "P202"

    def __init__(self, message: str, cause: str = "", hint: str = "") -> None:
        super().__init__(message, cause, hint)
        self.details: list[Any] = []


class NotConfirmed(ConfigError):
    """Raised by a command whose severe change was not confirmed; nothing was done."""

    code = "P501"


class InvalidSetting(ConfigError):
    """Raised at startup for a POLLER_* variable or a key of poller.toml that is not valid."""

    code = "P210"


class NotFound(ConfigError):
    """Raised for the name of a device, target, site, credential or code that does not exist."""

    code = "P101"
    exit_code = 3


class AlreadyExists(ConfigError):
    """Raised when the name of a new device, target, site or credential is taken."""

    code = "P102"


class AlreadyRunning(ConfigError):
    """Raised for what runs already: `poller up` in the same home directory, a scope of a job."""

    code = "P103"


class EditConflict(ConfigError):
    """Raised by an edit that names the version it was made for, if that is no longer the last."""

    code = "P105"


class OutcomeUnknown(ConfigError):
    """Raised for a key of a request that was sent before, and whose response nobody has."""

    code = "P106"


class NotLoggedIn(ConfigError):
    """Raised for a request without a valid session or token."""

    code = "P600"
    exit_code = 4


class NotAllowed(ConfigError):
    """Raised for an action that the scopes or the site of the actor do not allow."""

    code = "P601"
    exit_code = 4


class TooManyRequests(ConfigError):
    """Raised for log-in attempts that follow each other too fast."""

    code = "P602"
    exit_code = 4

    def __init__(self, message: str, cause: str = "", hint: str = "") -> None:
        super().__init__(message, cause, hint)
        self.retry_after_s = 60


class PortInUse(ConfigError):
    """Raised by a listener whose address is in use by another process."""

    code = "P104"


class SecretKeyError(ConfigError):
    """Raised by the vault when the secret key is missing, or cannot decrypt what is stored."""

    code = "P130"


class SchemaMismatch(ConfigError):
    """Raised when the database is at another revision than this program."""

    code = "P303"


class DeviceError(PollerError):
    """A fault of the device, or of the attempt to poll it. The poll ends with an Outcome.

    A collector raises the class itself for a fault that no subclass describes. `error_code` is the
    code of the run; its row in `domain.failures.error_codes` decides about retry, breaker and dead
    letter.
    """

    code = "P116"
    error_code: ClassVar[str] = "device_error"


class DeviceUnreachable(DeviceError):
    """Raised by a collector when the address does not respond, or refuses the connection."""

    code = "P112"
    error_code = "unreachable"


class DeviceTimeout(DeviceError):
    """Raised when the response of a device is not complete before the deadline of the poll."""

    code = "P110"
    error_code = "timeout"


class DeviceAuthFailed(DeviceError):
    """Raised by a collector when the device responds and refuses the credential."""

    code = "P111"
    error_code = "auth_failed"


class DeviceProtocolError(DeviceError):
    """Raised by a collector for a response that does not follow the protocol."""

    code = "P113"
    error_code = "protocol_error"


class DeviceUnsupported(DeviceError):
    """Raised by a collector when the device has nothing of what the target reads."""

    code = "P114"
    error_code = "unsupported"


class DeviceDown(DeviceError):
    """Raised by a probe (ping, http) after its readings: the device or service does not respond."""

    code = "P122"
    error_code = "down"


class DeviceUnwell(DeviceError):
    """Raised by a probe after its readings: the service responds, but not as required."""

    code = "P123"
    error_code = "unwell"


class DeviceRejected(DeviceError):
    """Raised by a probe after its readings: the service rejects the request itself (HTTP 4xx)."""

    code = "P124"
    error_code = "rejected"


class OptionsUnusable(DeviceError):
    """Raised by a collector before it sends: a file that the options name is missing or broken.

    The failure opens no breaker and makes no dead letter: the next poll reads the file again.
    """

    code = "P121"
    error_code = "options_invalid"


class DeviceBusy(DeviceError):
    """Raised before anything is sent: the host was at its limit of sessions until the deadline.

    The limit is the worker's own, so the failure opens no breaker.
    """

    code = "P117"
    error_code = "host_busy"


class CollectorCrashed(DeviceError):
    """Raised by the poll runner for a bug of the collector.

    The bug is an exception that is not in this tree, an invalid reading or an ignored cancellation.
    """

    code = "P115"
    error_code = "collector_crashed"


class CollectorDied(DeviceError):
    """Raised by the child supervisor when the collector's own process ends during the poll."""

    code = "P118"
    error_code = "collector_died"


class CollectorBusy(DeviceError):
    """Raised before anything is sent: no thread of the collector, or no socket, was free in time.

    The limit is the worker's own, so the failure opens no breaker.
    """

    code = "P119"
    error_code = "collector_busy"


class StoreError(PollerError):
    """A fault of Redis or SQL. It is retried and logged, and never counts against a device."""

    code = "P300"
    exit_code = 5


class StoreUnavailable(StoreError):
    """Raised when Redis, SQL or the store of a sink does not respond; a later call may succeed.

    `retry_after_s` is the wait that the store asks for, if it asks for one.
    """

    code = "P301"

    def __init__(
        self, message: str, cause: str = "", hint: str = "", retry_after_s: float | None = None
    ) -> None:
        super().__init__(message, cause, hint)
        self.retry_after_s = retry_after_s


class StoreConflict(StoreError):
    """Raised when another process changed the same row or key first."""

    code = "P304"


class Bug(PollerError):
    """Raised for a mistake in this program or a plugin; an operator can only report it."""

    code = "P900"
