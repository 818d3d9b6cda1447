"""The failure policy: one row for each error code that a run, a status or a metric can carry.

The list is closed. A collector raises an error of `poller.errors`, and the error has one of these
codes; a plugin cannot add a code. `retry`, `circuit_breaker`, `confirmation`, `dead_letter` and
`site_outage` read their decisions from `TABLE`.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

# Plain strings, not members of an enum: psycopg refuses a list that mixes `str` with a subclass.
UNREACHABLE = "unreachable"
TIMEOUT = "timeout"
AUTH_FAILED = "auth_failed"
PROTOCOL_ERROR = "protocol_error"
UNSUPPORTED = "unsupported"
DOWN = "down"
UNWELL = "unwell"
REJECTED = "rejected"
HOST_BUSY = "host_busy"
DEVICE_ERROR = "device_error"
COLLECTOR_CRASHED = "collector_crashed"
COLLECTOR_DIED = "collector_died"
COLLECTOR_BUSY = "collector_busy"
COLLECTOR_QUARANTINED = "collector_quarantined"
COLLECTOR_MISSING = "collector_missing"
OPTIONS_INVALID = "options_invalid"
CREDENTIAL_UNUSABLE = "credential_unusable"
LEASE_LOST = "lease_lost"
WORKER_DIED = "worker_died"


class Category(enum.StrEnum):
    TRANSIENT = "transient"  # may pass without a change
    PERMANENT = "permanent"  # lasts until an operator or an author changes something


class BreakerRule(enum.StrEnum):
    """When a closed breaker opens. `circuit_breaker.rules` has the numbers."""

    USUAL = "after breaker_failures failures"
    NEVER = "never"
    AT_ONCE = "at the first failure"
    AT_ONCE_AND_LONG = "at the first failure, for breaker_auth_s"
    EVERY_SLOT = "never: polled at every slot"


class DeadLetterRule(enum.StrEnum):
    """When a failing target becomes a dead letter. `dead_letter.reason` applies the rule."""

    OPEN_TOO_LONG = "when the breaker is open for deadletter_after_s"
    OPEN_FOR_AN_HOUR = "when the breaker is open for an hour"
    AT_OPENING = "when the breaker opens"
    SECOND_REFUSAL = "at the second refusal"
    AT_ONCE = "at once"
    AT_ONCE_IF_REFUSED = "at once for invalid options; never for a file"
    NEVER = "never"


class Reach(enum.StrEnum):
    """The conclusion from a failure about the device behind the target."""

    SILENT = "no response"
    ANSWERED = "it responds"
    UNTOLD = "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorCode:
    """One row of the failure policy. `meaning` and `hint` are one line each, for operators."""

    code: str
    meaning: str
    hint: str
    category: Category
    retried: bool = False
    breaker: BreakerRule = BreakerRule.USUAL
    dead_letter: DeadLetterRule = DeadLetterRule.OPEN_TOO_LONG
    #: The result of a probe: the readings are stored although the poll failed.
    finding: bool = False
    #: A device none of whose targets responds is down. A silent poll counts towards a dark site.
    reach: Reach = Reach.UNTOLD


_ROWS = (
    ErrorCode(
        code=UNREACHABLE,
        meaning="the address does not respond, or refuses the connection",
        hint="check the address, the service on the device and the device's access list",
        category=Category.TRANSIENT,
        retried=True,
        reach=Reach.SILENT,
    ),
    ErrorCode(
        code=TIMEOUT,
        meaning="no complete response before the deadline",
        hint="check that the device is up. With SNMP: a wrong community is answered by silence."
        " A slow device needs a longer timeout",
        category=Category.TRANSIENT,
        retried=True,
        reach=Reach.SILENT,
    ),
    ErrorCode(
        code=AUTH_FAILED,
        meaning="the device refused the credential",
        hint="store the right secret with poller credential rotate, or give the device another"
        " credential",
        category=Category.PERMANENT,
        breaker=BreakerRule.AT_ONCE_AND_LONG,
        dead_letter=DeadLetterRule.SECOND_REFUSAL,
        reach=Reach.ANSWERED,
    ),
    ErrorCode(
        code=PROTOCOL_ERROR,
        meaning="the response does not follow the protocol",
        hint="check for another service on that port, or TLS on one side only; poller collect"
        " shows what the device sends",
        category=Category.TRANSIENT,
        retried=True,
        dead_letter=DeadLetterRule.OPEN_FOR_AN_HOUR,
        reach=Reach.ANSWERED,
    ),
    ErrorCode(
        code=UNSUPPORTED,
        meaning="the device responds, but has nothing of what the target reads",
        hint="change the target's options to what this model has",
        category=Category.PERMANENT,
        dead_letter=DeadLetterRule.AT_OPENING,
        reach=Reach.ANSWERED,
    ),
    ErrorCode(
        code=DOWN,
        meaning="a probe found the device or service down; its readings are stored",
        hint="check power and network. The target is polled at every slot, so its return shows"
        " at once",
        category=Category.TRANSIENT,
        breaker=BreakerRule.EVERY_SLOT,
        dead_letter=DeadLetterRule.NEVER,
        finding=True,
        reach=Reach.SILENT,
    ),
    ErrorCode(
        code=UNWELL,
        meaning="a probe found the service up, but not as the target requires; its readings are"
        " stored",
        hint="the message names the fault; poller collect shows all readings",
        category=Category.TRANSIENT,
        retried=True,
        breaker=BreakerRule.EVERY_SLOT,
        dead_letter=DeadLetterRule.NEVER,
        finding=True,
        reach=Reach.ANSWERED,
    ),
    ErrorCode(
        code=REJECTED,
        meaning="a probe found that the server rejects the request itself, such as HTTP 404; its"
        " readings are stored",
        hint="change the target's options (path, host, auth, expect), or repair the server",
        category=Category.PERMANENT,
        breaker=BreakerRule.EVERY_SLOT,
        dead_letter=DeadLetterRule.NEVER,
        finding=True,
        reach=Reach.ANSWERED,
    ),
    ErrorCode(
        code=HOST_BUSY,
        meaning="the poll waited until its deadline because its host was at its limit of sessions;"
        " nothing was sent",
        hint="poll the devices of the host less often, give them a longer timeout, or raise"
        " sessions_per_host (session_exceptions)",
        category=Category.TRANSIENT,
        breaker=BreakerRule.NEVER,
    ),
    ErrorCode(
        code=DEVICE_ERROR,
        meaning="a fault of the device that the collector does not classify",
        hint="the message of the run describes the fault; the author of the collector can"
        " classify it",
        category=Category.TRANSIENT,
        retried=True,
    ),
    ErrorCode(
        code=COLLECTOR_CRASHED,
        meaning="a bug in the collector: an unexpected exception, an invalid reading or an"
        " ignored cancellation",
        hint="report it to the author of the collector, with the worker's log line"
        " collector_crashed",
        category=Category.PERMANENT,
        dead_letter=DeadLetterRule.AT_OPENING,
    ),
    ErrorCode(
        code=COLLECTOR_DIED,
        meaning="the separate process of the collector ended, or was ended, during the poll",
        hint="update or remove the plugin that the message names; poller collectors counts these"
        " ends",
        category=Category.PERMANENT,
        breaker=BreakerRule.AT_ONCE,
    ),
    ErrorCode(
        code=COLLECTOR_BUSY,
        meaning="all threads of the collector were busy until the deadline, or the worker had no"
        " free socket; nothing was sent",
        hint="the message says which. Threads: start more workers, raise POLLER_BLOCKING_THREADS,"
        " or repair a plugin that hangs (log line collector_thread_stuck). Sockets: raise the"
        " limit of open files",
        category=Category.TRANSIENT,
        breaker=BreakerRule.NEVER,
    ),
    ErrorCode(
        code=COLLECTOR_QUARANTINED,
        meaning="the collector is quarantined: its process crashed too often; nothing was sent",
        hint="update the plugin on the workers and restart them, or poller collectors release"
        " NAME to try the installed version again",
        category=Category.PERMANENT,
        dead_letter=DeadLetterRule.AT_ONCE,
    ),
    ErrorCode(
        code=COLLECTOR_MISSING,
        meaning="the target's collector is not installed on the worker, or cannot be loaded;"
        " nothing was sent",
        hint="poller collectors, on the host of that worker, shows the reason; install it"
        " there and restart the worker",
        category=Category.PERMANENT,
        dead_letter=DeadLetterRule.AT_ONCE,
    ),
    ErrorCode(
        code=OPTIONS_INVALID,
        meaning="the target's options do not fit its collector, or a file that the options name"
        " is missing or broken on the worker; nothing was sent",
        hint="the message names the option or the file: poller target edit, or repair the file,"
        " which the next poll reads again. All workers need the same version of the collector",
        category=Category.PERMANENT,
        breaker=BreakerRule.NEVER,
        dead_letter=DeadLetterRule.AT_ONCE_IF_REFUSED,
    ),
    ErrorCode(
        code=CREDENTIAL_UNUSABLE,
        meaning="the target has no credential, or its credential was removed or cannot be"
        " decrypted; nothing was sent",
        hint="poller device edit DEVICE --credential NAME sets one; if the device has one, check"
        " the worker's secret_key",
        category=Category.PERMANENT,
        dead_letter=DeadLetterRule.AT_ONCE,
    ),
    ErrorCode(
        code=LEASE_LOST,
        meaning="the worker did not report back before the lease ran out; the target was due"
        " again at once",
        hint="check for a worker that was killed, paused or out of memory: its log and poller"
        " status. The target needs no repair",
        category=Category.TRANSIENT,
        # The run has no outcome, so the target's status, failures and breaker stay as they are.
        breaker=BreakerRule.NEVER,
        dead_letter=DeadLetterRule.NEVER,
    ),
    ErrorCode(
        code=WORKER_DIED,
        meaning="the worker process ended, or was ended because it was stuck, while it ran the"
        " target's collector",
        hint="update or remove the plugin that the message names; after a kill or a lack of"
        " memory, check the host",
        category=Category.TRANSIENT,
        breaker=BreakerRule.AT_ONCE,
    ),
)

TABLE: Mapping[str, ErrorCode] = {row.code: row for row in _ROWS}
RETRIED = frozenset(row.code for row in _ROWS if row.retried)
FINDINGS = frozenset(row.code for row in _ROWS if row.finding)
SILENT = frozenset(row.code for row in _ROWS if row.reach is Reach.SILENT)


def category_of(code: str) -> str:
    """Return `transient` or `permanent`; empty without an error, or for a code of another
    release.
    """
    row = TABLE.get(code)
    return row.category.value if row else ""
