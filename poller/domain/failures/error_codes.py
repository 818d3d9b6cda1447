"""Why did a poll fail? Every code a run, a status or a metric can carry, what it means, and what to do about it.

A closed list: collectors choose an error of `poller.errors`, whose code is one of these; plugins cannot add one.
"""

from __future__ import annotations

from dataclasses import dataclass

# Plain texts: psycopg refuses a list in which some are of a class of their own.
UNREACHABLE = "unreachable"
TIMEOUT = "timeout"
AUTH_FAILED = "auth_failed"
PROTOCOL_ERROR = "protocol_error"
UNSUPPORTED = "unsupported"
DOWN = "down"
UNWELL = "unwell"
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

#: What a probe found out: its readings are kept, though the poll has failed.
FINDINGS = frozenset({DOWN, UNWELL})


@dataclass(frozen=True, slots=True)
class Explained:
    """One line each: what happened, and what an operator does about it."""

    meaning: str
    hint: str


EXPLAINED: dict[str, Explained] = {
    UNREACHABLE: Explained(
        "nothing there, or it refuses to talk",
        "is the address right, the service on, and this worker allowed by the device's access list?",
    ),
    TIMEOUT: Explained(
        "no complete answer before the deadline",
        "is it up? An SNMP agent is silent, too, when the community is wrong. A slow one needs a longer --timeout",
    ),
    AUTH_FAILED: Explained(
        "it answered, and refused our credential",
        "store the right secret with poller credential rotate, or give the device another credential",
    ),
    PROTOCOL_ERROR: Explained(
        "it answered something that is not the protocol",
        "is another service on that port, or TLS on one side only? poller collect shows what comes",
    ),
    UNSUPPORTED: Explained(
        "it speaks, but does not have what the target asks for",
        "change the target's options: ask only for what this model has",
    ),
    DOWN: Explained(
        "it was looked for and is not there; the readings say so",
        "is it switched on, and does its network work? It is asked at every slot, so that its return is seen at once",
    ),
    UNWELL: Explained(
        "it is there, but not as the target wants it; the readings say so",
        "the message says what is wrong; poller collect shows all that was seen",
    ),
    HOST_BUSY: Explained(
        "it waited for its turn until its time was up: its host bears only so many polls at a time; nothing was sent",
        "poll its devices less often, give them a longer --timeout, or raise sessions_per_host (session_exceptions)",
    ),
    DEVICE_ERROR: Explained(
        "trouble of the device that its collector names no further",
        "the message of the run says what; the collector's author can be more exact",
    ),
    COLLECTOR_CRASHED: Explained(
        "the collector has a bug: it raised something unexpected, yielded rubbish or ignored its cancellation",
        "report it to the collector's author, with the worker's log line collector_crashed",
    ),
    COLLECTOR_DIED: Explained(
        "the collector runs in a process of its own, and that ended, or had to be ended, during this poll",
        "update or remove the plugin that the message names; poller collectors counts such ends",
    ),
    COLLECTOR_BUSY: Explained(
        "all threads of the collector were at work until the deadline, or the worker had no socket; nothing was sent",
        "the message says which: more workers; a higher POLLER_BLOCKING_THREADS, or a plugin that does not hang (see"
        " collector_thread_stuck); or a higher limit of open files",
    ),
    COLLECTOR_QUARANTINED: Explained(
        "the collector's process crashed so often that nobody runs it any more; nothing was sent",
        "update the plugin on the workers and restart them, or poller collectors release NAME to try it as it is",
    ),
    COLLECTOR_MISSING: Explained(
        "the target's collector is not installed on the worker, or cannot be loaded; nothing was sent",
        "poller collectors, on that worker, says why; install the plugin there and restart the worker",
    ),
    OPTIONS_INVALID: Explained(
        "the target's options do not fit its collector any more; nothing was sent",
        "poller target edit; the message names the option. Do all workers have the same version of the collector?",
    ),
    CREDENTIAL_UNUSABLE: Explained(
        "the target has no credential, or one that is gone or does not open; nothing was sent",
        "give it one: poller device edit DEVICE --credential NAME. If it has: is the worker's secret_key right?",
    ),
    LEASE_LOST: Explained(
        "the worker that held it did not report back in time; the target was due again at once",
        "was a worker killed, paused or out of memory? Its log and poller status say so; nothing is to be repaired",
    ),
    WORKER_DIED: Explained(
        "the worker's process ended, or was ended because it stood still, while this target's collector ran",
        "update or remove the plugin that the message names; if it was killed or out of memory, look at its host",
    ),
}
