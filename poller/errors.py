"""Every error we raise on purpose, grouped by what the one who catches it can do.

    PollerError
    |- ConfigError            the operator's mistake: nothing was changed; the text names the field and the fix
    |  |- InvalidSetting      a POLLER_* variable or a key of poller.toml
    |  |- InvalidInput        a value given to a command, a file or the API
    |  |- CollectorMissing    a collector that is not installed here, or cannot be loaded
    |  |- BadFile             an import that was refused as a whole; every bad line is named
    |  |- NotConfirmed        a severe change that nobody confirmed
    |  |- NotFound            a name that does not exist
    |  |- AlreadyExists       a name that is taken
    |  |- AlreadyRunning      a second `poller up` on one home
    |  |- PortInUse           an address somebody else listens on
    |  |- SecretKeyError      the key cannot open what is stored
    |  '- SchemaMismatch      the database is at another revision than this program
    |- DeviceError            the device's side: becomes an Outcome, never a crash
    |  |- DeviceUnreachable   nothing there, or it refuses to talk
    |  |- DeviceTimeout       no complete answer before the deadline
    |  |- DeviceAuthFailed    it answered, and refused our credential
    |  |- DeviceProtocolError it answered something that is not the protocol
    |  |- DeviceUnsupported   it speaks, but does not have what the target asks for
    |  |- DeviceDown          it was looked for and is not there; the readings say so, and are kept
    |  |- DeviceUnwell        it is there, but not as the target wants it; the readings say so, and are kept
    |  |- OptionsUnusable     a file the target's options name is missing or broken on this worker; nothing was sent
    |  |- DeviceBusy          its host bears no more at a time: the poll did not get its turn, and sent nothing
    |  |- CollectorCrashed    the collector raised something that is not in this tree
    |  |- CollectorDied       the collector's own process ended, or had to be ended, during the poll
    |  '- CollectorBusy       the collector had no thread left in time, or the worker no socket; nothing was sent
    |- StoreError             our side: never counts against a device
    |  |- StoreUnavailable    Redis or SQL does not answer
    |  '- StoreConflict       somebody else changed the same thing first
    '- Bug                    a mistake in this program or a plugin: please report it

Each adapter translates its library's exceptions in one table: collectors/snmp/engines/gufo_engine.py,
collectors/routeros/librouteros_errors.py, db/sql_errors.py, state/redis_errors.py (Redis), state/publish_errors.py (kombu),
security/vault.py (cryptography), settings/fields.py (pydantic). What a run says of a failure: domain/failures/error_codes.py.

Texts never contain a secret. Data goes positionally to `super().__init__`, because Celery rebuilds
exceptions with `cls(*args)`.
"""

from __future__ import annotations

from typing import Any, ClassVar


class PollerError(Exception):
    """Something went wrong; `message` says what, `cause` why (if known) and `hint` what to do."""

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
    """The operator's mistake: refuse, name the field and the fix, change nothing."""

    code = "P200"
    exit_code = 2


class InvalidInput(ConfigError):
    code = "P201"


class CollectorMissing(InvalidInput):
    code = "P401"


class BadFile(InvalidInput):
    """The file was refused as a whole; `details` has every complaint."""

    code = "P202"

    def __init__(self, message: str, cause: str = "", hint: str = "") -> None:
        super().__init__(message, cause, hint)
        self.details: list[Any] = []


class NotConfirmed(ConfigError):
    """Nothing was done."""

    code = "P501"


class InvalidSetting(ConfigError):
    code = "P210"


class NotFound(ConfigError):
    code = "P101"
    exit_code = 3


class AlreadyExists(ConfigError):
    code = "P102"


class AlreadyRunning(ConfigError):
    code = "P103"


class PortInUse(ConfigError):
    code = "P104"


class SecretKeyError(ConfigError):
    code = "P130"


class SchemaMismatch(ConfigError):
    code = "P303"


class DeviceError(PollerError):
    """The device's side. The decisions sit on the class, so that no caller has to know the list."""

    code = "P116"
    error_code: ClassVar[str] = "device_error"
    retryable: ClassVar[bool] = True
    trips_breaker: ClassVar[bool] = True
    dead_letters: ClassVar[bool] = False
    #: Readings that were yielded before it are kept, but do not make the poll a `partial` one.
    is_a_finding: ClassVar[bool] = False


class DeviceUnreachable(DeviceError):
    code = "P112"
    error_code = "unreachable"


class DeviceTimeout(DeviceError):
    code = "P110"
    error_code = "timeout"


class DeviceAuthFailed(DeviceError):
    code = "P111"
    error_code = "auth_failed"
    retryable = False
    dead_letters = True


class DeviceProtocolError(DeviceError):
    code = "P113"
    error_code = "protocol_error"


class DeviceUnsupported(DeviceError):
    code = "P114"
    error_code = "unsupported"
    retryable = False


class DeviceDown(DeviceError):
    """What a probe (ping, http) raises after its readings: nobody is there, and that is what it was to find out."""

    code = "P122"
    error_code = "down"
    retryable = False
    is_a_finding = True


class DeviceUnwell(DeviceError):
    """The same of somebody who is there, but answers wrongly."""

    code = "P123"
    error_code = "unwell"
    retryable = False
    is_a_finding = True


class OptionsUnusable(DeviceError):
    """Not the device's fault: it opens no breaker, and the next poll looks at the file again."""

    code = "P121"
    error_code = "options_invalid"
    retryable = False
    trips_breaker = False


class DeviceBusy(DeviceError):
    """Our own limit, not the device's fault: it opens no breaker, and its next slot is early enough."""

    code = "P117"
    error_code = "host_busy"
    retryable = False
    trips_breaker = False


class CollectorCrashed(DeviceError):
    code = "P115"
    error_code = "collector_crashed"
    retryable = False


class CollectorDied(DeviceError):
    code = "P118"
    error_code = "collector_died"
    retryable = False


class CollectorBusy(DeviceError):
    """Our own limit, as above."""

    code = "P119"
    error_code = "collector_busy"
    retryable = False
    trips_breaker = False


class StoreError(PollerError):
    """Our side: retried, reported to the developers, never held against a device."""

    code = "P300"
    exit_code = 5


class StoreUnavailable(StoreError):
    code = "P301"


class StoreConflict(StoreError):
    code = "P304"


class Bug(PollerError):
    """Nobody's fault but ours."""

    code = "P900"
